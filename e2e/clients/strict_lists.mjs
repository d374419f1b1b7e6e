// Reads every list with a TypeScript SDK, which checks it strictly, and what the meta-tools show of definitions.
// Arguments: the address, the era (legacy or modern), and the major version of the SDK.
import { era, load, url } from './session.mjs';

const isFirst = process.argv[4] === '1';
const warnings = [];
console.warn = (text) => warnings.push(text);

const { Client, ToolSchema, transport } = isFirst ? await first() : await second();

async function first() {
  const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { ToolSchema } = await load('@modelcontextprotocol/sdk/types.js');
  return { Client, ToolSchema, transport: () => new StreamableHTTPClientTransport(new URL(address)) };
}

async function second() {
  const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
  const { ToolSchema } = await load('@modelcontextprotocol/core');
  return { Client, ToolSchema, transport: () => new StreamableHTTPClientTransport(new URL(address)) };
}

let address = url;

async function connected(query) {
  address = `${url}${query}`;
  const mode = era === 'modern' ? { pin: '2026-07-28' } : 'legacy';
  const client = new Client({ name: 'strict', version: '1.0.0' }, isFirst ? {} : { versionNegotiation: { mode } });
  await client.connect(transport());
  return client;
}

const names = (entries) => entries.map((entry) => entry.name);

const plain = await connected('');
const { tools } = await plain.listTools();
const { prompts } = await plain.listPrompts();
const { resources } = await plain.listResources();
const { resourceTemplates } = await plain.listResourceTemplates();
await plain.close();

const dynamic = await connected('?dynamic=true');
await dynamic.listTools();
const call = async (name, args) => {
  const result = await dynamic.callTool({ name, arguments: args });
  if (result.isError) throw new Error(`${name}: ${result.content[0].text}`);
  return result.structuredContent;
};
const { toolsets } = await call('list_toolsets', {});
const described = [];
for (const { name: toolsetName } of toolsets) {
  for (const { name } of (await call('describe_toolset', { toolsetName })).tools) {
    described.push(ToolSchema.parse(await call('describe_tool', { name })).name);
  }
  const { tools: definitions } = await call('enable_toolset', { toolsetName });
  if (era === 'modern') definitions.forEach((definition) => ToolSchema.parse(definition));
}
const enabled = era === 'modern' ? described : names((await dynamic.listTools()).tools);
await dynamic.close();

console.log(
  JSON.stringify({
    tools: names(tools),
    prompts: names(prompts),
    resources: names(resources),
    templates: names(resourceTemplates),
    described,
    enabled: enabled.filter((name) => described.includes(name)),
    warnings,
  }),
);
process.exit(0);
