// Real MCP servers and a real MCP client, from `.tools/e2e`: what `e2e/install-peers.sh` installs.
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const installed = process.env.E2E_PEERS_DIR ?? join(root, ".tools/e2e");
const npm = (name) => join(installed, "npm/node_modules/.bin", name);

/** A server that is a program, as YAML below `mcps`. */
export function child(name, command, args, more = {}) {
  const entry = { transport: "stdio", command, args, mode: "dynamic", required: false, default_tool_config: { max_instances: 4, timeout: "30s" }, ...more };
  return `      - ${JSON.stringify({ name, ...entry })}\n`;
}

export const everything = () => child("everything", npm("mcp-server-everything"), ["stdio"]);
export const filesystem = (directory) => child("files", npm("mcp-server-filesystem"), [directory]);
export const memory = (file) => child("memory", npm("mcp-server-memory"), [], { env: { MEMORY_FILE_PATH: file } });

/** A FastMCP server with every kind of content, progress and a list that grows. */
export const media = () => child("media", join(installed, "python/bin/python"), [join(root, "e2e/python/media_server.py"), "stdio"]);

/** A client of the official SDK, connected to the gateway. `changes` counts what it heard of its list. */
export async function connectClient(url, name) {
  const require = createRequire(join(installed, "npm/package.json"));
  const load = (path) => import(pathToFileURL(require.resolve(path)).href);
  const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
  const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const { ToolListChangedNotificationSchema } = await load("@modelcontextprotocol/sdk/types.js");
  const client = new Client({ name, version: "1.0.0" });
  client.changes = 0;
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => { client.changes += 1; });
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`));
  await client.connect(transport);
  client.session = transport.sessionId;
  return client;
}

/** Asks until the answer is what it should be, and gives it back. */
export async function until(what, ask, good) {
  const end = Date.now() + 20000;
  for (;;) {
    const answer = await ask();
    if (good(answer)) return answer;
    if (Date.now() > end) throw new Error(`${what}: ${JSON.stringify(answer).slice(0, 400)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
