// What every TypeScript client does, whatever its library: list, call, hear of progress and of a change.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

/** Where the server is: an address, or `-` and the command that starts it. */
export const [, , url, era, command, ...args] = process.argv;

const installed = createRequire(`${process.env.E2E_NODE_MODULES}/`);

/** A package from where the peers are installed, which is not beside this file. */
export const load = async (name) => import(pathToFileURL(installed.resolve(name)));

const PATIENCE_MS = 20_000;

/** A promise with its handle outside. */
export function later() {
  const handle = {};
  handle.promise = new Promise((resolve) => (handle.resolve = resolve));
  return handle;
}

const names = (list) => list.tools.map((tool) => tool.name).sort();

/** `changed` is resolved by the handler of list changes. In 1.x the second argument of `callTool` was a schema. */
export async function use(client, version, changed, isFirst) {
  const timer = setTimeout(() => {
    console.error('the client waits for something that does not come');
    process.exit(1);
  }, PATIENCE_MS);
  const tools = names(await client.listTools());
  const called = (suffix) => tools.find((name) => name.endsWith(suffix));
  const echo = await client.callTool({ name: called('echo'), arguments: { text: 'hello' } });
  const progress = [];
  const onprogress = (report) => progress.push(report.progress);
  const slow = { name: called('slow'), arguments: {} };
  await (isFirst ? client.callTool(slow, undefined, { onprogress }) : client.callTool(slow, { onprogress }));
  console.log(JSON.stringify({ waits: 'for a change' }));
  await changed;
  const after = names(await client.listTools());
  const structured = echo.structuredContent;
  console.log(JSON.stringify({ version: version(), tools, echo: structured, progress: progress.length, after }));
  clearTimeout(timer);
  await client.close();
  process.exit(0);
}
