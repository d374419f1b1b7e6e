// Five thousand tools: the list stays quick to type into and to scroll.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { Board, launch, open, quiet } from "./board.mjs";

const COUNT = 5000;
let board, browser, page, server;

/** An MCP server of the session era over HTTP that does nothing but list many tools. */
function manyTools() {
  const tools = Array.from({ length: COUNT }, (_, index) => ({
    name: `tool_${String(index).padStart(4, "0")}`,
    description: `Does the thing number ${index}, for ${["orders", "articles", "people", "places"][index % 4]}`,
    inputSchema: { type: "object", properties: { [`value_${index % 10}`]: { type: "string" } } },
  }));
  const answers = {
    initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "many", version: "1" } }),
    ping: () => ({}),
    "tools/list": ({ cursor = "0" } = {}) => {
      const from = Number(cursor);
      return { tools: tools.slice(from, from + 1000), ...(from + 1000 < COUNT ? { nextCursor: String(from + 1000) } : {}) };
    },
  };
  return createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    if (request.method !== "POST") return response.writeHead(405).end();
    const { id, method, params } = JSON.parse(body);
    if (id === undefined) return response.writeHead(202).end();
    const answer = answers[method];
    const result = answer ? { result: answer(params) } : { error: { code: -32601, message: "no such method" } };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", id, ...result }));
  });
}

before(async () => {
  server = manyTools();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  board = await new Board(`switchboard:
  toolbox:
    mcps:
      - name: many
        url: http://127.0.0.1:${server.address().port}/mcp
        mode: dynamic
        era: legacy
        default_tool_config: {max_instances: 4, timeout: 30s}
`).start();
  browser = await launch();
  page = await open(browser, board);
});

after(async () => {
  await browser?.close();
  await board?.close();
  server?.close();
});

test("five thousand tools are searched and scrolled without a long task", async () => {
  await page.visit("/tools");
  const all = page.getByText(new RegExp(`^${COUNT} tools, \\d+ hidden at revision`));
  await all.waitFor();
  await page.evaluate(() => {
    globalThis.longest = 0;
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) globalThis.longest = Math.max(globalThis.longest, duration);
    }).observe({ type: "longtask" });
  });
  await page.getByLabel("Search").pressSequentially("orders 4");
  await page.getByText(/^\d+ of \d+ tools match/).waitFor();
  await page.getByLabel("Search").fill("");
  await all.waitFor();
  const list = page.getByRole("region", { name: "Tools" });
  await list.evaluate(async (element) => {
    for (let step = 1; step <= 40; step += 1) {
      element.scrollTop = (element.scrollHeight * step) / 40;
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
  });
  await page.locator('[data-tool="many.tool_4999"]').waitFor();
  assert.ok((await page.locator("tr[data-row]").count()) < 60, "only rows in sight are in the page");
  const longest = await page.evaluate(() => globalThis.longest);
  console.log(`longest task: ${Math.round(longest)} ms`);
  // The aim is 100 ms on a quiet machine; other work of this machine must not fail the test.
  assert.ok(longest < 1000, `${longest} ms`);
  quiet(page);
});
