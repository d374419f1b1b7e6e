// The pages on which people connect their accounts at a server: a real board, a real authorization server, a real browser.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { expected, launch, program, test, watch } from "./board.mjs";

const directory = mkdtempSync(join(tmpdir(), "switchboard-connect-"));
const config = join(directory, "switchboard.yaml");
const global = ["--config", config, "--data-dir", join(directory, "data")];
const keys = {};
let tracker, tracked, board, url, browser;

/** The first line, or the first JSON document, that a program prints. */
function said(process, read) {
  let text = "";
  return new Promise((resolve, reject) => {
    process.stdout.on("data", (chunk) => {
      text += chunk;
      try { resolve(read(text)); } catch { /* not whole yet */ }
    });
    process.on("exit", (code) => reject(new Error(`a program ended with ${code}`)));
  });
}

before(async () => {
  tracker = spawn(process.env.FAKE_ACCOUNTS, [], { stdio: ["pipe", "pipe", "inherit"] });
  tracked = await said(tracker, (text) => { if (!text.includes("\n")) throw 0; return text.trim(); });
  writeFileSync(config, `switchboard:
  toolbox:
    mcps:
      - name: tracker
        url: ${tracked}
        auth:
          oauth: {per: user, scopes: [basic, "a-scope-with-a-long-name-that-does-not-break:anywhere/at/all"]}
        required: false
        mode: dynamic
        default_tool_config: {max_instances: 4, timeout: 30s}
`);
  for (const person of ["alice", "bob"]) {
    keys[person] = execFileSync(program, [...global, "key", "add", person, "--user", person], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  }
  board = spawn(program, [...global, "--json", "serve", "--listen", "127.0.0.1:0"], { stdio: ["ignore", "pipe", "inherit"] });
  url = await said(board, (text) => JSON.parse(text).url);
  browser = await launch();
});

after(async () => {
  await browser?.close();
  board?.kill("SIGTERM");
  tracker?.stdin.end();
  rmSync(directory, { recursive: true, force: true });
});

async function ask(person, method, path, body) {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${keys[person]}`, "content-type": "application/json" },
    body: body && JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

/** The page of a new sign-in. */
async function begin(person) {
  const begun = await ask(person, "POST", "/api/v1/accounts/tracker/sign-ins");
  assert.equal(begun.status, 201, JSON.stringify(begun.body));
  return begun.body;
}

/** A window of a person's own browser: its cookies are shared with no other one. */
async function windowOf(options = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  await watch(page);
  return page;
}

async function enter(page, proof) {
  await page.getByLabel("Code or API key").fill(proof);
  await page.getByRole("button", { name: "Continue" }).click();
}

/** Follows the link to the authorization server and signs in there. */
async function goOn(page, person) {
  await page.getByRole("link", { name: /^Continue to 127\.0\.0\.1:/ }).click();
  await page.getByLabel("Name").fill(person);
  await page.getByRole("button", { name: "Sign in" }).click();
}

const heading = (page) => page.locator("h1").innerText();
const call = (person) => ask(person, "POST", "/api/v1/tools/tracker.whoami/call", { arguments: { expect: person } });

async function until(what, condition) {
  const end = Date.now() + 30000;
  for (;;) {
    const last = await condition();
    if (last.done) return;
    if (Date.now() > end) throw new Error(`${what}: ${JSON.stringify(last)}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

test("two people connect their own accounts, each in a browser of their own", async () => {
  expected("favicon.ico", "/oauth/callback", "/connect/");
  for (const person of ["alice", "bob"]) {
    const [page, flow] = [await windowOf(), await begin(person)];
    await page.goto(flow.url);
    assert.equal(await heading(page), "Sign in for a tool");
    assert.ok(!(await page.content()).includes("tracker"), "nothing is shown before the code");
    await enter(page, flow.code);
    assert.equal(await heading(page), "Connect your account at tracker");
    const shown = await page.locator("dl").innerText();
    for (const word of ["tracker", new URL(tracked).host, "basic", `user:${person}`]) assert.ok(shown.includes(word), shown);
    await goOn(page, person);
    assert.equal(await heading(page), "Signed in");
    assert.ok(page.url().startsWith(`${url}/oauth/callback?`), page.url());
    // The address with its code counts once.
    await page.reload();
    assert.equal(await heading(page), "No such sign-in");
    await page.goto(flow.url);
    assert.equal(await heading(page), "Nothing to sign in for");
    await until(`a call of ${person}`, async () => {
      const { status, body } = await call(person);
      if (status === 200) assert.equal(body.result.content[0].text, person);
      return { done: status === 200, status, body };
    });
  }
});

test("an own key is a proof too, and a wrong code or key is none", async () => {
  expected("status of 403");
  const [page, flow] = [await windowOf(), await begin("alice")];
  await page.goto(flow.url);
  for (const wrong of ["AAAA-AAAA", keys.bob]) {
    await enter(page, wrong);
    assert.equal(await page.locator(".bad").innerText(), "This is not the right code or key.");
  }
  await enter(page, keys.alice);
  assert.equal(await heading(page), "Connect your account at tracker");
});

test("the link of one person does nothing for another", async () => {
  expected("status of 403", "status of 404");
  const flow = await begin("bob");
  const [bob, mallory] = [await windowOf(), await windowOf()];
  await bob.goto(flow.url);
  await enter(bob, flow.code);
  // What the authorization server answers to Bob's browser, another one cannot use.
  const link = await bob.getByRole("link", { name: /^Continue to/ }).getAttribute("href");
  const answer = await fetch(`${link}&user=bob`, { redirect: "manual" });
  await mallory.goto(answer.headers.get("location"));
  assert.equal(await heading(mallory), "Another browser");
  // Five wrong codes end the page for everybody.
  for (let n = 0; n < 5; n++) {
    await mallory.goto(flow.url);
    if ((await heading(mallory)) !== "Sign in for a tool") break;
    await enter(mallory, "BBBB-BBBB");
  }
  assert.equal(await heading(mallory), "Nothing to sign in for");
  assert.equal((await call("bob")).status, 200, "the account that was there is still used");
});

test("a page that never was is a page that says so", async () => {
  expected("status of 404", "status of 400");
  const page = await windowOf();
  for (const path of ["/connect/00000000000000000000000000000000", "/connect/x", "/oauth/callback?state=x&code=y", "/oauth/callback"]) {
    await page.goto(`${url}${path}`);
    assert.match(await heading(page), /^(Nothing to sign in for|No such sign-in)$/, path);
  }
});

test("every page fits a screen of 320 pixels, with the keyboard alone", async () => {
  const [page, flow] = [await windowOf({ viewport: { width: 320, height: 480 } }), await begin("alice")];
  const fits = async () => assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 320), await heading(page));
  await page.goto(flow.url);
  await fits();
  await page.keyboard.type(flow.code);
  await page.keyboard.press("Enter");
  await page.getByRole("link").waitFor();
  await fits();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByLabel("Name").fill("alice");
  await page.keyboard.press("Enter");
  await page.getByText("Signed in").waitFor();
  await fits();
});

test("the policy of the pages lets no script run, and nobody frames them", async () => {
  const [page, flow] = [await windowOf(), await begin("alice")];
  const response = await page.goto(flow.url);
  const headers = response.headers();
  assert.match(headers["content-security-policy"], /default-src 'none'/);
  assert.equal(headers["cache-control"], "no-store");
  assert.deepEqual(page.complaints, []);
  expected("Content Security Policy", "policy: ");
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.ran = true";
    document.body.append(script);
    const image = document.createElement("img");
    image.src = "x";
    image.setAttribute("onerror", "window.ran = true");
    document.body.append(image);
  });
  await until("the refusal", async () => ({ done: page.complaints.some((text) => text.includes("Content Security Policy")) }));
  assert.equal(await page.evaluate(() => window.ran), undefined);

  const framing = createServer((_, answer) => answer.setHeader("content-type", "text/html").end(`<iframe src="${flow.url}"></iframe>`));
  await new Promise((resolve) => framing.listen(0, "127.0.0.1", resolve));
  await page.goto(`http://127.0.0.1:${framing.address().port}/`);
  await until("the refusal", async () => ({ done: page.complaints.some((text) => text.includes("frame-ancestors")), complaints: page.complaints }));
  const framed = page.frames()[1];
  assert.ok(!(await framed.content().catch(() => "")).includes("Sign in for a tool"));
  framing.close();
});

test("no call used the account of another, and nothing else was refused", async () => {
  const rest = new Promise((resolve) => {
    let text = "";
    tracker.stdout.on("data", (chunk) => { text += chunk; });
    tracker.on("exit", () => resolve(text.trim()));
  });
  tracker.stdin.end();
  assert.equal(await rest, "");
});
