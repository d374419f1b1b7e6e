// Tools: the list, its filters, and a tool page on which calls are made.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { accessible, Board, copied, demo, eventually, expected, launch, open, picture, test } from "./board.mjs";

let board, browser, page;
const config = (tools) => `switchboard:
  toolbox:
    tools:
${tools.map((name) => `      - name: ${name}\n`).join("")}    mcps:
${demo.replace("timeout: 30s}", "timeout: 30s, max_result_bytes: 4096}")}`;

before(async () => {
  board = await new Board(config(["sum_numbers"])).start();
  browser = await launch();
  page = await open(browser, board);
});

after(async () => {
  await browser?.close();
  await board?.close();
});

const row = (name) => page.locator("tr[data-row]", { has: page.locator(`[data-tool="${name}"]`) });
const field = (name) => page.getByRole("textbox", { name: new RegExp(`^${name}`) });

/** The call in the history that had these arguments. */
const past = (args) => page.locator("[data-past]").filter({ has: page.getByText(args, { exact: true }) });

async function called(outcome) {
  const status = page.locator("[data-call]");
  await status.filter({ hasText: outcome }).waitFor();
  return status.getAttribute("data-call");
}

test("the list shows every tool, and its search and filters are in the address", async () => {
  await page.visit("/tools");
  await row("demo.echo").waitFor();
  assert.match(await page.getByText(/at revision/).innerText(), /^7 tools, 2 hidden at revision \d+$/);
  await page.getByLabel("Search").fill("wait");
  await page.getByText(/^1 of 9 tools match/).waitFor();
  assert.match(page.url(), /\?q=wait$/);
  await page.reload();
  await page.getByText(/^1 of 9 tools match/).waitFor();
  await page.getByLabel("Search").fill("");
  await page.getByLabel("Server").selectOption("local");
  await page.getByText(/^3 of 9 tools match/).waitFor();
  assert.match(page.url(), /server=local/);
  await page.visit("/tools");
  await row("demo.echo").waitFor();
  await accessible(page, "tools");
  await picture(page, "tools");
});

test("a tool is called from its form, and the result stands beside it", async () => {
  await page.visit("/tools/local.sum_numbers");
  await field("a").fill("20");
  await field("b").fill("22");
  await field("b").press("Control+Enter");
  await called("ok");
  await eventually(async () => assert.match(await page.locator("pre[aria-label=Text]").first().innerText(), /^42$/));
  assert.equal(await field("a").inputValue(), "20");
  await accessible(page, "tool");
  await picture(page, "tool");
});

test("form and JSON are two views of one draft that survives a reload", async () => {
  await page.getByText("JSON", { exact: true }).first().click();
  const editor = page.getByRole("textbox", { name: "Arguments as JSON" });
  const written = async () => JSON.parse((await editor.innerText()).replaceAll("\u00a0", " "));
  await eventually(async () => assert.deepEqual(await written(), { a: 20, b: 22 }));
  await editor.fill('{"a": 1, "b": 41');
  await page.getByText("This is not a JSON object yet").waitFor();
  await page.reload();
  await eventually(async () => assert.match(await editor.innerText(), /"b": 41$/));
  await editor.fill('{"a": 1, "b": 41}');
  await page.getByText("Form", { exact: true }).click();
  await eventually(async () => assert.equal(await field("b").inputValue(), "41"));
  await field("b").press("Control+Enter");
  await called("ok");
});

test("wrong arguments are marked at their field before and after sending", async () => {
  expected("status of 422");
  await field("a").fill("twelve");
  await page.getByText('"twelve" is not of type "number"').first().waitFor();
  await page.getByLabel("How b is sent").selectOption("left out");
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByRole("alert").filter({ hasText: "invalid arguments" }).waitFor();
  await page.getByText("missing required argument `b`").first().waitFor();
});

test("text of a server is never markup, and a failing tool says so", async () => {
  await page.visit("/tools/demo.fail");
  await field("message").fill("<b>no</b>");
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByRole("alert").filter({ hasText: "The tool reports an error" }).waitFor();
  await page.locator("pre[aria-label=Text]", { hasText: "<b>no</b>" }).first().waitFor();
  assert.equal(await page.locator("b").count(), 0);
});

test("left out and empty are two things, and both are kept", async () => {
  await page.visit("/tools/demo.echo");
  const sent = page.getByLabel("How text is sent");
  const isSent = (word) => eventually(async () => assert.equal(await sent.locator("option:checked").innerText(), word));
  await isSent("left out");
  await field("text").fill("x");
  await field("text").fill("");
  await isSent("empty");
  await field("text").press("Control+Enter");
  await called("ok");
  await page.reload();
  await isSent("empty");
});

test("a running call shows its progress, is cancelled in place, and goes on when the screen is left", async () => {
  await page.visit("/tools/demo.wait");
  await field("ms").fill("600000");
  await field("ms").press("Control+Enter");
  await page.getByRole("button", { name: "Cancel" }).waitFor();
  await page.getByRole("link", { name: "Servers" }).click();
  await page.getByRole("heading", { name: "Servers", level: 1 }).waitFor();
  await page.goBack();
  await page.getByText(/\d \/ \d+/).waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByText("You cancelled the call").waitFor();
});

test("history loads the arguments of an earlier call", async () => {
  await page.visit("/tools/local.sum_numbers");
  await past('{"a":20,"b":22}').getByRole("button", { name: "Load" }).click();
  await eventually(async () => assert.deepEqual([await field("a").inputValue(), await field("b").inputValue()], ["20", "22"]));
});

test("two calls of the history are compared", async () => {
  await field("a").fill("21");
  await field("b").fill("22");
  await field("b").press("Control+Enter");
  // Each call by its arguments: this one is listed when it has ended.
  await past('{"a":21,"b":22}').getByRole("button", { name: "Compare" }).click();
  await page.getByText("Choose another call to compare with.").waitFor();
  await past('{"a":20,"b":22}').getByRole("button", { name: "Compare" }).click();
  const difference = page.getByLabel("The older call beside the newer one");
  await eventually(async () => assert.match(await difference.innerText(), /removed:\s+"a": 20,[\s\S]*added:\s+"a": 21,/));
  await accessible(page, "comparison");
});

test("a large result is cut, and read as a whole on request", async () => {
  await page.visit("/tools/demo.lorem");
  await field("bytes").fill("6000");
  await field("bytes").press("Control+Enter");
  await called("ok");
  await page.getByRole("button", { name: "Load all" }).click();
  const whole = page.getByLabel("The whole result");
  await eventually(async () => assert.ok((await whole.innerText()).length >= 6000));
});

test("a call is copied for other programs", async () => {
  await page.visit("/tools/local.sum_numbers");
  await field("a").fill("20");
  await field("b").fill("22");
  await page.getByText("Copy as code").click();
  await page.getByLabel("The call for curl").getByText('{"arguments":{"a":20,"b":22}}').waitFor();
  const text = await copied(page, page.locator("details", { hasText: "Copy as code" }).getByRole("button", { name: "Copy", exact: true }));
  assert.equal(text, `curl ${board.url}/api/v1/tools/local.sum_numbers/call \\\n  -H "Content-Type: application/json" \\\n  -d '{"arguments":{"a":20,"b":22}}'`);
});

test("limits name the place that they come from", async () => {
  await page.visit("/tools/demo.wait?tab=definition");
  const limits = page.getByRole("row", { name: /Calls at once/ });
  await limits.filter({ hasText: /4.*switchboard\.yaml:\d+:\d+ \(defaults of demo\)/ }).waitFor();
  await accessible(page, "definition");
});

test("a change of the configuration shows by itself", async () => {
  await page.visit("/tools");
  await row("demo.echo").waitFor();
  board.write(config(["sum_numbers", "multiply_numbers"]));
  await row("local.multiply_numbers").waitFor({ timeout: 15000 });
});
