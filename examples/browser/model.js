// A text model in the folder that `tf-adapters export --format=onnx` wrote.

import { Tokenizer } from "@huggingface/tokenizers";
import * as ort from "onnxruntime-web";

import { readMetadata } from "./metadata.js";

const FILES = ["model.onnx", "model_int8.onnx", "model_int8_static.onnx"];

/** Loads a model; returns its tasks and a function that answers texts. */
export async function loadModel(folder) {
  const [bytes, tokenizerFile] = await Promise.all([
    readFirst(FILES.map((name) => `${folder}/${name}`)),
    read(`${folder}/tokenizer.json`).then((file) => file.json()),
  ]);
  const metadata = readMetadata(new Uint8Array(bytes));
  // A file of several adapters has a description of each task.
  const tasks = metadata.tasks ? JSON.parse(metadata.tasks) : null;
  const alone = () => ({
    head: JSON.parse(metadata.head),
    labels: JSON.parse(metadata.labels),
    text_fields: JSON.parse(metadata.text_fields ?? "[]"),
  });
  const tokenizer = new Tokenizer(tokenizerFile, {});
  const prepared = tokenizerFile.normalizer?.lowercase ? withoutCapitalSigma : String;
  const session = await ort.InferenceSession.create(bytes);
  if (!tasks) check(session, alone().head);
  const answerTexts = async (texts, task) => {
    const facts = tasks ? tasks[task] : alone();
    checkTexts(texts, facts.text_fields);
    const maxLength = Number(metadata.max_length);
    const tokens = encode(tokenizer, texts.map(prepared), maxLength);
    const outputs = await session.run(feed(session, tokens, facts));
    return answer(outputs, facts);
  };
  return { tasks: Object.keys(tasks ?? {}), answerTexts };
}

/** Throws an error if the page cannot show the answers of a head. */
function check(session, head) {
  const names = session.outputNames;
  const isShown = names.includes("probabilities") || names.includes("score");
  if (!isShown || (head.windows ?? 1) > 1) {
    throw new Error(
      "This page shows classes and numbers of texts without windows. The " +
        `model's head is ${JSON.stringify(head)}.`,
    );
  }
}

/** Throws an error if there are not as many texts as the model reads. */
function checkTexts(texts, fields) {
  if (fields.length && texts.length !== fields.length) {
    throw new Error(
      `The model reads ${fields.join(" and ")}. Received: ${texts.length} ` +
        `text${texts.length === 1 ? "" : "s"}.`,
    );
  }
}

/** Returns the bytes of the first file that is there. */
async function readFirst([path, ...others]) {
  try {
    return await (await read(path)).arrayBuffer();
  } catch (error) {
    if (others.length === 0) throw error;
    return readFirst(others);
  }
}

async function read(path) {
  const response = await fetch(path);
  if (!response.ok) {
    throw new Error(`${path}: ${response.status} ${response.statusText}`);
  }
  return response;
}

/** Lowercases Σ as in training; JavaScript makes it ς at the end of a word. */
function withoutCapitalSigma(text) {
  return text.replaceAll("Σ", "σ");
}

/** Returns the token features of one text or a pair of texts. */
function encode(tokenizer, [text, pair], maxLength) {
  const tokens = tokenizer.encode(text, {
    text_pair: pair,
    return_token_type_ids: true,
  });
  const { ids, token_type_ids: segments } = tokens;
  if (ids.length > maxLength) {
    if (pair) {
      throw new Error(
        `The texts are ${ids.length} tokens together; the model reads at ` +
          `most ${maxLength}. Shorten one of them.`,
      );
    }
    // As in training: the text is cut, and the last token stays the last.
    ids.splice(maxLength - 1, ids.length - maxLength);
    segments.length = maxLength;
  }
  return { token_ids: ids, padding_mask: ids.map(() => 1), segment_ids: segments };
}

/** Returns the inputs of the file: a batch of one row. */
function feed(session, tokens, facts) {
  const values = { ...tokens, adapter_ids: [facts.adapter_id] };
  const inputs = {};
  for (const name of session.inputNames) {
    const row = Int32Array.from(values[name]);
    const shape = name === "adapter_ids" ? [1] : [1, row.length];
    inputs[name] = new ort.Tensor("int32", row, shape);
  }
  return inputs;
}

/** Returns what `run.py` prints for the same text. */
function answer(outputs, { head, labels }) {
  const rounded = (value) => Number(value.toFixed(6));
  if (labels.length === 0) return { score: rounded(outputs.score.data[0]) };
  const row = Array.from(outputs.probabilities.data).slice(0, labels.length);
  const probabilities = Object.fromEntries(
    labels.map((label, index) => [label, rounded(row[index])]),
  );
  if (head.threshold === undefined) {
    const label = labels[row.indexOf(Math.max(...row))];
    return { label, probabilities };
  }
  const there = labels.filter((_, index) => row[index] >= head.threshold);
  return { labels: there, probabilities };
}
