// The TypeScript SDK 1.x answers what the tools of asking_server.py ask; prints what each tool returned.
import { args, command, load, url } from './session.mjs';

const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js');
const types = await load('@modelcontextprotocol/sdk/types.js');

const capabilities = { elicitation: {}, sampling: {}, roots: { listChanged: true } };
const client = new Client({ name: 'questions', version: '1.0.0' }, { capabilities });
client.setRequestHandler(types.ElicitRequestSchema, () => ({ action: 'accept', content: { value: 'Ada' } }));
client.setRequestHandler(types.CreateMessageRequestSchema, () => ({
  role: 'assistant',
  model: 'none',
  content: { type: 'text', text: 'something' },
}));
client.setRequestHandler(types.ListRootsRequestSchema, () => ({ roots: [{ uri: 'file:///home/ada', name: 'home' }] }));
const logs = [];
client.setNotificationHandler(types.LoggingMessageNotificationSchema, (log) => void logs.push(log.params.level));
const transport = command ? new StdioClientTransport({ command, args }) : new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);
const { tools } = await client.listTools();
const returned = {};
const progress = [];
const onprogress = (report) => progress.push(report.progress);
for (const tool of ['ask', 'ask_by_result', 'sample', 'roots', 'talk']) {
  const { name } = tools.find((each) => each.name.split('__').at(-1) === tool);
  try {
    const result = await client.callTool({ name, arguments: {} }, undefined, { onprogress });
    returned[tool] = result.isError ? null : result.content[0].text;
  } catch {
    returned[tool] = null;
  }
}
console.log(JSON.stringify({ returned, logs, progress }));
await client.close();
process.exit(0);
