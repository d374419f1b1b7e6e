// The TypeScript SDK 1.x, which knows only the legacy era.
import { args, command, later, load, url, use } from './session.mjs';

const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js');
const { ToolListChangedNotificationSchema } = await load('@modelcontextprotocol/sdk/types.js');

const changed = later();
const client = new Client({ name: 'typescript-1', version: '1.0.0' });
client.setNotificationHandler(ToolListChangedNotificationSchema, changed.resolve);
const transport = command ? new StdioClientTransport({ command, args }) : new StreamableHTTPClientTransport(new URL(url));
// Over HTTP the transport keeps it for its headers; over a pipe it only hears of it.
if (command) transport.setProtocolVersion = (version) => (transport.protocolVersion = version);
await client.connect(transport);
await use(client, () => transport.protocolVersion, changed.promise, true);
