// The TypeScript SDK 1.x has roots, changes them, and prints which directories server-filesystem allowed before and after.
import { args, command, load, url } from './session.mjs';

const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js');
const { ListRootsRequestSchema } = await load('@modelcontextprotocol/sdk/types.js');

let roots = ['/usr'];
const client = new Client({ name: 'roots', version: '1.0.0' }, { capabilities: { roots: { listChanged: true } } });
client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: roots.map((path) => ({ uri: `file://${path}` })) }));
await client.connect(command ? new StdioClientTransport({ command, args }) : new StreamableHTTPClientTransport(new URL(url)));
const { tools } = await client.listTools();
const { name } = tools.find((each) => each.name.endsWith('list_allowed_directories'));

/** Asks until the server has heard of the roots; it asks for them in its own time. */
async function allowed(path) {
  for (let attempt = 0; ; attempt += 1) {
    const result = await client.callTool({ name, arguments: {} });
    const lines = result.content[0].text.split('\n').slice(1);
    if (lines.includes(path) || attempt === 100) return lines;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const before = await allowed('/usr');
roots = ['/var'];
await client.sendRootsListChanged();
const after = await allowed('/var');
console.log(JSON.stringify({ before, after }));
await client.close();
process.exit(0);
