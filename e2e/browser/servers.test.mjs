// Servers: health, a change of a list that shows within a second, adding and removing, two browsers, a restart of the board.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after, before } from "node:test";
import { accessible, away, Board, demo, eventually, expected, launch, middle, open, picture, program, test } from "./board.mjs";

let board, browser, page, remote, remoteUrl;
const config = `switchboard:
  security: {egress: {allow: [127.0.0.1]}}
  toolbox:
    mcps:
${demo}      - name: broken
        transport: stdio
        command: sh
        args: [-c, "echo the last words >&2; exit 3"]
        required: false
        mode: dynamic
        default_tool_config: {max_instances: 1, timeout: 5s}
`;

before(async () => {
  remote = spawn(program, ["demo-server", "--listen", "127.0.0.1:0"], { stdio: ["ignore", "pipe", "pipe"] });
  remoteUrl = await new Promise((resolve, reject) => {
    const read = (chunk) => { const found = /http:\/\/\S+/.exec(String(chunk)); if (found) resolve(found[0].replace(/[.,]$/, "")); };
    remote.stdout.on("data", read);
    remote.stderr.on("data", read);
    remote.on("exit", (code) => reject(new Error(`the demo server ended with ${code}`)));
  });
  board = await new Board(config).start();
  browser = await launch();
  page = await open(browser, board);
});

after(async () => {
  await browser?.close();
  await board?.close();
  remote?.kill();
});

const card = (tab, name) => tab.locator(`[data-server="${name}"]`);

test("each server shows its state with words, since when, and the way out of trouble", async () => {
  await page.visit("/servers");
  await card(page, "demo").getByText("ready").waitFor();
  await eventually(async () => {
    const text = await card(page, "demo").innerText();
    for (const word of ["6 tools", "dynamic", "stdio", "era"]) assert.ok(text.includes(word), text);
    assert.match(text, /just now|s ago|min ago/);
  });
  await card(page, "broken").getByText("unavailable").waitFor();
  await accessible(page, "servers");
  await picture(page, "servers");
});

test("a server's page has its error, its standard error and a reconnect", async () => {
  await page.getByRole("link", { name: "broken" }).click();
  await page.getByRole("alert").filter({ hasText: "The server is not available" }).waitFor();
  await page.getByText("the last words").first().waitFor();
  await page.getByRole("button", { name: "Reconnect" }).click();
  await page.getByRole("alert").filter({ hasText: "The server is not available" }).waitFor();
  await accessible(page, "server");
});

test("a change of a server's list shows within a second", async () => {
  await page.visit("/tools");
  await page.getByText(/^6 tools, \d+ hidden at revision/).waitFor();
  await page.locator('[data-status="live"]').waitFor();
  const times = [];
  for (const isThere of [true, false, true]) {
    // From the answer to the call that changed the list, by the clock of the page.
    times.push(await page.evaluate(async (isThere) => {
      const shown = new Promise((resolve) => {
        const look = () => (document.querySelector('[data-tool="demo.surprise"]') !== null) === isThere && resolve(performance.now());
        new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
      });
      await fetch("/api/v1/tools/demo.toggle_surprise/call", { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
      const answered = performance.now();
      return (await shown) - answered;
    }, isThere));
  }
  console.log(`changed lists showed after ${times.map(Math.round).join(", ")} ms`);
  assert.ok(middle(times) < 1000, `${times} ms`);
});

test("an HTTP server is added in one browser and shows in another, then is removed", async () => {
  expected("status of 422", "status of 404");
  const other = await open(browser, board);
  await other.visit("/servers");
  await card(other, "demo").waitFor();
  await page.visit("/servers");
  await page.getByRole("button", { name: "Add a server" }).click();
  await page.getByLabel("Name").fill("far");
  await page.getByLabel("URL").fill("ftp://nowhere");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByText("not an http or https address").waitFor();
  assert.equal(await page.getByLabel("Name").inputValue(), "far");
  await accessible(page, "adding a server");
  await page.getByLabel("URL").fill(remoteUrl);
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("heading", { name: "far" }).waitFor();
  await card(other, "far").getByText("ready").waitFor();
  await page.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("button", { name: "Remove it" }).click();
  await card(other, "far").waitFor({ state: "detached" });
  await other.context().close();
});

test("a restart of the board reconnects by itself and loses no input", async () => {
  expected(...away);
  await page.visit("/tools/demo.echo");
  await page.getByRole("textbox", { name: /^text/ }).fill("still here");
  await page.locator('[data-status="live"]').waitFor();
  await board.stop();
  await page.locator('[data-status="disconnected"]').waitFor();
  await board.start();
  await page.locator('[data-status="live"]').waitFor();
  assert.equal(await page.getByRole("textbox", { name: /^text/ }).inputValue(), "still here");
  await page.getByRole("textbox", { name: /^text/ }).press("Control+Enter");
  await page.locator("[data-call]").filter({ hasText: "ok" }).waitFor();
});
