// Servers of npm and PyPI behind the page: kinds of results, progress, changes that reach other clients, neighbours in trouble.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { accessible, Board, eventually, expected, launch, open, picture, program, test } from "./board.mjs";
import { child, connectClient, everything, filesystem, media, memory, until } from "./peers.mjs";

const directory = mkdtempSync(join(tmpdir(), "switchboard-peers-"));
const gate = join(directory, "gate");
const documents = join(directory, "documents");
let board, browser, page, client;
const config = `switchboard:
  providers:
    - {name: demo, kind: demo}
  toolbox:
    mcps:
${media()}${everything()}${filesystem(documents)}${memory(join(directory, "memory.json"))}\
${child("silent", "sleep", ["3600"])}\
${child("late", "sh", ["-c", `until [ -e "$0" ]; do sleep 0.1; done; exec "$1" demo-server --stdio`, gate, program])}`;

before(async () => {
  mkdirSync(documents);
  writeFileSync(join(documents, "note.txt"), "read by a real server");
  board = await new Board(config).start();
  browser = await launch();
  page = await open(browser, board);
});

after(async () => {
  await client?.close();
  await browser?.close();
  await board?.close();
  rmSync(directory, { recursive: true, force: true });
});

const card = (name) => page.locator(`[data-server="${name}"]`);
const field = (name) => page.getByRole("textbox", { name: new RegExp(`^${name}`) });
const run = () => page.getByRole("button", { name: "Run" }).click();
const flip = (control) => control.evaluate((element) => element.click());

/** Calls a tool without arguments from its page. */
async function call(tool, outcome = "ok") {
  await page.visit(`/tools/${tool}`);
  await run();
  await page.locator("[data-call]").filter({ hasText: outcome }).waitFor();
}

test("servers start beside one that never answers, and one that starts late shows by itself", async () => {
  await page.visit("/servers");
  for (const name of ["media", "everything", "files", "memory"]) await card(name).getByText("ready").waitFor();
  await card("everything").getByText("17 tools").waitFor();
  await card("silent").getByText("connecting").waitFor();
  await card("late").getByText("connecting").waitFor();
  await accessible(page, "servers that start");
  writeFileSync(gate, "");
  await card("late").getByText("ready").waitFor();
  await card("late").getByText("6 tools").waitFor();
  await card("silent").getByText("connecting").waitFor();
  await picture(page, "servers-that-start");
});

test("results show by their kind: image, sound, table, structured content, links", async () => {
  await call("media.picture");
  const image = page.getByRole("img", { name: "Result of the tool" });
  assert.deepEqual(await image.evaluate(async (element) => { await element.decode(); return [element.naturalWidth, element.naturalHeight]; }), [24, 16]);
  await accessible(page, "an image");

  await call("media.sound");
  const seconds = await page.locator("audio").evaluate((element) => new Promise((resolve, reject) => {
    if (element.readyState > 0) return resolve(element.duration);
    element.addEventListener("loadedmetadata", () => resolve(element.duration));
    element.addEventListener("error", () => reject(new Error(element.error.message)));
  }));
  assert.equal(seconds, 0.25);
  await page.getByText("audio/wav, ").waitFor();
  await accessible(page, "a sound");

  await call("media.planets");
  await page.getByRole("row", { name: "Mars 2" }).waitFor();
  await page.getByText("Structured", { exact: true }).click();
  await page.getByRole("row", { name: "Venus 0" }).waitFor();
  await page.getByText("Raw", { exact: true }).click();
  await page.locator("pre[aria-label=Text]", { hasText: '"structuredContent": {' }).waitFor();

  await call("everything.get-tiny-image");
  assert.ok(await image.evaluate(async (element) => { await element.decode(); return element.naturalWidth > 0; }));
  await call("everything.get-resource-links");
  await page.getByText(/^resource_link: /).first().waitFor();
});

test("a form and JSON call real servers, and what one wrote another call reads", async () => {
  await page.visit("/tools/files.read_text_file");
  await field("path").fill(join(documents, "note.txt"));
  await field("path").press("Control+Enter");
  await page.locator("pre[aria-label=Text]", { hasText: "read by a real server" }).waitFor();

  await page.visit("/tools/memory.create_entities?as=json");
  const editor = page.getByRole("textbox", { name: "Arguments as JSON" });
  await editor.fill(JSON.stringify({ entities: [{ name: "Ada", entityType: "person", observations: ["writes programs"] }] }));
  await editor.press("Control+Enter");
  await page.locator("[data-call]").filter({ hasText: "ok" }).waitFor();
  await call("memory.read_graph");
  await page.getByText("Raw", { exact: true }).click();
  await page.locator("pre[aria-label=Text]", { hasText: "writes programs" }).waitFor();
});

test("progress of a real server shows in place, and a cancel reaches it", async () => {
  await page.visit("/tools/media.work");
  await field("steps").fill("600");
  await run();
  await page.getByText(/step \d+ \d+ \/ 600/).waitFor();
  const bar = page.getByRole("progressbar", { name: "Progress of the call" });
  await eventually(async () => assert.ok(Number(await bar.getAttribute("aria-valuenow")) < 100));
  await accessible(page, "progress");
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByText("You cancelled the call").waitFor();
  await page.visit("/servers/media");
  await page.getByLabel("Standard error of the server").getByText("work was cancelled").waitFor();
});

test("what a server asks in the middle of a call is answered in the page, or refused", async () => {
  expected("status of 422");
  await page.visit("/tools/media.ask");
  const question = page.getByRole("region", { name: "Question of media" });
  const said = (text) => page.locator("pre[aria-label=Text]", { hasText: text }).waitFor();
  await run();
  await question.getByText("What is your name?").waitFor();
  await question.getByRole("button", { name: "Answer", exact: true }).click();
  await question.getByText("missing required argument `value`").waitFor();
  await accessible(page, "a question");
  await picture(page, "question");
  await question.getByRole("textbox", { name: /^value/ }).fill("Ada");
  await question.getByRole("textbox", { name: /^value/ }).press("Control+Enter");
  await said("accept: Ada");
  await question.waitFor({ state: "detached" });

  await page.visit("/tools/everything.trigger-elicitation-request");
  const form = page.getByRole("region", { name: "Question of everything" });
  await run();
  await form.getByRole("button", { name: "Say no" }).click();
  await said(/declined/);
});

test("what the argument editor saves is what another MCP client sees", async () => {
  client = await connectClient(board.url, "second-client");
  const echo = async () => (await client.listTools()).tools.find(({ name }) => name === "everything__echo");
  assert.equal((await echo()).inputSchema.properties.message.description, "Message to echo");
  const before = client.changes;
  await page.visit("/tools/everything.echo?tab=arguments");
  await page.getByRole("button", { name: "Declare message" }).click();
  await page.locator('[data-argument="message"]').getByLabel("Description").fill("Said by the page");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved. It is in force for everybody.").waitFor();
  await until("the client hears of it", () => client.changes, (count) => count > before);
  assert.equal((await echo()).inputSchema.properties.message.description, "Said by the page");
});

test("a toolset that is switched off for one client is gone for it, and stays for the others", async () => {
  const other = await connectClient(board.url, "third-client");
  const names = async (each) => (await each.listTools()).tools.map(({ name }) => name);
  assert.ok((await names(client)).includes("memory__read_graph"));
  const before = client.changes;
  await page.visit("/sessions");
  await page.getByRole("row", { name: /second-client/ }).getByRole("link").first().click();
  await page.getByRole("switch", { name: "Toolset memory" }).waitFor();
  await flip(page.getByRole("switch", { name: "Toolset memory" }));
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByRole("region", { name: "Changes that are not made yet" }).waitFor({ state: "detached" });
  await until("the client hears of it", () => client.changes, (count) => count > before);
  assert.deepEqual((await names(client)).filter((name) => name.startsWith("memory")), []);
  assert.ok((await names(other)).includes("memory__read_graph"));
  await other.close();
});

test("the demo model calls a tool of a real server in a chat", async () => {
  await page.visit("/chat");
  const box = page.getByRole("textbox", { name: "Message" });
  await box.fill('/call everything__get-sum {"a": 40, "b": 2}');
  await box.press("Enter");
  const card = page.locator(".call[data-state=done]", { hasText: "get-sum" });
  await card.waitFor();
  await card.locator("summary").click();
  await card.getByLabel("Text", { exact: true }).getByText("The sum of 40 and 2 is 42").waitFor();
});

test("a tool that no provider can be told is quarantined with its reason, and the others are shown", async () => {
  const api = `${board.url}/api/v1`;
  assert.equal((await page.request.post(`${api}/sessions`, { data: { id: "work" } })).status(), 201);
  await page.visit("/renderings?session=work&providers=anthropic,gemini&only=missing");
  await page.getByText(/^0 of \d+ match/).waitFor();
  await page.request.post(`${api}/tools/media.swell/call`, { data: { arguments: { kib: 1100 } } });
  await page.getByText(/^1 of \d+ match/).waitFor();
  await page.getByRole("button", { name: "media__large" }).click();
  const alerts = page.getByRole("alert").filter({ hasText: "quarantined" });
  await eventually(async () => {
    assert.equal(await alerts.count(), 2);
    assert.match(await alerts.first().innerText(), /its schema has \d+ KiB; the limit is 1024 KiB/);
    assert.match(await page.getByRole("row", { name: /^anthropic / }).innerText(), /\b1\b/);
  });
});
