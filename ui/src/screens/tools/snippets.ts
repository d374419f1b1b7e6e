/** A call as code for other programs. A key is always a variable, never in clear. Pure. */
import type { ToolView } from '../../api/types';

export interface Snippet {
  name: string;
  text: string;
}

/** The name under which MCP clients see the tool. */
export function mcpName(tool: Pick<ToolView, 'server' | 'tool' | 'expose_as'>): string {
  return tool.expose_as ?? `${tool.server}__${tool.tool}`;
}

/** A word for a POSIX shell. */
export function shellWord(text: string): string {
  return /^[\w./:=@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

function python(value: unknown): string {
  if (value === null || value === undefined) return 'None';
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (Array.isArray(value)) return `[${value.map(python).join(', ')}]`;
  if (typeof value === 'object') {
    return `{${Object.entries(value)
      .map(([key, each]) => `${JSON.stringify(key)}: ${python(each)}`)
      .join(', ')}}`;
  }
  return JSON.stringify(value);
}

export function snippets(
  tool: Pick<ToolView, 'name' | 'server' | 'tool' | 'expose_as'>,
  args: object,
  origin: string,
  withKey: boolean,
): Snippet[] {
  const json = JSON.stringify(args);
  const key = withKey ? ` \\\n  -H "Authorization: Bearer $SWITCHBOARD_API_KEY"` : '';
  const name = mcpName(tool);
  const pythonHeaders = withKey ? ', headers={"Authorization": "Bearer " + os.environ["SWITCHBOARD_API_KEY"]}' : '';
  const tsHeaders = withKey
    ? `, {\n  requestInit: { headers: { Authorization: \`Bearer \${process.env.SWITCHBOARD_API_KEY}\` } },\n}`
    : '';
  return [
    {
      name: 'curl',
      text: `curl ${origin}/api/v1/tools/${encodeURIComponent(tool.name)}/call${key} \\\n  -H "Content-Type: application/json" \\\n  -d ${shellWord(JSON.stringify({ arguments: args }))}`,
    },
    { name: 'CLI', text: `switchboard --url ${origin} tool call ${shellWord(tool.name)} ${shellWord(json)}` },
    {
      name: 'JSON-RPC',
      text: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }, null, 2),
    },
    {
      name: 'Python',
      text: `import asyncio${withKey ? ', os' : ''}
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

async def main():
    async with streamablehttp_client("${origin}/mcp"${pythonHeaders}) as (read, write, _):
        async with ClientSession(read, write) as session:
            await session.initialize()
            print(await session.call_tool(${JSON.stringify(name)}, ${python(args)}))

asyncio.run(main())`,
    },
    {
      name: 'TypeScript',
      text: `import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const client = new Client({ name: "example", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(new URL("${origin}/mcp")${tsHeaders}));
console.log(await client.callTool({ name: ${JSON.stringify(name)}, arguments: ${json} }));`,
    },
  ];
}
