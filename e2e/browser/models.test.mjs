// Chats with models behind the wire formats of real providers, which `switchboard-fake-models` speaks.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, before } from "node:test";
import { accessible, Board, demo, launch, open, test } from "./board.mjs";
import { longestTask } from "./trace.mjs";

let board, browser, models, page;

before(async () => {
  const script = JSON.stringify({ anthropic: [{ text: "Here I am, over the wire." }] });
  models = spawn(process.env.FAKE_MODELS, [script], { stdio: ["pipe", "pipe", "inherit"] });
  const [said] = await once(models.stdout, "data");
  const root = said.toString().trim();
  board = await new Board(`switchboard:
  providers:
    - {name: demo, kind: demo}
    - {name: claude, kind: anthropic, base_url: "${root}", api_key: sk-ant-api-page}
    - {name: gemini, kind: gemini, base_url: "${root}", api_key: page}
    - {name: keyless, kind: openai}
  toolbox:
    mcps:
${demo}`).start();
  browser = await launch();
  page = await open(browser, board);
});

after(async () => {
  await browser?.close();
  await board?.close();
  models?.stdin.end();
});

const model = () => page.getByRole("combobox", { name: "Model" }).or(page.getByRole("textbox", { name: "Model" }));
const provider = async (name) => {
  await page.getByRole("combobox", { name: "Provider" }).click();
  await page.getByRole("option", { name }).click();
};

test("a model is chosen from the list of its provider, and answers", async () => {
  await page.visit("/chat");
  await provider("gemini");
  await model().click();
  await page.getByRole("option", { name: /gemini-3\.1-pro-preview/ }).waitFor();
  await provider("claude");
  await model().click();
  const option = page.getByRole("option", { name: /claude-opus-5-5/ });
  await option.getByText("Claude Opus 5.5").waitFor();
  await accessible(page, "models");
  await option.click();
  await page.getByRole("textbox", { name: "Message" }).fill("Are you there?");
  await page.getByRole("textbox", { name: "Message" }).press("Enter");
  const answer = page.locator(".answer").last();
  await answer.getByText("Here I am, over the wire.").waitFor();
  await answer.getByText("claude-opus-5-5").waitFor();
  // A message has its time.
  await page.locator(".entry.user time").first().waitFor();
  const id = new URL(page.url()).pathname.split("/").at(-1);
  const session = await (await fetch(`${board.url}/api/v1/sessions/${id}`)).json();
  assert.deepEqual([session.provider, session.model], ["claude", "claude-opus-5-5"]);
});

test("a provider without a key is not asked, and a name can be written", async () => {
  const asked = [];
  page.on("request", (request) => request.url().endsWith("/models") && asked.push(request.url()));
  await page.visit("/chat");
  await provider(/^keyless/);
  await model().fill("my-own-model");
  await model().press("Enter");
  assert.deepEqual(asked.filter((url) => url.includes("keyless")), []);
  assert.equal(await model().inputValue(), "my-own-model");
});

test("a long conversation begins with its end, and earlier messages come on request", async () => {
  const json = { "content-type": "application/json" };
  await fetch(`${board.url}/api/v1/sessions`, { method: "POST", headers: json, body: JSON.stringify({ id: "long", title: "A long one" }) });
  const say = (role, text) => ({ role, content: [{ type: "text", text }], ...(role === "user" ? {} : { source: { kind: "demo", provider: "demo", model: "demo" }, stop: "end" }) });
  const messages = Array.from({ length: 400 }, (_, index) => [say("user", `Question ${index}.`), say("assistant", `Answer **${index}**.\n\n- one\n- two\n`)]).flat();
  const put = await fetch(`${board.url}/api/v1/sessions/long/history`, { method: "PUT", headers: json, body: JSON.stringify({ version: 1, messages }) });
  assert.equal(put.status, 200);
  const longest = await longestTask(browser, async () => {
    await page.visit("/chat/long");
    await page.getByText("Answer 399.").waitFor();
    await page.waitForTimeout(500);
  });
  console.log(`400 questions and answers: longest task ${Math.round(longest)} ms of CPU`);
  assert.ok(longest < 150, `${longest} ms`);
  assert.equal(await page.getByText("Question 0.", { exact: true }).count(), 0);
  const earlier = page.getByRole("button", { name: /^Show \d+ earlier of \d+$/ });
  while (await earlier.count()) await earlier.click();
  await page.getByText("Question 0.", { exact: true }).waitFor();
});
