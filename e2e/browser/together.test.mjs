// People together: two browsers with keys of different roles see each other's changes, live; nothing is lost by a restart.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before } from "node:test";
import { accessible, away, Board, demo, eventually, expected, launch, middle, open, program, test } from "./board.mjs";
import { media } from "./peers.mjs";

let board, browser, root, guest;
const keys = {};
const config = `switchboard:
  toolbox:
    tools:
      - name: sum_numbers
    mcps:
${demo}${media()}`;

before(async () => {
  board = new Board(config);
  for (const role of ["admin", "client"]) {
    const key = [...board.arguments, "key", "add", `the-${role}`, "--user", role, "--role", role];
    keys[role] = execFileSync(program, key, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  }
  await board.start();
  browser = await launch();
  root = await open(browser, board);
  guest = await open(browser, board);
});

after(async () => {
  await browser?.close();
  await board?.close();
});

const api = (path, init = {}) => fetch(`${board.url}/api/v1${path}`, { ...init, headers: { "content-type": "application/json", authorization: `Bearer ${keys.admin}` } });
const call = (tool, args = {}) => api(`/tools/${tool}/call`, { method: "POST", body: JSON.stringify({ arguments: args }) });
const live = (page) => page.locator('[data-status="live"]').waitFor();
const field = (page, name) => page.getByRole("textbox", { name: new RegExp(`^${name}`) });
const kept = (page) => page.evaluate(async () => ({ local: JSON.stringify(localStorage), cookies: document.cookie, databases: (await indexedDB.databases()).length }));

/** Notes when something first is on the screen, by the clock of the page. */
const sighting = (page, selector, text) => page.evaluate(([selector, text]) => {
  globalThis.sighted = new Promise((resolve) => {
    const look = () => [...document.querySelectorAll(selector)].some((element) => element.textContent.includes(text)) && resolve(Date.now());
    new MutationObserver(look).observe(document.body, { childList: true, subtree: true, characterData: true });
    look();
  });
}, [selector, text]);

test("each signs in with an own key, which is in no address and outlives no tab", async () => {
  expected("status of 401");
  const addresses = [];
  for (const [page, role] of [[root, "admin"], [guest, "client"]]) {
    page.on("request", (request) => addresses.push(request.url()));
    await page.goto(`${board.url}/tools/demo.echo?as=json`);
    await page.getByRole("textbox", { name: /API key/ }).fill(keys[role]);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: /demo\.echo/ }).waitFor();
    assert.equal(new URL(page.url()).search, "?as=json", "the address that was asked for is opened");
    await live(page);
    await page.getByText(new RegExp(`· the-${role} \\(${role}\\)$`)).waitFor();
    const { local, cookies, databases } = await kept(page);
    assert.ok(!local.includes(keys[role]) && cookies === "" && databases === 0, local + cookies);
    assert.ok(!(await page.content()).includes(keys[role]));
  }
  assert.deepEqual(addresses.filter((address) => Object.values(keys).some((key) => address.includes(key))), []);
  const tab = await guest.context().newPage();
  await tab.goto(`${board.url}/`);
  await tab.getByRole("heading", { name: "Sign in to Switchboard" }).waitFor();
  await tab.close();
});

test("a role sees what it may use, and nothing that it may not", async () => {
  const names = (page) => page.getByRole("navigation").getByRole("link").allInnerTexts();
  const [all, some] = [(await names(root)).join(" "), (await names(guest)).join(" ")];
  for (const name of ["Configuration", "Keys"]) assert.ok(all.includes(name) && !some.includes(name), some);
  await guest.visit("/servers");
  assert.ok(await guest.getByRole("button", { name: "Add a server" }).isDisabled());
  await accessible(guest, "servers of a client");
});

test("a list that a server changes is on both screens within a second", async () => {
  await root.visit("/tools?server=media");
  await guest.visit("/tools?server=media");
  for (const page of [root, guest]) {
    await page.locator('[data-tool="media.grow"]').waitFor();
    await live(page);
  }
  const times = [];
  for (const name of ["fresh", "crisp", "green"]) {
    for (const page of [root, guest]) await sighting(page, "[data-tool]", name);
    assert.equal((await call("media.grow", { name })).status, 200);
    const changed = Date.now();
    const took = await Promise.all([root, guest].map(async (page) => (await page.evaluate(() => globalThis.sighted)) - changed));
    times.push(Math.max(...took));
  }
  console.log(`a changed list of a FastMCP server on both screens after ${times.join(", ")} ms`);
  assert.ok(middle(times) < 1000, `${times} ms`);
});

test("what one declares, the other sees without a reload", async () => {
  await guest.visit("/tools/demo.lorem");
  await field(guest, "bytes").fill("12");
  await sighting(guest, "main", "How long it gets");
  await root.visit("/tools/demo.lorem?tab=arguments");
  await root.getByRole("button", { name: "Declare bytes" }).click();
  await root.locator('[data-argument="bytes"]').getByLabel("Description").fill("How long it gets");
  await root.getByRole("button", { name: "Save" }).click();
  await root.getByText("Saved. It is in force for everybody.").waitFor();
  const saved = Date.now();
  console.log(`a declared argument in the other browser ${(await guest.evaluate(() => globalThis.sighted)) - saved} ms after it was saved`);
  await eventually(async () => assert.equal(await field(guest, "bytes").inputValue(), "12", "what was typed is still there"));
});

test("what one calls, the other sees in the call log and on the tool's row", async () => {
  await root.visit("/calls");
  await root.getByRole("heading", { name: "Calls", level: 1 }).waitFor();
  await live(root);
  await guest.getByRole("button", { name: "Run" }).click();
  await guest.locator("[data-call]").filter({ hasText: "ok" }).waitFor();
  const id = await guest.locator("[data-call]").getAttribute("data-call");
  await root.getByRole("button", { name: /^Show \d+ new$/ }).click();
  await root.locator(`[data-record="${id}"]`).waitFor();
});

test("a restart of the board loses no input in any tab", async () => {
  expected(...away);
  const tabs = [];
  const tab = async (path) => {
    const page = await root.context().newPage();
    page.setDefaultTimeout(20000);
    await page.goto(board.url);
    await page.getByRole("textbox", { name: /API key/ }).fill(keys.admin);
    await page.keyboard.press("Enter");
    await live(page);
    await page.goto(board.url + path);
    await live(page);
    tabs.push(page);
    return page;
  };
  expected("status of 401");
  const form = await tab("/tools/demo.add");
  await field(form, "a").fill("41");
  const json = await tab("/tools/demo.echo?as=json");
  await json.getByRole("textbox", { name: "Arguments as JSON" }).fill('{"text": "half');
  const chat = await tab("/chat");
  await chat.getByRole("textbox", { name: "Message" }).fill("not sent yet");
  await board.stop();
  for (const page of tabs) await page.locator('[data-status="disconnected"]').waitFor();
  assert.equal(await field(form, "a").inputValue(), "41");
  await board.start();
  for (const page of tabs) await live(page);
  const same = () => eventually(async () => {
    assert.equal(await field(form, "a").inputValue(), "41");
    assert.match(await json.getByRole("textbox", { name: "Arguments as JSON" }).innerText(), /"half$/);
    assert.equal(await chat.getByRole("textbox", { name: "Message" }).inputValue(), "not sent yet");
  });
  await same();
  for (const page of tabs) {
    await page.reload();
    await live(page);
  }
  await same();
  await field(form, "b").fill("1");
  await form.getByRole("button", { name: "Run" }).click();
  await form.locator("[data-call]").filter({ hasText: "ok" }).waitFor();
  for (const page of tabs) await page.close();
  await live(root);
});

test("a key that is revoked ends the other's tab at once", async () => {
  expected("status of 401");
  await live(guest);
  await root.visit("/keys");
  await root.getByRole("button", { name: "Revoke the-client" }).click();
  await root.getByRole("button", { name: "Revoke the-client", exact: true }).last().click();
  await root.locator('[data-key="the-client"]').getByText("revoked").waitFor();
  await guest.getByRole("heading", { name: "Sign in to Switchboard" }).waitFor();
  await root.getByText("The board refused the key").waitFor({ state: "detached" });
});
