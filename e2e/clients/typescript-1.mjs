// The TypeScript SDK 1.x, which knows only the legacy era.
import { later, load, url, use } from './session.mjs';

const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { ToolListChangedNotificationSchema } = await load('@modelcontextprotocol/sdk/types.js');

const changed = later();
const client = new Client({ name: 'typescript-1', version: '1.0.0' });
client.setNotificationHandler(ToolListChangedNotificationSchema, changed.resolve);
const transport = new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);
await use(client, () => transport.protocolVersion, changed.promise, true);
