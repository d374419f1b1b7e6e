// The TypeScript client 2.x, in the era that the second argument names: legacy, auto or modern.
import { args, command, era, later, load, url, use } from './session.mjs';

const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');

const changed = later();
const client = new Client(
  { name: 'typescript-2', version: '1.0.0' },
  {
    versionNegotiation: { mode: era === 'modern' ? { pin: '2026-07-28' } : era },
    listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => changed.resolve() } },
  },
);
await client.connect(
  command ? new StdioClientTransport({ command, args }) : new StreamableHTTPClientTransport(new URL(url)),
);
await use(client, () => client.getNegotiatedProtocolVersion(), changed.promise, false);
