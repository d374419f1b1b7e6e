// The page of the API document.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { Board, demo, launch, open, test } from "./board.mjs";

let board, browser, page;

before(async () => {
  board = await new Board(`switchboard:\n  toolbox:\n    mcps:\n${demo}`).start();
  browser = await launch();
  page = await open(browser, board);
});

after(async () => {
  await browser?.close();
  await board?.close();
});

test("the page of the API shows every operation and shape", async () => {
  await page.visit("/");
  await page.getByRole("link", { name: "API" }).click();
  await page.locator("#callTool").waitFor();
  const api = await (await page.request.get(`${board.url}/api/v1/openapi.json`)).json();
  const operations = Object.values(api.paths).flatMap((item) => Object.values(item));
  for (const { operationId, summary } of operations) assert.ok((await page.locator(`#${operationId}`).innerText()).includes(summary), operationId);
  for (const name of Object.keys(api.components.schemas)) assert.equal(await page.locator(`#schema-${name}`).count(), 1, name);
  const call = await page.locator("#callTool").innerText();
  for (const word of ["POST", "/api/v1/tools/{name}/call", "CallBody", "422", "application/problem+json"]) assert.ok(call.includes(word), word);
  assert.match(await page.locator("#listCalls").innerText(), /at least 1, at most 1000, default 20/);
});

test("unknown paths of interfaces stay problems, and pages of programs too", async () => {
  const interfaces = ["api/v1", "mcp", "s", "openai/v1", "anthropic/v1", "gemini/v1beta", "agents", "trustgraph", "oauth", ".well-known", "healthz", "readyz", "metrics"];
  for (const path of ["/connect", ...interfaces.map((name) => `/${name}/nothing`)]) {
    const response = await page.request.get(board.url + path, { headers: { accept: "text/html" } });
    assert.ok(response.status() >= 400 && response.headers()["content-type"].includes("json"), `${path}: ${response.status()} ${response.headers()["content-type"]}`);
  }
  const mistyped = await page.request.get(`${board.url}/nothing`, { headers: { accept: "application/json" } });
  assert.equal(mistyped.status(), 404);
  const opened = await page.request.get(`${board.url}/tools/demo.echo`, { headers: { accept: "text/html" } });
  assert.equal(opened.status(), 200);
  assert.equal(opened.headers()["cache-control"], "no-store");
});
