// Opens the page in a headless Chromium, types texts and prints the answer.
//
//     node try_page.mjs [--task=TASK] [--screenshot=FILE.png] TEXT [TEXT]
//
// CHROMIUM is the path of the browser; default: /usr/bin/chromium.

import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join, normalize } from "node:path";
import { parseArgs } from "node:util";

import puppeteer from "puppeteer-core";

const FOLDER = import.meta.dirname;
const TYPES = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".json": "application/json",
  ".wasm": "application/wasm",
};

/** Serves this folder on a free port of this machine. */
async function serve() {
  const server = createServer(async (request, response) => {
    const path = normalize(new URL(request.url, "http://localhost").pathname);
    try {
      const content = await readFile(join(FOLDER, decodeURIComponent(path)));
      response.setHeader("Content-Type", TYPES[extname(path)] ?? "");
      response.end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

/** Returns the JSON line that the page shows, or throws its error. */
async function ask(page, address, texts, task) {
  await page.goto(address);
  await page.waitForSelector("#form:not([hidden]), #error:not(:empty)");
  if (await page.$("#form:not([hidden])")) {
    if (task) await page.select("#task", task);
    await page.type("#text", texts[0]);
    if (texts[1]) await page.type("#pair", texts[1]);
    await page.click("button");
    await page.waitForSelector("#answer:not([hidden]), #error:not(:empty)");
  }
  const error = await page.$eval("#error", (element) => element.textContent);
  if (error) throw new Error(error);
  return page.$eval("#answer", (element) => element.textContent);
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { task: { type: "string" }, screenshot: { type: "string" } },
});
const server = await serve();
const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  // As root, Chromium starts only without its sandbox.
  args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
});
try {
  const page = await browser.newPage();
  const address = `http://127.0.0.1:${server.address().port}/index.html`;
  console.log(await ask(page, address, positionals, values.task));
  if (values.screenshot) {
    await page.screenshot({ path: values.screenshot, fullPage: true });
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  await browser.close();
  server.close();
}
