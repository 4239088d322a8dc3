// The page: a form with a text, and the answer of the model in `model/`.

import { loadModel } from "./model.js";

const element = (id) => document.getElementById(id);

async function start() {
  const model = await loadModel("model");
  for (const task of model.tasks) element("task").append(new Option(task));
  element("task-label").hidden = model.tasks.length === 0;
  element("form").hidden = false;
  element("status").textContent = "The model runs here; no text leaves this page.";
  element("form").addEventListener("submit", (event) => {
    event.preventDefault();
    element("error").textContent = "";
    respond(model).catch(report);
  });
}

async function respond(model) {
  const texts = [element("text").value];
  if (element("pair").value) texts.push(element("pair").value);
  const started = performance.now();
  const answer = await model.answerTexts(texts, element("task").value);
  const milliseconds = Math.round(performance.now() - started);
  element("status").textContent = `Answered in ${milliseconds} ms.`;
  element("answer").textContent = JSON.stringify(answer);
  element("answer").hidden = false;
  element("bars").replaceChildren(...bars(answer.probabilities ?? {}));
}

/** Returns a table row with a bar for each class. */
function bars(probabilities) {
  return Object.entries(probabilities).map(([label, value]) => {
    const row = document.createElement("tr");
    const meter = document.createElement("meter");
    meter.value = value;
    row.insertCell().textContent = label;
    row.insertCell().append(meter);
    row.insertCell().textContent = value.toFixed(3);
    return row;
  });
}

function report(error) {
  element("status").textContent = "";
  element("error").textContent = error.message;
}

start().catch(report);
