// Chat: turns of the demo model as a person sees them, with real tools of a real server.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before } from "node:test";
import { accessible, away, Board, demo, eventually, expected, launch, open, picture, test } from "./board.mjs";

let board, browser, page;
const config = `switchboard:
  providers:
    - {name: demo, kind: demo}
    - {name: second, kind: demo}
  toolbox:
    tools:
      - name: sum_numbers
    mcps:
${demo}`;

before(async () => {
  board = await new Board(config).start();
  browser = await launch();
  page = await open(browser, board);
});

after(async () => {
  await browser?.close();
  await board?.close();
});

const box = (tab = page) => tab.getByRole("textbox", { name: "Message" });
const stop = () => page.getByRole("button", { name: "Stop" });
const sendButton = () => page.getByRole("button", { name: "Send", exact: true });
const answer = (tab = page) => tab.locator(".answer").last();
const id = () => decodeURIComponent(new URL(page.url()).pathname.split("/").at(-1));

async function say(text) {
  await box().fill(text);
  await box().press("Enter");
}

/** Says it, and waits for the end of the turn. */
async function ask(text) {
  const answers = await page.locator(".answer").count();
  await say(text);
  await ended(answers + 1);
  return answer().innerText();
}

/** There are so many answers, or more, and the last one is whole. */
const ended = (count = 1) => page.waitForFunction((count) => {
  const answers = [...document.querySelectorAll(".answer")];
  return answers.length >= count && answers.at(-1).getAttribute("aria-busy") === "false";
}, count);

const api = (path, init = {}) => fetch(`${board.url}/api/v1${path}`, { headers: { "content-type": "application/json" }, ...init });
const change = (body, when = "") => api(`/sessions/${id()}${when}`, { method: "PATCH", body: JSON.stringify(body) });

/** A new chat with its first answer. */
async function begin(text) {
  await page.visit("/chat");
  await say(text);
  await page.waitForURL(/\/chat\/.+/);
  await ended();
}

test("a fresh board answers, with the demo model and an example of the page", async () => {
  await page.visit("/chat");
  await accessible(page, "new chat");
  await page.getByRole("button", { name: /^\/call local__sum_numbers/ }).click();
  await box().press("Enter");
  await page.waitForURL(/\/chat\/.+/);
  await ended();
  assert.match(await answer().innerText(), /local__sum_numbers answered: \{"result":42\}/);
  assert.match(await page.title(), /Chat · Switchboard$/);
});

test("calls are cards that run side by side, with progress, result and a way to the tool", async () => {
  await begin("/think I look first\n/say two calls:\n/call demo__wait {\"ms\": 2000}\n/call local__sum_numbers {\"a\": 1, \"b\": 2}");
  await page.visit("/chat");
  await say("/call demo__wait {\"ms\": 3000}\n/call local__sum_numbers {\"a\": 1, \"b\": 2}");
  await page.getByRole("progressbar", { name: "Progress of demo__wait" }).waitFor();
  // The other call ends meanwhile.
  await page.waitForFunction(() => ["running", "done"].every((state) => document.querySelectorAll(`.call[data-state=${state}]`).length === 1));
  await picture(page, "chat-calls");
  await ended();
  const card = page.locator(".call", { hasText: "sum_numbers" });
  await card.locator("summary").click();
  await eventually(async () => assert.match(await card.innerText(), /"a": 1[\s\S]*Result[\s\S]*3/));
  assert.equal(await card.getByRole("link", { name: "Open local.sum_numbers" }).getAttribute("href"), "/tools/local.sum_numbers");
  await accessible(page, "calls");
});

test("a call that fails says so", async () => {
  await begin('/call demo__fail {"message": "<b>no</b>"}');
  await page.locator(".call[data-state=failed]").waitFor();
  assert.match(await page.locator(".call[data-state=failed]").innerText(), /<b>no<\/b>/);
  assert.equal(await page.locator(".answer b").count(), 0, "text of a server is never markup");
});

test("thinking is folded, and an answer is read as Markdown that fetches nothing", async () => {
  const requests = [];
  const heard = (request) => requests.push(request.url());
  page.on("request", heard);
  await begin("/think a long thought\n/say **bold** ![x](https://example.com/x.png) [link](https://example.com)");
  await page.locator(".answer strong", { hasText: "bold" }).waitFor();
  const thinking = page.locator(".thinking");
  assert.equal(await thinking.getAttribute("open"), null);
  await thinking.locator("summary").click();
  await thinking.getByText("a long thought").last().waitFor();
  const link = page.locator(".answer .prose a").last();
  assert.match(await link.getAttribute("rel"), /noreferrer/);
  assert.deepEqual(requests.filter((url) => !url.startsWith(board.url)), []);
  page.off("request", heard);
});

test("the end is followed only while the reader is there", async () => {
  await begin(`/say ${"many words in one answer ".repeat(300)}`);
  await ask(`/say ${"and once more ".repeat(300)}`);
  const log = page.getByRole("log", { name: "Conversation" });
  const distance = () => log.evaluate((element) => element.scrollHeight - element.clientHeight - element.scrollTop);
  await page.waitForFunction(() => { const log = document.querySelector("[role=log]"); return log.scrollHeight - log.clientHeight - log.scrollTop < 4; });
  await say("/slow 60");
  await answer().getByText(/1 2 3/).waitFor();
  await eventually(async () => assert.ok((await distance()) < 4, "it follows"));
  await log.hover();
  await page.mouse.wheel(0, -400);
  // The scroll has come to rest.
  await page.waitForFunction(() => {
    const { dataset, scrollTop } = document.querySelector("[role=log]");
    const rests = dataset.following === "false" && globalThis.placeBefore === scrollTop;
    globalThis.placeBefore = scrollTop;
    return rests;
  }, undefined, { polling: 200 });
  const place = await log.evaluate((element) => element.scrollTop);
  const words = await answer().innerText().then((text) => Number(/(\d+)\s*$/.exec(text)[1]));
  await answer().getByText(new RegExp(` ${words + 5} `)).waitFor();
  assert.equal(await log.evaluate((element) => element.scrollTop), place, "text that arrives does not move the reader");
  await page.getByRole("button", { name: "To the end" }).click();
  await page.waitForFunction(() => document.querySelector("[role=log]").dataset.following === "true");
  await eventually(async () => assert.ok((await distance()) < 4));
  await stop().click();
  await answer().getByText("Stopped").waitFor();
  await sendButton().waitFor();
});

test("what a restart made void is folded with its reason, and stays so", async () => {
  await begin("/say first");
  await say("/slow 6");
  await answer().getByText(/1 2 3/).waitFor();
  assert.equal((await change({ tools: { "demo.fail": false } }, "?apply=now")).status, 200);
  const fold = page.locator(".void");
  await fold.waitFor();
  assert.match(await fold.locator("summary").innerText(), /tools changed to revision 2/);
  await ended();
  await fold.locator("summary").click();
  assert.match(await fold.locator("del").innerText(), /^1 2 3/);
  await accessible(page, "void text");
  await picture(page, "chat-void");
  await page.reload();
  await page.locator(".void").waitFor();
  assert.match(await ask("/flaky 1"), /Attempt 1 failed .*asked again after \d+ ms[\s\S]*It worked after 1 failures/);
});

test("a reload in the middle of an answer loses neither the answer nor the draft", async () => {
  await begin("/say hi");
  await say("/slow 9");
  await answer().getByText(/1 2 3/).waitFor();
  await box().fill("not sent yet");
  await page.reload();
  await stop().waitFor();
  assert.equal(await box().inputValue(), "not sent yet");
  await ended(2);
  assert.match(await answer().innerText(), /1 2 3 4 5[\s\S]*done\./);
  await eventually(async () => assert.equal(await page.locator(".entry").count(), 4));
});

test("a turn that another program began shows as it runs", async () => {
  await begin("/say mine");
  const turn = api(`/sessions/${id()}/turns`, { method: "POST", body: JSON.stringify({ message: "/slow 8" }) });
  await page.locator(".entry.user", { hasText: "/slow 8" }).waitFor();
  await answer().getByText(/1 2 3/).waitFor();
  await stop().waitFor();
  assert.equal((await turn).status, 200);
  await sendButton().waitFor();
});

test("provider, model and strategy change in mid-chat, and a ReACT turn shows its steps", async () => {
  await begin("/say one");
  await page.getByRole("combobox", { name: "Provider" }).click();
  await page.getByRole("option", { name: "second" }).click();
  await page.waitForFunction(async (path) => (await (await fetch(path)).json()).provider === "second", `/api/v1/sessions/${id()}`);
  await ask("/say two");
  assert.match(await answer().getAttribute("aria-label"), /second/);
  await page.getByRole("combobox", { name: "Strategy" }).click();
  await page.getByRole("option", { name: "ReACT" }).click();
  await page.waitForFunction(async (path) => (await (await fetch(path)).json()).strategy === "react", `/api/v1/sessions/${id()}`);
  await ask('/call demo__add {"a": 1, "b": 2}');
  const text = await answer().innerText();
  assert.match(text, /ReACT[\s\S]*Thought step 1 of 1: I call demo__add\.[\s\S]*action done[\s\S]*demo__add answered/);
  await answer().locator(".call summary").click();
  await answer().getByText("Observation: what the model reads").waitFor();
  await accessible(page, "ReACT");
  await picture(page, "chat-react");
});

test("a message is written again, for this turn or for good", async () => {
  await begin("/say first");
  await ask("/say second");
  const rewrite = async (place, text, keeps) => {
    await page.getByRole("button", { name: "Edit and send again" }).nth(place).click();
    await page.getByRole("textbox", { name: "Write it again" }).fill(text);
    if (!keeps) await page.getByRole("checkbox", { name: /Change the conversation/ }).uncheck();
    await accessible(page, "edit");
    await page.getByRole("button", { name: "Send again", exact: true }).click();
    await page.locator(".answer", { hasText: text.slice(5) }).waitFor();
    await ended();
  };
  await rewrite(0, "/say only now", false);
  const history = async () => (await (await api(`/sessions/${id()}/history`)).json()).messages;
  assert.equal((await history()).length, 6, "the conversation has all of it");
  const tokens = (await history()).filter(({ role }) => role === "assistant").map(({ usage }) => usage.input_tokens);
  assert.equal(tokens[2], tokens[0] + 1, "the model saw neither the first message nor what came after it");
  await rewrite(0, "/say for good", true);
  assert.deepEqual((await history()).map(({ role }) => role), ["user", "assistant"]);
  await eventually(async () => assert.equal(await page.locator(".entry").count(), 2));
  const before = (await history())[1].turn;
  await page.getByRole("button", { name: "Retry" }).click();
  await page.waitForFunction(async ([path, before]) => {
    const { messages } = await (await fetch(path)).json();
    return messages.length === 2 && messages[1].turn !== before;
  }, [`/api/v1/sessions/${id()}/history`, before]);
});

test("a turn that failed says what to do, and is tried again", async () => {
  await begin("/say ok");
  assert.match(await ask("/error quota"), /The turn failed \(quota\)[\s\S]*What to do: the account has used up its quota/);
  await accessible(page, "failed turn");
  const turn = async () => (await (await api(`/sessions/${id()}/turns`)).json()).turns.length;
  const before = await turn();
  await page.getByRole("button", { name: "Retry" }).click();
  await page.waitForFunction(async ([path, count]) => (await (await fetch(path)).json()).turns.length > count, [`/api/v1/sessions/${id()}/turns`, before]);
  await ended();
  assert.equal(await page.locator(".entry.user", { hasText: "/error quota" }).count(), 1);
});

test("a conversation is exported as JSON and as Markdown", async () => {
  await begin('/call demo__add {"a": 1, "b": 2}');
  const saved = async (name) => {
    await page.getByRole("button", { name: "Export" }).click();
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("menuitem", { name }).click()]);
    return readFileSync(await download.path(), "utf8");
  };
  const json = JSON.parse(await saved(/JSON/));
  assert.equal(json.messages.length, 4);
  const imported = await api(`/sessions/${id()}/history`, { method: "PUT", body: JSON.stringify(json) });
  assert.ok(imported.ok, "it can be imported");
  assert.match(await saved(/Markdown/), /## You[\s\S]*Calls `demo__add`:[\s\S]*"a": 1/);
});

test("the board is restarted: the page says so, picks up again, and the draft is still there", async () => {
  expected(...away, "status of 404");
  await begin("/say before");
  await say("/slow 600");
  await answer().getByText(/1 2 3/).waitFor();
  await box().fill("written while it was away");
  await board.stop();
  await page.getByText("The turn is picked up again").waitFor();
  await board.start();
  await page.locator("[data-status=live]").waitFor({ timeout: 30000 });
  await sendButton().waitFor({ timeout: 30000 });
  assert.equal(await box().inputValue(), "written while it was away");
  await page.locator(".entry.user", { hasText: "/slow 600" }).waitFor();
  await box().fill("/say back again");
  await box().press("Enter");
  await page.locator(".answer", { hasText: "back again" }).waitFor();
});

test("a chat that is not there says so", async () => {
  expected("status of 404");
  await page.goto(`${board.url}/chat/nobody`);
  await page.getByRole("alert").filter({ hasText: "there is no session 'nobody'" }).waitFor();
});

test("it fits a screen of 320 pixels", async () => {
  await page.setViewportSize({ width: 320, height: 640 });
  await begin('/say a longer text that has to wrap\n/call demo__lorem {"bytes": 3000}');
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 320));
  await accessible(page, "narrow");
  await page.getByRole("button", { name: /^demo/ }).click();
  await page.getByRole("combobox", { name: "Strategy" }).waitFor();
  await accessible(page, "narrow choices");
  await page.keyboard.press("Escape");
  await page.setViewportSize({ width: 1280, height: 800 });
});
