// Renderings and toolsets: what providers are told, what it costs, and how tools are put together.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { accessible, Board, demo, eventually, launch, open, picture, test } from "./board.mjs";

let board, browser, page;
const base = `switchboard:
  toolbox:
    tools:
      - name: sum_numbers
      - name: multiply_numbers
      - name: demo.echo
        arguments:
          - {name: text, type: string, description: The text}
          - {name: reply to, type: string, description: Whom to answer}
          - {name: tags, type: array, description: Words to sort it by}
    mcps:
${demo}  toolsets:
    - name: waiting
      description: Tools that take time
      tools: [demo.wait]
`;

before(async () => {
  board = await new Board(base).start();
  browser = await launch();
  page = await open(browser, board);
});

after(async () => {
  await browser?.close();
  await board?.close();
});

const api = (path, init = {}) => fetch(`${board.url}/api/v1${path}`, { headers: { "content-type": "application/json" }, ...init });
const make = (id) => api("/sessions", { method: "POST", body: JSON.stringify({ id, title: `The ${id}` }) });
const change = (id, body) => api(`/sessions/${id}`, { method: "PATCH", body: JSON.stringify(body) });
const flip = (control) => control.evaluate((element) => element.click());

test("without a session the page says what to do", async () => {
  await page.visit("/renderings");
  await page.getByRole("link", { name: "Begin a chat" }).waitFor();
  await accessible(page, "renderings without a session");
});

test("the providers stand side by side, with the cost of each tool", async () => {
  await make("work");
  await page.visit("/renderings?session=work");
  await page.getByText("8 of 8 match").waitFor();
  const row = page.getByRole("row", { name: /^openai / });
  const told = await (await api("/sessions/work/render?provider=openai&explain=true")).json();
  await eventually(async () => {
    assert.match(await row.innerText(), /8\s+\d+/);
    assert.match(await row.innerText(), new RegExp(`\\b${told.tokens.total}\\b`));
    assert.match(await page.getByRole("row", { name: /^gemini / }).innerText(), /~\d+/, "an estimate looks like one");
  });
  await page.getByText("Rewritten", { exact: true }).last().click();
  await page.getByText("1 of 8 match").waitFor();
  assert.match(page.url(), /only=rewritten/);
});

test("a tool shows the server's schema beside each declaration, and every rewrite with its reason", async () => {
  await page.getByRole("button", { name: "demo__echo" }).click();
  await page.getByRole("heading", { name: "demo__echo" }).waitFor();
  assert.match(page.url(), /tool=demo__echo/);
  await page.getByText(/shown as `reply_to_x542dd14f`.*the provider refuses the key; arguments are turned back/).first().waitFor();
  await page.locator("pre[aria-label=\"The server's schema\"]", { hasText: '"reply to"' }).waitFor();
  await page.locator('pre[aria-label="What gemini is told"]', { hasText: "reply_to_x542dd14f" }).waitFor();
  await accessible(page, "a rendering");
  await picture(page, "renderings");
  await page.reload();
  await page.getByRole("heading", { name: "demo__echo" }).waitFor();
  await page.getByRole("button", { name: "Close the tool" }).click();
  await page.getByRole("heading", { name: "demo__echo" }).waitFor({ state: "detached" });
});

test("two revisions are compared, for each provider in its own way", async () => {
  await page.visit("/renderings?session=work");
  await page.getByText("8 of 8 match").waitFor();
  await change("work", { tools: { "demo.fail": false } });
  await page.getByText("Tools at revision 2").waitFor();
  await page.getByRole("combobox", { name: "Compare revision 2 with" }).click();
  await page.getByRole("option", { name: "revision 1" }).click();
  const openai = page.locator("[data-provider=openai]");
  await openai.getByText(/0 added, 1 removed, 0 changed\. The whole list has to be sent again/).waitFor();
  await page.locator("[data-provider=anthropic]").getByText(/can be told at its end/).waitFor();
  await openai.locator("summary", { hasText: "demo__fail removed" }).click();
  await eventually(async () => assert.match(await openai.locator(".diff").innerText(), /removed:\s+"name": "demo__fail"/));
  await accessible(page, "differences");
  await picture(page, "renderings-diff");
  assert.match(page.url(), /since=1/);
  await page.reload();
  await openai.getByText(/0 added, 1 removed/).waitFor();
});

test("a definition that changes upstream shows as a difference of its lines", async () => {
  await page.visit("/renderings?session=work&providers=anthropic");
  await page.getByText("Tools at revision 2").waitFor();
  await page.getByText("7 of 7 match").waitFor();
  board.write(base.replace("The text}", "What to say}"));
  await page.getByText("Tools at revision 3").waitFor({ timeout: 20000 });
  await page.getByRole("combobox", { name: "Compare revision 3 with" }).click();
  await page.getByRole("option", { name: "revision 2" }).click();
  await page.locator("summary", { hasText: "demo__echo changed" }).click();
  await eventually(async () => {
    const text = await page.locator(".diff").innerText();
    assert.match(text, /removed:\s+"description": "The text"/);
    assert.match(text, /added:\s+"description": "What to say"/);
    assert.ok(!text.includes('"name": "demo__echo"') || text.includes("⋯"), "far lines are left out");
  });
});

test("toolsets have their cost and their tools, and the opened one is in the address", async () => {
  await page.visit("/toolsets");
  await page.getByText("3 of 3 toolsets").waitFor();
  const demoSet = page.getByRole("article", { name: "Toolset demo" });
  await demoSet.locator("summary").click();
  await demoSet.getByRole("link", { name: "demo.wait" }).waitFor();
  assert.match(page.url(), /set=demo/);
  await eventually(async () => assert.match(await demoSet.innerText(), /~\d+/));
  await page.getByRole("textbox", { name: "Search toolsets" }).fill("take time");
  await page.getByText("1 of 3 toolsets").waitFor();
  await page.getByRole("textbox", { name: "Search toolsets" }).fill("");
  await accessible(page, "toolsets");
});

test("a toolset is switched in a session at once, and all that match in one step", async () => {
  await page.visit("/toolsets?session=work");
  const control = page.getByRole("switch", { name: "local in the session" });
  await control.waitFor();
  await flip(control);
  await page.getByText("Revision 4").waitFor();
  assert.deepEqual((await (await api("/sessions/work")).json()).disabled_toolsets, ["local"]);
  await page.getByRole("button", { name: "Switch on all 3 that match" }).click();
  await page.getByText("Revision 5").waitFor();
  assert.deepEqual((await (await api("/sessions/work")).json()).disabled_toolsets, []);
  await picture(page, "toolsets");
});

test("a toolset is put together by search, survives a reload, and its entry is taken by the board", async () => {
  await page.visit("/toolsets");
  await page.getByRole("button", { name: "Compose a toolset" }).click();
  const search = page.getByRole("textbox", { name: "Search tools", exact: true });
  await search.fill("local numbers");
  await page.getByText(/^2 of 8 match/).waitFor();
  await page.getByRole("button", { name: "Take all 2 that match" }).click();
  await search.fill("echo");
  await page.getByText(/^1 of 8 match/).waitFor();
  await page.getByRole("checkbox", { name: /demo\.echo/ }).check();
  await page.getByText(/3 chosen, about \d+ tokens/).waitFor();
  await page.getByRole("button", { name: "Show the entry" }).click();
  await page.getByText("A toolset needs a name.").waitFor();
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("sums");
  await page.getByRole("textbox", { name: "Description" }).fill("Adds: and multiplies");
  await page.reload();
  await page.getByText(/3 chosen/).waitFor();
  await page.getByRole("button", { name: "Show the entry" }).click();
  const entry = await page.getByRole("textbox", { name: /Add this below/ }).inputValue();
  assert.match(entry, /- name: sums\n {2}description: "Adds: and multiplies"/);
  await accessible(page, "compose");
  await picture(page, "toolsets-compose");
  board.write(base + entry.replace(/^/gm, "    ").trimEnd() + "\n");
  await page.getByRole("article", { name: "Toolset sums" }).waitFor({ timeout: 20000 });
  await page.getByText("There is a toolset sums already.").waitFor();
});

test("both fit a screen of 320 pixels", async () => {
  await page.setViewportSize({ width: 320, height: 640 });
  for (const path of ["/renderings?session=work&tool=demo__echo", "/toolsets?session=work&compose=1"]) {
    await page.visit(path);
    await page.getByText(/of \d+ match/).first().waitFor();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 320), path);
    await accessible(page, `narrow ${path}`);
  }
});
