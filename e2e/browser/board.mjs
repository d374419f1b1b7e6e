// A board and a browser for the tests of the page: real programs, real servers, and a record of everything that goes wrong.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, join } from "node:path";
import { test as nodeTest } from "node:test";

const { chromium } = await import(process.env.PLAYWRIGHT_CORE);
const axe = readFileSync(process.env.AXE_CORE, "utf8");
export const program = process.env.SWITCHBOARD;
/** Children of a board find the program by its name: pictures for the documents show no directory of this machine. */
const env = { ...process.env, PATH: `${dirname(program)}${delimiter}${process.env.PATH}` };

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** A demo server as a child of the board, as YAML below `mcps`. */
export const demo = `      - name: demo
        transport: stdio
        command: ${JSON.stringify(basename(program))}
        args: [demo-server, --stdio]
        mode: dynamic
        default_tool_config: {max_instances: 4, timeout: 30s}
`;

export class Board {
  constructor(config) {
    this.directory = mkdtempSync(join(tmpdir(), "switchboard-page-"));
    this.file = join(this.directory, "switchboard.yaml");
    this.arguments = ["--config", this.file, "--data-dir", join(this.directory, "data")];
    this.write(config);
  }

  write(config) {
    writeFileSync(this.file, config);
  }

  /** Starts the program; a second time at the address of the first. */
  async start() {
    this.port ??= await freePort();
    this.process = spawn(program, [...this.arguments, "--json", "serve", "--listen", `127.0.0.1:${this.port}`], { env, stdio: ["ignore", "pipe", "inherit"] });
    let said = "";
    this.url = await new Promise((resolve, reject) => {
      this.process.stdout.on("data", (chunk) => {
        said += chunk;
        try { resolve(JSON.parse(said).url); } catch { /* not whole yet */ }
      });
      this.process.on("exit", (code) => reject(new Error(`switchboard ended with ${code}`)));
    });
    return this;
  }

  async stop() {
    const ended = new Promise((resolve) => this.process.on("exit", resolve));
    this.process.kill("SIGTERM");
    await ended;
  }

  async close() {
    if (this.process?.exitCode === null) await this.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}

/** Tabs that are looked after, and what the running test expects them to complain about. */
const watched = new Set();
let expectations = [];

/** From now on every error of the console, exception and violation of the content security policy of this tab counts. */
export async function watch(page) {
  page.complaints = [];
  page.on("console", (message) => message.type() === "error" && page.complaints.push(`${message.text()} (${message.location().url})`));
  page.on("pageerror", (error) => page.complaints.push(String(error)));
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
  });
  watched.add(page);
}

/** The running test makes the board refuse something: complaints with one of these words are no fault. */
export function expected(...words) {
  expectations.push(...words);
}

/** What a tab says while its board is away. */
export const away = ["ERR_CONNECTION", "ERR_INCOMPLETE", "ERR_EMPTY", "ERR_NETWORK", "status of 503"];

/** Takes what the tabs have complained about and nobody expected. */
async function complaints() {
  const found = [];
  for (const page of watched) {
    // What the tab has said before it answers has arrived.
    await page.evaluate(() => 0).catch(() => {});
    if (page.isClosed()) watched.delete(page);
    found.push(...page.complaints.splice(0).filter((text) => !expectations.some((word) => text.includes(word))));
  }
  return found;
}

/** Prints what each tab shows: the address and the text, for who reads the report of a test that failed. */
async function describeTabs() {
  for (const page of watched) {
    if (page.isClosed()) continue;
    const shown = () => ({ url: location.href, text: document.body.innerText.slice(0, 3000) });
    const { url, text } = await page.evaluate(shown).catch((error) => ({ url: page.url(), text: String(error) }));
    console.log(`the tab at ${url} shows:\n${text.replace(/^/gm, "  | ")}`);
  }
}

/** A test after which no tab has an error in its console, an exception or a violation of the policy that it did not expect. */
export function test(name, body) {
  // A step that waits without an end of its own must not hold up everything.
  return nodeTest(name, { timeout: 180_000 }, async (context) => {
    expectations = [];
    try {
      await body(context);
    } catch (error) {
      await describeTabs();
      throw error;
    }
    assert.deepEqual(await complaints(), [], "the console");
  });
}

/** Repeats assertions about what a page comes to show until they hold, and gives back what they give. */
export async function eventually(assertion) {
  const end = Date.now() + 20000;
  for (;;) {
    try {
      return await assertion();
    } catch (error) {
      if (Date.now() > end) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Presses a button that copies, and gives back what is on the clipboard then. */
export async function copied(page, button) {
  await page.evaluate(() => navigator.clipboard.writeText("nothing yet"));
  await button.click();
  return eventually(async () => {
    const text = await page.evaluate(() => navigator.clipboard.readText());
    assert.notEqual(text, "nothing yet");
    return text;
  });
}

/** The middle of some times: one pause of a busy machine is no fault. */
export const middle = (times) => times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)];

/** A tab of a browser context of its own. */
export async function open(browser, board, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", ...options });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await context.newPage();
  page.setDefaultTimeout(20000);
  await watch(page);
  page.visit = async (path) => {
    await page.goto(board.url + path);
    await page.locator("h1").first().waitFor();
  };
  return page;
}

/** Colours glide from one scheme to the other. A transition that never ends is not waited for. */
function settled(page) {
  return page.evaluate(async () => {
    const transitions = document.getAnimations().filter((each) => each instanceof CSSTransition);
    const ends = Promise.all(transitions.map((each) => each.finished.catch(() => {})));
    await Promise.race([ends, new Promise((resolve) => setTimeout(resolve, 1000))]);
  });
}

/** Fails for each rule of accessibility that the page breaks, in both colour schemes. */
export async function accessible(page, about) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.waitForFunction((wanted) => document.documentElement.dataset.mantineColorScheme === wanted, colorScheme);
    await settled(page);
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
    const found = violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html, any }) => `${html.slice(0, 160)} (${any[0]?.message ?? ""})`).join(" | ")}`);
    assert.deepEqual(found, [], `${about}, ${colorScheme}`);
  }
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
}

/** Writes pictures for the documents, light and dark, where SCREENSHOTS names a directory. */
export async function picture(page, name) {
  if (!process.env.SCREENSHOTS) return;
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.waitForFunction((wanted) => document.documentElement.dataset.mantineColorScheme === wanted, colorScheme);
    await settled(page);
    await page.screenshot({ path: join(process.env.SCREENSHOTS, `${name}-${colorScheme}.png`) });
  }
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
}
