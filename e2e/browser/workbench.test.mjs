// The frame of Workbench and its other screens: first run, palette, narrow screens, calls, configuration, keys, declarations.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { accessible, Board, copied, demo, eventually, expected, launch, open, picture, test } from "./board.mjs";

let board, browser, page;
const config = (more = "") => `switchboard:
  toolbox:
    tools:
      - name: sum_numbers
${more}    mcps:
${demo}`;

before(async () => {
  board = await new Board(config()).start();
  browser = await launch();
  page = await open(browser, board);
});

after(async () => {
  await browser?.close();
  await board?.close();
});

test("the first run ends in a tool call that worked", async () => {
  await page.visit("/");
  await page.getByRole("button", { name: "Call local.sum_numbers" }).click();
  await page.locator("[data-call]").filter({ hasText: "ok" }).waitFor();
  await eventually(async () => assert.equal(await page.locator("section[data-done]").count(), 2));
  await accessible(page, "first run");
  await picture(page, "start");
});

test("each of the six clients gets an entry to copy", async () => {
  for (const client of ["Claude Code", "Claude Desktop", "Cursor", "VS Code", "Codex", "Gemini CLI"]) {
    await page.getByText(client, { exact: true }).click();
    await page.getByLabel(`Entry for ${client}`).getByText(`${board.url}/mcp`).waitFor();
  }
  assert.match(await copied(page, page.getByRole("button", { name: "Copy the entry" })), /httpUrl/);
});

test("Ctrl+K finds a tool, from within a field too", async () => {
  await page.visit("/tools");
  await page.getByLabel("Search").focus();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: /Find/ }).fill("echo");
  await page.getByRole("option", { name: /demo\.echo/ }).waitFor();
  await accessible(page, "palette");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: /demo\.echo/ }).waitFor();
  assert.ok(page.url().endsWith("/tools/demo.echo"));
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: /Find/ }).fill("new session");
  await page.getByRole("option", { name: /New session/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "New session" }).waitFor();
  assert.ok(page.url().includes("/sessions?new"));
});

test("every screen fits 320 px and is reached by the navigation", async () => {
  const narrow = await open(browser, board, { viewport: { width: 320, height: 640 } });
  const fits = (what) => eventually(async () => {
    const wide = await narrow.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 320, `${what} is ${wide} px wide`);
  });
  await narrow.visit("/");
  for (const name of ["Servers", "Tools", "Toolsets", "Sessions", "Chat", "Renderings", "Calls", "Configuration", "Keys"]) {
    await narrow.getByRole("button", { name: "Open the navigation" }).click();
    await narrow.getByRole("navigation").getByRole("link", { name, exact: true }).click();
    await narrow.getByRole("heading", { level: 1 }).waitFor();
    await narrow.waitForFunction((wanted) => document.title.includes(wanted), name);
    await narrow.getByRole("status", { name: "Loading" }).first().waitFor({ state: "detached" });
    await fits(name);
  }
  for (const path of ["/tools/demo.echo", "/tools/demo.echo?tab=definition", "/tools/demo.echo?tab=arguments", "/servers/demo", "/nowhere"]) {
    await narrow.visit(path);
    await narrow.getByRole("status", { name: "Loading" }).first().waitFor({ state: "detached" });
    await fits(path);
  }
  await narrow.context().close();
});

test("calls are listed with filters in the address, and a record has a page", async () => {
  await page.visit("/calls");
  await page.locator("[data-record]").first().waitFor();
  await page.getByLabel("Outcome").selectOption("timeout");
  await page.getByText("No calls match").waitFor();
  assert.match(page.url(), /outcome=timeout/);
  await page.visit("/calls?tool=local.sum_numbers");
  await page.locator("[data-record]").first().waitFor();
  for (let number = 0; number < 12; number += 1) {
    const [tool, sent] = number % 4 === 3 ? ["demo.fail", {}] : ["demo.echo", { text: "x".repeat(number) }];
    await page.request.post(`${board.url}/api/v1/tools/${tool}/call`, { data: { arguments: sent } });
  }
  await page.visit("/calls?period=1h");
  await page.getByRole("img", { name: /^\d+ calls in the last hour, \d+ failed/ }).waitFor();
  await page.getByText("How long they ran, and how many failed").click();
  await page.waitForURL(/by=tool/);
  await page.getByRole("region", { name: "Calls by tool" }).getByRole("row", { name: /local\.sum_numbers/ }).waitFor();
  await page.getByLabel("For each").selectOption("outcome");
  await page.reload();
  await page.getByRole("region", { name: "Calls by outcome" }).getByRole("row", { name: /^ok/ }).waitFor();
  await accessible(page, "calls");
  await picture(page, "calls");
  await page.locator("[data-record] a").first().click();
  await page.getByText("Digest of the arguments").waitFor();
  await accessible(page, "call");
});

test("new calls wait behind a button instead of moving the rows", async () => {
  await page.visit("/calls");
  await page.locator("[data-record]").first().waitFor();
  await page.locator('[data-status="live"]').waitFor();
  const before = await page.locator("[data-record]").count();
  await page.request.post(`${board.url}/api/v1/tools/demo.echo/call`, { data: { arguments: { text: "x" } } });
  await page.getByRole("button", { name: "Show 1 new" }).waitFor();
  assert.equal(await page.locator("[data-record]").count(), before);
  await page.getByRole("button", { name: "Show 1 new" }).click();
  await page.waitForFunction((count) => document.querySelectorAll("[data-record]").length === count, before + 1);
});

test("settings show their place, and a refused file its errors", async () => {
  await page.visit("/config");
  await page.getByText(/switchboard\.yaml:\d+:\d+/).first().waitFor();
  await accessible(page, "configuration");
  await picture(page, "configuration");
  board.write(config("        timeout: forever\n"));
  await page.getByRole("alert").filter({ hasText: "The file on the disk is refused" }).waitFor({ timeout: 15000 });
  await accessible(page, "refused configuration");
  board.write(config());
  await page.getByRole("alert").filter({ hasText: "The file on the disk is refused" }).waitFor({ state: "detached", timeout: 15000 });
});

test("arguments are declared with a preview, and refused edits keep their text", async () => {
  expected("status of 422");
  await page.visit("/tools/demo.echo?tab=arguments");
  await page.getByRole("button", { name: "Declare text" }).click();
  const entry = page.locator('[data-argument="text"]');
  await entry.getByLabel("Description").fill("What to repeat");
  await entry.getByLabel("Choices").fill("yes, no");
  await page.getByLabel("The resulting schema").getByText(/What to repeat/).waitFor();
  await eventually(async () => assert.match(await page.getByLabel("Token cost").innerText(), /anthropic \d+/i));
  await entry.getByLabel("Default").fill("maybe");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("alert").first().waitFor();
  assert.equal(await entry.getByLabel("Default").inputValue(), "maybe");
  await accessible(page, "argument editor");
  await entry.getByLabel("Default").fill("");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved. It is in force for everybody.").waitFor();
  await picture(page, "arguments");
  const tool = await (await page.request.get(`${board.url}/api/v1/tools/demo.echo`)).json();
  assert.deepEqual(tool.input_schema.properties.text.enum, ["yes", "no"]);
});

test("an edit that another browser has overtaken keeps both", async () => {
  expected("status of 412");
  const other = await open(browser, board);
  await other.visit("/tools/demo.add?tab=arguments");
  await other.getByRole("button", { name: "Declare a" }).click();
  await page.visit("/tools/demo.add?tab=arguments");
  await page.getByRole("button", { name: "Declare b" }).click();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved. It is in force for everybody.").waitFor();
  await other.getByRole("button", { name: "Save" }).click();
  await other.getByText("Somebody else has changed this entry").waitFor();
  assert.equal(await other.locator('[data-argument="a"]').count(), 1);
  await other.getByRole("button", { name: "Take theirs" }).click();
  await other.locator('[data-argument="b"]').waitFor();
  await other.context().close();
});

test("the first key closes the board; people sign in with it, and it stays in the tab", async () => {
  expected("status of 401");
  await page.visit("/keys");
  await page.getByText("No keys yet").waitFor();
  await page.getByRole("button", { name: "Make a key" }).first().click();
  await page.getByLabel("Name").fill("root");
  await page.getByLabel("Role").selectOption("admin");
  await page.getByRole("button", { name: "Make it" }).click();
  await page.getByText("The key root").waitFor();
  const key = (await page.locator(".mono", { hasText: /^sbk_/ }).innerText()).trim();
  const other = await open(browser, board);
  await other.goto(`${board.url}/tools/demo.echo`);
  await other.getByRole("heading", { name: "Sign in to Switchboard" }).waitFor();
  await accessible(other, "sign-in");
  await other.getByRole("textbox", { name: /API key/ }).fill("sbk_wrong");
  await other.getByRole("button", { name: "Sign in" }).click();
  await other.getByText("The board refused the key").waitFor();
  await other.getByRole("textbox", { name: /API key/ }).fill(key);
  await other.getByRole("button", { name: "Sign in" }).click();
  await other.getByRole("heading", { name: /demo\.echo/ }).waitFor();
  await other.reload();
  await other.getByRole("heading", { name: /demo\.echo/ }).waitFor();
  assert.ok(!other.url().includes("sbk_"));
  assert.ok(!(await other.evaluate(() => JSON.stringify(localStorage))).includes("sbk_"));
  await other.getByText("Copy as code").click();
  await other.getByLabel("The call for curl").getByText("$SWITCHBOARD_API_KEY").waitFor();
  assert.ok(!(await other.content()).includes(key));
  await other.visit("/keys");
  await other.locator('[data-key="root"]').waitFor();
  await accessible(other, "keys");
  await picture(other, "keys");
  await other.getByRole("button", { name: "Sign out" }).click();
  await other.getByRole("heading", { name: "Sign in to Switchboard" }).waitFor();
});
