// Sessions: chats and MCP clients, and changes of what they see, made by several people at once.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { accessible, Board, demo, expected, launch, middle, open, picture, test } from "./board.mjs";

let board, browser, page;
const config = `switchboard:
  toolbox:
    tools:
      - name: sum_numbers
      - name: multiply_numbers
    mcps:
${demo}  toolsets:
    - name: waiting
      description: Tools that take time
      when_to_use: To see progress
      tools: [demo.wait]
`;

before(async () => {
  board = await new Board(config).start();
  browser = await launch();
  page = await open(browser, board);
});

after(async () => {
  await browser?.close();
  await board?.close();
});

const api = (path, init = {}) => fetch(`${board.url}/api/v1${path}`, { headers: { "content-type": "application/json" }, ...init });
const view = async (id) => (await api(`/sessions/${id}`)).json();
const change = (id, body, when = "") => api(`/sessions/${id}${when}`, { method: "PATCH", body: JSON.stringify(body) });
const make = async (id, more = {}) => {
  const made = await api("/sessions", { method: "POST", body: JSON.stringify({ id, title: `The ${id}`, provider: "demo", ...more }) });
  assert.equal(made.status, 201, await made.clone().text());
};
const toolSwitch = (name, tab = page) => tab.getByRole("switch", { name: `Tool ${name}` });
const setSwitch = (name, tab = page) => tab.getByRole("switch", { name: `Toolset ${name}` });
/** The switch itself is hidden behind its picture; its label takes the click. */
const flip = (control) => control.evaluate((element) => element.click());
const revision = (tab = page) => tab.getByRole("status", { name: /^Revision \d+$/ });
const atRevision = (number, tab = page) => tab.getByRole("status", { name: `Revision ${number}`, exact: true }).waitFor();
const bar = (tab = page) => tab.getByRole("region", { name: "Changes that are not made yet" });

/** Begins a session of the MCP protocol, as a client does. */
async function connect(name) {
  const body = { jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name, version: "1.2" } } };
  const response = await fetch(`${board.url}/mcp`, { method: "POST", headers: { "content-type": "application/json", accept: "application/json, text/event-stream" }, body: JSON.stringify(body) });
  assert.equal(response.status, 200);
  await response.text();
  return response.headers.get("mcp-session-id");
}

test("an empty list leads to the next step", async () => {
  await page.visit("/sessions");
  await page.getByRole("link", { name: "Begin a chat" }).waitFor();
  await accessible(page, "no sessions");
});

test("chats and MCP clients are listed as they come, and filters are in the address", async () => {
  await make("report");
  await page.getByRole("link", { name: "The report" }).waitFor();
  await connect("some-client");
  await page.getByRole("row", { name: /some-client/ }).first().waitFor();
  await accessible(page, "sessions");
  await picture(page, "sessions");
  await page.getByText("MCP clients", { exact: true }).click();
  await page.getByText("1 of 2").waitFor();
  assert.match(page.url(), /kind=client/);
  await page.reload();
  await page.getByText("1 of 2").waitFor();
  await page.visit("/sessions?q=REPORT");
  await page.getByText("1 of 2").waitFor();
  await page.visit("/sessions?q=nothing");
  await page.getByRole("button", { name: "Show all 2" }).click();
  await page.getByText("2 of 2").waitFor();
});

test("a session is made in the page, and ended after a question", async () => {
  expected("status of 422", "status of 404");
  await page.getByRole("button", { name: "New session" }).click();
  await page.getByRole("textbox", { name: "Id" }).fill("no spaces here");
  await page.getByRole("button", { name: "Make the session" }).click();
  await page.getByRole("region", { name: "New session" }).getByRole("alert").waitFor();
  await accessible(page, "new session");
  await page.getByRole("textbox", { name: "Id" }).fill("short-lived");
  await page.getByRole("button", { name: "Make the session" }).click();
  await page.waitForURL(/\/sessions\/short-lived$/);
  await page.getByRole("button", { name: "Copy", exact: true }).click();
  await page.waitForURL((url) => !url.pathname.endsWith("short-lived"));
  await page.goBack();
  await page.getByRole("heading", { level: 1, name: "short-lived", exact: true }).waitFor();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete it and what was said" }).click();
  await page.waitForURL(/\/sessions$/);
  assert.equal((await api("/sessions/short-lived")).status, 404);
});

test("every tool has its switch and the reason for its state; what a change does shows before it is made", async () => {
  // The page may still be asking for the session that the test before has deleted.
  expected("/sessions/short-lived/");
  await page.visit("/sessions/report");
  await page.getByText("8 of 8 match; 8 are on").waitFor();
  await flip(toolSwitch("demo.fail"));
  await flip(setSwitch("waiting"));
  await bar().getByText("2 changes not made yet").waitFor();
  await bar().getByText(/Removes 2: .*demo__wait/).waitFor();
  await bar().getByText(/anthropic: \d+ tokens \(−\d+\).* · openai: \d+ tokens \(−\d+\)/).waitFor();
  assert.equal((await view("report")).tools_revision, 1, "nothing is changed yet");
  await page.reload();
  await bar().getByText("2 changes not made yet").waitFor();
  await bar().getByText(/Removes 2: /).waitFor();
  await accessible(page, "a change");
  await picture(page, "session");
  await flip(setSwitch("waiting"));
  await bar().getByText("1 change not made yet").waitFor();
  await bar().getByRole("button", { name: "Apply" }).click();
  await atRevision(2);
  await bar().waitFor({ state: "detached" });
  assert.deepEqual((await view("report")).tools, { "demo.fail": false });
  await page.getByText("switched off here").waitFor();
  await page.getByText("8 of 8 match; 7 are on").waitFor();
  await page.getByText("removed demo__fail").waitFor();
});

test("all that match a search are switched together, in one step", async () => {
  await page.getByLabel("Search").pressSequentially("numbers local", { delay: 20 });
  await page.getByText("2 of 8 match").waitFor();
  assert.match(page.url(), /q=numbers/);
  await page.getByRole("button", { name: "Switch off all 2 that match" }).click();
  await bar().getByText("2 changes not made yet").waitFor();
  await bar().getByRole("button", { name: "Apply" }).click();
  await atRevision(3);
  await page.getByText("2 of 8 match; 5 are on").waitFor();
  await page.getByRole("button", { name: "Leave 2 to their toolsets" }).click();
  await bar().getByText(/Adds 2: /).waitFor();
  await bar().getByRole("button", { name: "Apply" }).click();
  await atRevision(4);
  assert.deepEqual((await view("report")).tools, { "demo.fail": false });
});

test("servers are bound, and a tool says that its server is not", async () => {
  await page.visit("/sessions/report");
  await flip(page.getByRole("switch", { name: /^All servers/ }));
  await page.getByRole("checkbox", { name: "local", exact: true }).uncheck();
  await bar().getByText(/Removes 2: /).waitFor();
  await bar().getByRole("button", { name: "Apply" }).click();
  await atRevision(5);
  assert.deepEqual((await view("report")).servers, ["demo"]);
  await page.getByText("the session is not bound to local").first().waitFor();
  await flip(page.getByRole("switch", { name: /^All servers/ }));
  await bar().getByRole("button", { name: "Apply" }).click();
  await atRevision(6);
});

test("two who change at once: nothing is lost, and each sees what the other did", async () => {
  expected("status of 409");
  await make("shared");
  const other = await open(browser, board);
  await page.visit("/sessions/shared");
  await other.visit("/sessions/shared");
  await toolSwitch("demo.echo").waitFor();
  await toolSwitch("demo.echo", other).waitFor();
  await flip(toolSwitch("demo.echo"));
  await bar().getByText("1 change not made yet").waitFor();
  await flip(toolSwitch("demo.lorem", other));
  await bar(other).getByRole("button", { name: "Apply" }).click();
  await atRevision(2, other);
  await atRevision(2);
  await page.waitForFunction(() => document.querySelector('[aria-label="Tool demo.lorem"]')?.checked === false);
  await bar().getByRole("button", { name: "Apply" }).click();
  const conflict = bar().getByRole("alert").filter({ hasText: "Somebody else changed this session" });
  await conflict.getByText("Revision 2 removed demo__lorem").waitFor();
  await accessible(page, "conflict");
  await bar().getByRole("button", { name: "Apply" }).click();
  await atRevision(3);
  await atRevision(3, other);
  assert.deepEqual((await view("shared")).tools, { "demo.echo": false, "demo.lorem": false });
  await other.context().close();
});

test("a tool that a server adds is there within a second", async () => {
  await page.visit("/sessions/shared");
  await atRevision(3);
  const times = [];
  for (const step of [4, 5, 6]) {
    await api("/tools/demo.toggle_surprise/call", { method: "POST", body: "{}" });
    const from = Date.now();
    await atRevision(step);
    await toolSwitch("demo.surprise").waitFor({ state: step === 5 ? "detached" : "visible" });
    times.push(Date.now() - from);
  }
  console.log(`list_changed on the screen after ${times.join(", ")} ms`);
  assert.ok(middle(times) < 1000, `${times} ms`);
  await page.getByText("added demo__surprise").first().waitFor();
  await api("/tools/demo.toggle_surprise/call", { method: "POST", body: "{}" });
  await atRevision(7);
});

test("while a turn runs, a change is for now or for the next turn", async () => {
  await make("busy");
  await page.visit("/sessions/busy");
  await toolSwitch("demo.fail").waitFor();
  const turn = api("/sessions/busy/turns", { method: "POST", body: JSON.stringify({ id: "t1", message: "/slow 600" }) });
  await page.getByText(/a turn runs/).waitFor();
  await flip(toolSwitch("demo.fail"));
  await bar().getByRole("button", { name: "From the next turn on" }).click();
  await atRevision(2);
  assert.equal((await (await api("/sessions/busy/turns/t1")).json()).tools_revision, 1, "the turn goes on with its tools");
  await page.getByText("a turn runs with the tools of revision 1").waitFor();
  await flip(toolSwitch("demo.echo"));
  await bar().getByRole("button", { name: "Now: ask the model again" }).click();
  await atRevision(3);
  await page.waitForFunction(async () => {
    const { turns } = await (await fetch("/api/v1/sessions/busy/turns")).json();
    return turns[0].tools_revision === 3;
  });
  await api("/sessions/busy/turns/t1/cancel", { method: "POST" });
  assert.equal((await (await turn).json()).tools_revision, 3);
  await page.getByText(/a turn runs/).waitFor({ state: "detached" });
});

test("a session that is not there says so, and 320 pixels are enough", async () => {
  expected("status of 404");
  await page.goto(`${board.url}/sessions/nobody`);
  await page.getByRole("alert").filter({ hasText: "there is no session 'nobody'" }).waitFor();
  await page.setViewportSize({ width: 320, height: 640 });
  for (const path of ["/sessions", "/sessions/report"]) {
    await page.visit(path);
    await page.getByText(/of \d+/).first().waitFor();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 320), path);
    await accessible(page, `narrow ${path}`);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
});
