// The page at `/`, as a person uses it: a real board, a real browser.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

const { chromium } = await import(process.env.PLAYWRIGHT_CORE);
const program = process.env.SWITCHBOARD;
const directory = mkdtempSync(join(tmpdir(), "switchboard-page-"));
const config = join(directory, "switchboard.yaml");
let board, url, browser, page;
const complaints = [];

function write(tools) {
  const entries = tools.map((name) => `      - name: ${name}\n`).join("");
  writeFileSync(config, `switchboard:
  toolbox:
    tools:
${entries}    mcps:
      - name: demo
        transport: stdio
        command: ${JSON.stringify(program)}
        args: [demo-server, --stdio]
        mode: dynamic
        default_tool_config: {max_instances: 4, timeout: 5s}
`);
}

before(async () => {
  write(["sum_numbers"]);
  board = spawn(program, ["--config", config, "--data-dir", join(directory, "data"), "--json", "serve", "--listen", "127.0.0.1:0"], { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  url = await new Promise((resolve, reject) => {
    board.stdout.on("data", (chunk) => {
      said += chunk;
      try { resolve(JSON.parse(said).url); } catch { /* not whole yet */ }
    });
    board.on("exit", (code) => reject(new Error(`switchboard ended with ${code}`)));
  });
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  page = await browser.newPage();
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(url);
});

after(async () => {
  await browser?.close();
  board?.kill("SIGTERM");
  rmSync(directory, { recursive: true, force: true });
});

const row = (name) => page.locator("#tools tbody tr", { has: page.getByText(name, { exact: true }) });

async function tryTool(name, text) {
  await page.getByRole("button", { name: `Try ${name}` }).click();
  await page.locator("#arguments").fill(text);
  await page.locator("#run").click();
  await page.waitForFunction(() => { const answer = document.getElementById("answer"); return !answer.hidden && answer.textContent !== "Running…"; });
  const answer = await page.locator("#answer").textContent();
  await page.locator("#close").click();
  return answer;
}

test("it shows the servers and the tools with their limits", async () => {
  await row("demo.echo").waitFor();
  assert.match(await page.locator("#summary").textContent(), /^ready: 7 tools at revision \d+$/);
  const server = await page.locator("#servers tbody tr").innerText();
  for (const word of ["demo", "ready", "legacy", "stdio", "dynamic"]) assert.ok(server.includes(word), server);
  assert.match(await row("demo.echo").innerText(), /4 at once, 5s/);
});

test("a tool can be tried, and the call shows up", async () => {
  assert.match(await tryTool("local.sum_numbers", '{"a": 20, "b": 22}'), /"text": "42"/);
  await page.locator("#calls tbody tr", { hasText: "local.sum_numbers" }).first().waitFor();
});

test("wrong arguments and failing tools say what is wrong", async () => {
  assert.match(await tryTool("local.sum_numbers", '{"a": "x"}'), /missing required argument `b`/);
  assert.match(await tryTool("local.sum_numbers", "{oops"), /not JSON/);
  assert.match(await tryTool("demo.fail", '{"message": "<b>no</b>"}'), /<b>no<\/b>/);
});

test("text of a server is never markup", async () => {
  assert.equal(await page.locator("b").count(), 0);
});

test("a change of the configuration shows by itself", async () => {
  write(["sum_numbers", "multiply_numbers"]);
  await row("local.multiply_numbers").waitFor({ timeout: 15000 });
});

test("the page and the keyboard get along", async () => {
  await page.getByRole("button", { name: "Try demo.echo" }).focus();
  await page.keyboard.press("Enter");
  assert.ok(await page.locator("#try").evaluate((dialog) => dialog.open));
  await page.keyboard.press("Escape");
  assert.ok(!(await page.locator("#try").evaluate((dialog) => dialog.open)));
});

test("the page of the API shows every operation and shape", async () => {
  await page.goto(url);
  await page.getByRole("link", { name: "API" }).click();
  await page.locator("#callTool").waitFor();
  const api = await (await page.request.get(`${url}/api/v1/openapi.json`)).json();
  const operations = Object.values(api.paths).flatMap((item) => Object.values(item));
  for (const { operationId, summary } of operations) assert.ok((await page.locator(`#${operationId}`).innerText()).includes(summary), operationId);
  for (const name of Object.keys(api.components.schemas)) assert.equal(await page.locator(`#schema-${name}`).count(), 1, name);
  const call = await page.locator("#callTool").innerText();
  for (const word of ["POST", "/api/v1/tools/{name}/call", "CallBody", "422", "application/problem+json"]) assert.ok(call.includes(word), word);
  assert.match(await page.locator("#listCalls").innerText(), /at least 1, at most 1000, default 20/);
});

test("nothing was refused by the policy and nothing threw", () => {
  const unexpected = complaints.filter((text) => !text.includes("422"));
  assert.deepEqual(unexpected, []);
});
