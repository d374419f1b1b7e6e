// Lets the official npm libraries of OpenAI and Anthropic talk to a session.
//
//   node node_apps.mjs BOARD KEY FAKES [CASE]
//
// Prints one line of JSON: {"checked": N, "wrong": ["case: what is wrong", ...]}.
import { deepStrictEqual as same } from "node:assert";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// The libraries are not installed beside this file.
const require = createRequire(`${process.env.APPS_NPM}/package.json`);
const load = async (name) => (await import(pathToFileURL(require.resolve(name)))).default;
const OpenAI = await load("openai");
const Anthropic = await load("@anthropic-ai/sdk");
const { jsonSchemaOutputFormat } = require("@anthropic-ai/sdk/helpers/json-schema");

const [board, key, fakes, wanted] = process.argv.slice(2);
const FIND = "shop__find";
const SCHEMA = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };
const FOUND = { calls: [{ name: FIND, arguments: { q: "tea" } }] };
const BOTH = { calls: [{ name: "weather", arguments: { city: "Oslo" } }, ...FOUND.calls] };
const ANSWER = { text: "There are 42 teas." };
const HI = [{ role: "user", content: "hi" }];

const ask = async (path, body) => (await fetch(fakes + path, { method: body ? "POST" : "GET", body: body && JSON.stringify(body) })).json();
const script = async (backend, ...steps) => {
  await ask("/_fake/clear", {});
  await ask("/_fake/script", { [backend]: steps });
};
const seen = async () => {
  const { violations, requests } = await ask("/_fake/seen");
  same(violations, []);
  return requests.map((request) => request.body);
};
const openai = (more = {}) => new OpenAI({ baseURL: `${board}/s/apps/openai/v1`, apiKey: key, maxRetries: 0, ...more });
const anthropic = (more = {}) => new Anthropic({ baseURL: `${board}/s/apps/anthropic`, apiKey: key, maxRetries: 0, ...more });

const cases = {
  async chat_streamed() {
    await script("openai-chat", FOUND, ANSWER);
    const stream = openai().chat.completions.stream({ model: "llama", messages: HI });
    same((await stream.finalChatCompletion()).choices[0].message.content, ANSWER.text);
    same((await seen()).length, 2);
  },
  async chat_runs_own_tools() {
    await script("openai-chat", BOTH, ANSWER);
    const tool = { type: "function", function: { name: "weather", parameters: SCHEMA, parse: JSON.parse, function: ({ city }) => `rain in ${city}` } };
    const runner = openai().chat.completions.runTools({ model: "llama", messages: HI, tools: [tool], stream: true });
    same(await runner.finalContent(), ANSWER.text);
    const roles = (await seen())[1].messages.map((message) => message.role);
    same(roles, ["user", "assistant", "tool", "tool"]);
  },
  async chat_whole() {
    await script("openai-chat", FOUND, ANSWER);
    const answer = await openai().chat.completions.create({ model: "llama", messages: HI });
    same(answer.choices[0].message.content, ANSWER.text);
  },
  async chat_error_in_the_stream() {
    await script("openai-chat", FOUND, { text: "There", error_event: { kind: "server_error", message: "broken" } });
    await rejects(async () => {
      for await (const _ of await openai().chat.completions.create({ model: "llama", messages: HI, stream: true }));
    }, /broken/);
  },
  async responses_streamed() {
    await script("openai", FOUND, ANSWER);
    const final = await openai().responses.stream({ model: "gpt-5.5", input: "hi" }).finalResponse();
    same(final.output.map((item) => item.type), ["mcp_call", "message"]);
    same(final.output_text, ANSWER.text);
  },
  async responses_run_own_tools_beside() {
    await script("openai", BOTH, ANSWER);
    const tools = [{ type: "function", name: "weather", parameters: SCHEMA, strict: false }];
    const base = { model: "gpt-5.5", tools, store: false };
    const first = await openai().responses.create({ ...base, input: HI });
    const own = first.output.filter((item) => item.type === "function_call");
    same(own.map((item) => item.name), ["weather"]);
    const results = own.map((item) => ({ type: "function_call_output", call_id: item.call_id, output: "rain" }));
    const second = await openai().responses.stream({ ...base, input: [...HI, ...first.output, ...results] }).finalResponse();
    same(second.output_text, ANSWER.text);
    const kinds = (await seen())[1].input.map((item) => item.type ?? "message");
    same(kinds.filter((kind) => kind.startsWith("function_call")).sort(), ["function_call", "function_call", "function_call_output", "function_call_output"]);
  },
  async formats_are_parsed() {
    const steps = [{ text: "Let me look.", ...FOUND }, { text: '{"city":"Oslo"}' }];
    const format = { type: "json_schema", name: "city", strict: true, schema: SCHEMA };
    await script("openai", ...steps);
    const response = await openai().responses.parse({ model: "gpt-5.5", input: "hi", text: { format } });
    same(JSON.parse(response.output_text), { city: "Oslo" });
    await script("openai-chat", ...steps);
    const { type, ...json_schema } = format;
    const chat = await openai().chat.completions.parse({ model: "llama", messages: HI, response_format: { type, json_schema } });
    same(JSON.parse(chat.choices[0].message.content), { city: "Oslo" });
    await script("anthropic", ...steps);
    const output_config = { format: jsonSchemaOutputFormat(SCHEMA) };
    const message = await anthropic().messages.parse({ model: "claude-opus-5-5", max_tokens: 100, messages: HI, output_config });
    same(message.parsed_output, { city: "Oslo" });
  },
  async parallel_calls() {
    const calls = ["a", "b", "c"].map((q) => ({ name: FIND, arguments: { q } }));
    await script("anthropic", { calls }, ANSWER);
    const message = await anthropic().messages.create({ model: "claude-opus-5-5", max_tokens: 100, messages: HI });
    same(message.content.map((block) => block.text), [ANSWER.text]);
    same((await seen())[1].messages[2].content.map((block) => block.type), ["tool_result", "tool_result", "tool_result"]);
  },
  async threads() {
    await script("anthropic", FOUND, ANSWER, { text: "Yes." });
    const thread = anthropic().beta.messages.thread({ model: "claude-opus-5-5", max_tokens: 100 });
    same((await thread.send({ role: "user", content: "hi" })).content[0].text, ANSWER.text);
    same((await thread.send({ role: "user", content: "Sure?" })).content[0].text, "Yes.");
    same((await seen())[2].messages.map((message) => message.role), ["user", "assistant", "user", "assistant", "user"]);
  },
  async messages_streamed() {
    await script("anthropic", FOUND, ANSWER);
    const stream = anthropic().messages.stream({ model: "claude-opus-5-5", max_tokens: 100, messages: HI });
    same(await stream.finalText(), ANSWER.text);
    await script("anthropic", FOUND, ANSWER);
    const shown = anthropic({ defaultHeaders: { "X-Switchboard-Show": "calls" } }).messages.stream({ model: "claude-opus-5-5", max_tokens: 100, messages: HI });
    same((await shown.finalMessage()).content.map((block) => block.type), ["mcp_tool_use", "mcp_tool_result", "text"]);
  },
  async messages_both() {
    await script("anthropic", BOTH, ANSWER);
    const tools = [{ name: "weather", input_schema: SCHEMA }];
    const base = { model: "claude-opus-5-5", max_tokens: 100, tools };
    const first = await anthropic().messages.stream({ ...base, messages: HI }).finalMessage();
    same(first.content.map((block) => block.name), ["weather"]);
    const results = first.content.map((block) => ({ type: "tool_result", tool_use_id: block.id, content: "rain" }));
    const messages = [...HI, { role: "assistant", content: first.content }, { role: "user", content: results }];
    const second = await anthropic().messages.create({ ...base, messages });
    same(second.content[0].text, ANSWER.text);
    same((await seen())[1].messages[1].content.map((block) => block.name), ["weather", FIND]);
  },
  async messages_error_in_the_stream() {
    await script("anthropic", FOUND, { text: "There", error_event: { kind: "api_error", message: "broken" } });
    await rejects(() => anthropic().messages.stream({ model: "claude-opus-5-5", max_tokens: 100, messages: HI }).finalMessage(), /broken/);
  },
  async a_cut_stream_is_an_error() {
    await script("anthropic", { text: "There are many words in here", cut_after: 700 });
    await rejects(() => anthropic().messages.stream({ model: "claude-opus-5-5", max_tokens: 100, messages: HI }).finalMessage(), /./);
  },
};

async function rejects(run, pattern) {
  try {
    await run();
  } catch (error) {
    if (pattern.test(String(error))) return;
    throw error;
  }
  throw new Error("no error");
}

let checked = 0;
const wrong = [];
for (const [name, run] of Object.entries(cases)) {
  if (wanted && !name.includes(wanted)) continue;
  checked += 1;
  try {
    await run();
    await seen();
  } catch (error) {
    wrong.push(`${name}: ${error?.stack ?? error}`.slice(0, 2000));
  }
}
console.log(JSON.stringify({ checked, wrong }));
