// Uses the tools that a key grants, and the account of its person, with a TypeScript SDK that opens pages.
// Arguments: the address, the era (legacy or modern), the major version of the SDK, and the key. Prints a line when it is asked
// to open a page, and one with what it saw.
import { era, load, url } from './session.mjs';

const [, , , , major, key] = process.argv;
const capabilities = { elicitation: { url: {} } };
const me = { name: 'accounts', version: '1.0.0' };
let asked = 0;

/** The person agrees to open the page; the test is the browser. */
function ask({ params }) {
  asked += 1;
  console.log(JSON.stringify({ asks: params }));
  return { action: 'accept' };
}

async function first() {
  const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { ElicitRequestSchema } = await load('@modelcontextprotocol/sdk/types.js');
  const client = new Client(me, { capabilities });
  client.setRequestHandler(ElicitRequestSchema, ask);
  return { client, StreamableHTTPClientTransport };
}

async function second() {
  const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
  const mode = era === 'modern' ? { pin: '2026-07-28' } : 'legacy';
  const client = new Client(me, { capabilities, versionNegotiation: { mode } });
  client.setRequestHandler('elicitation/create', ask);
  return { client, StreamableHTTPClientTransport };
}

const { client, StreamableHTTPClientTransport } = await (major === '1' ? first() : second());
const requestInit = { headers: { Authorization: `Bearer ${key}` } };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));

/** What came of a call, as text. */
async function call(name) {
  try {
    const result = await client.callTool({ name, arguments: {} });
    return `${result.isError ? 'error: ' : ''}${result.content[0].text}`;
  } catch (error) {
    return `refused: ${error.message}`;
  }
}

const { tools } = await client.listTools();
const saw = { tools: tools.map((tool) => tool.name).sort(), withheld: await call('demo__slow'), unknown: await call('demo__slaw') };
const whoami = [await call('tracker__whoami'), await call('tracker__whoami')];
console.log(JSON.stringify({ ...saw, whoami, asked }));
await client.close();
process.exit(0);
