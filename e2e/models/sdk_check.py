"""Lets the official libraries of OpenAI, Anthropic and Google talk to the fake model backends.

    sdk_check.py PROGRAM

`PROGRAM` is `switchboard-fake-models`. Every case asks what a real program asks (text, one call, parallel calls, the
results, thinking, an error in the stream, a limit) and looks at what the library made of the answer. Prints one line of
JSON: `{"checked": N, "wrong": ["case: what is wrong", ...]}`.
"""

import json
import os
import subprocess
import sys
import traceback
import urllib.request
import warnings

warnings.simplefilter("ignore")

# The libraries look for keys, addresses and proxies there: nothing of the person who runs this belongs into the test.
for name in list(os.environ):
    if name.upper().startswith(("ANTHROPIC", "CLAUDE", "OPENAI", "GOOGLE", "GEMINI")) or name.upper().endswith("_PROXY"):
        del os.environ[name]

import anthropic
import openai
from google import genai
from google.genai import errors as genai_errors
from google.genai import types

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
THINKING_MODEL = "claude-opus-5-5"
#: This library sends keys as bearer tokens: their beginning tells them from tokens of an account.
CLAUDE_KEY = "sk-ant-api-fake"
GEMINI_3 = "gemini-3.1-pro-preview"


class Fakes:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data=data)) as answer:
            return json.loads(answer.read())

    def script(self, backend, *steps):
        self.ask("/_fake/clear", {})
        self.ask("/_fake/script", {backend: list(steps)})

    def violations(self):
        return self.ask("/_fake/seen")["violations"]

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)


CALLS = [{"name": "weather", "arguments": {"city": "Köln"}}, {"name": "weather", "arguments": {"city": "Oslo"}}]
USAGE = {"input": 120, "cached": 40, "output": 30, "reasoning": 10}
LIMIT = {"status": {"code": 429, "headers": {"retry-after": "7"}, "body": {"error": {"message": "slow down", "type": "rate_limit_error", "code": 429, "status": "RESOURCE_EXHAUSTED"}}}}


def same(found, expected):
    assert found == expected, f"{found!r} is not {expected!r}"


# OpenAI Responses


def responses(fakes):
    return openai.OpenAI(base_url=fakes.url + "/v1", api_key="key", max_retries=0)


def responses_turn(fakes, items, **more):
    tools = [{"type": "function", "name": "weather", "description": "", "parameters": SCHEMA, "strict": False}]
    body = {"model": "gpt-5.5", "input": items, "tools": tools, "store": False, "include": ["reasoning.encrypted_content"]}
    with responses(fakes).responses.stream(**body, **more) as stream:
        events = list(stream)
        final = stream.get_final_response()
    # What is said piece by piece, item by item and as a whole is the same.
    kinds = [event.type for event in events]
    same(kinds[:2] + kinds[-1:], ["response.created", "response.in_progress", "response.completed"])
    same([event.sequence_number for event in events], list(range(len(events))))
    done = [event.item for event in events if event.type == "response.output_item.done"]
    same([item.id for item in done], [item.id for item in final.output])
    for item in final.output:
        said = "".join(event.delta for event in events if event.type.endswith(".delta") and event.item_id == item.id)
        whole = {"function_call": lambda: item.arguments, "message": lambda: item.content[0].text, "reasoning": lambda: item.summary[0].text}
        same(said, whole[item.type]())
    return final


def user(text):
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def responses_text(fakes):
    fakes.script("openai", {"text": "grüße, 世界", "usage": USAGE})
    final = responses_turn(fakes, [user("hi")])
    same(final.output_text, "grüße, 世界")
    same(final.status, "completed")
    same((final.usage.input_tokens, final.usage.input_tokens_details.cached_tokens), (120, 40))
    same(responses(fakes).responses.create(model="gpt-5.5", input="hello").output_text, "echo: hello")
    same(responses(fakes).models.list().data[0].id, "gpt-5.5")


def responses_calls_and_results(fakes):
    fakes.script("openai", {"thinking": "both cities", "calls": CALLS}, {"text": "rain"})
    first = responses_turn(fakes, [user("hi")])
    same([item.type for item in first.output], ["reasoning", "function_call", "function_call"])
    same(first.output[0].summary[0].text, "both cities")
    calls = first.output[1:]
    same([json.loads(call.arguments)["city"] for call in calls], ["Köln", "Oslo"])
    history = [user("hi"), *[item.model_dump(exclude_none=True) for item in first.output]]
    for item in history:
        item.pop("parsed_arguments", None)
    results = [{"type": "function_call_output", "call_id": call.call_id, "output": "wet"} for call in calls]
    second = responses_turn(fakes, history + results)
    same(second.output_text, "rain")
    try:
        responses_turn(fakes, history + results[:1])
    except openai.BadRequestError as error:
        assert "No tool output found for function call" in error.message, error.message
    else:
        raise AssertionError("a missing output was taken")


def responses_single_call_unscripted(fakes):
    fakes.script("openai")
    first = responses_turn(fakes, [user('call weather {"city": "Bonn"}')])
    same([(item.name, item.arguments) for item in first.output], [("weather", '{"city": "Bonn"}')])
    call = first.output[0].model_dump(exclude_none=True)
    call.pop("parsed_arguments", None)
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "dry"}
    second = responses_turn(fakes, [user("hi"), call, output])
    same(second.output_text, "results: dry")


def responses_truncated(fakes):
    fakes.script("openai", {"calls": CALLS[:1], "truncated": True})
    tools = [{"type": "function", "name": "weather", "parameters": SCHEMA, "strict": False}]
    events = list(responses(fakes).responses.create(model="gpt-5.5", input="hi", tools=tools, stream=True))
    same(events[-1].type, "response.incomplete")
    same(events[-1].response.incomplete_details.reason, "max_output_tokens")
    same(events[-1].response.output[0].status, "incomplete")


def responses_error_event(fakes):
    fakes.script("openai", {"text": "half", "error_event": {"kind": "server_error", "message": "gone"}})
    try:
        events = list(responses(fakes).responses.create(model="gpt-5.5", input="hi", stream=True))
        same((events[-1].type, events[-1].message), ("error", "gone"))
    except openai.APIError as error:
        assert "gone" in str(error), error
    fakes.script("openai", {"error_event": {"kind": "server_error", "message": "gone"}, "quirks": ["failed_response"]})
    events = list(responses(fakes).responses.create(model="gpt-5.5", input="hi", stream=True))
    same((events[-1].type, events[-1].response.error.message), ("response.failed", "gone"))


def responses_limit(fakes):
    fakes.script("openai", LIMIT)
    try:
        responses_turn(fakes, [user("hi")])
    except openai.RateLimitError as error:
        same(error.response.headers["retry-after"], "7")
    else:
        raise AssertionError("no RateLimitError")


def chatgpt_text(fakes):
    fakes.script("chatgpt", {"text": "hello"})
    client = openai.OpenAI(base_url=fakes.url + "/backend-api/codex", api_key="token", max_retries=0, default_headers={"chatgpt-account-id": "a"})
    body = {"model": "gpt-5.5", "input": [user("hi")], "instructions": "be brief", "store": False}
    with client.responses.stream(**body) as stream:
        same(stream.get_final_response().output_text, "hello")
    try:
        client.responses.create(**body, stream=True, max_output_tokens=10)
    except openai.BadRequestError as error:
        same(error.response.json(), {"detail": "Unsupported parameter: max_output_tokens"})
    else:
        raise AssertionError("max_output_tokens was taken")


# Chat Completions


def chat_turn(fakes, messages):
    client = openai.OpenAI(base_url=fakes.url + "/v1", api_key="key", max_retries=0)
    tools = [{"type": "function", "function": {"name": "weather", "description": "", "parameters": SCHEMA}}]
    body = {"model": "m", "messages": messages, "tools": tools, "stream_options": {"include_usage": True}}
    with client.chat.completions.stream(**body) as stream:
        for _ in stream:
            pass
        return stream.get_final_completion()


def chat_text(fakes):
    fakes.script("openai-chat", {"text": "grüße", "usage": USAGE})
    final = chat_turn(fakes, [{"role": "user", "content": "hi"}])
    same((final.choices[0].message.content, final.choices[0].finish_reason), ("grüße", "stop"))
    same((final.usage.prompt_tokens, final.usage.completion_tokens), (120, 30))


def chat_calls_and_results(fakes):
    fakes.script("openai-chat", {"calls": CALLS})
    first = chat_turn(fakes, [{"role": "user", "content": "hi"}]).choices[0]
    same(first.finish_reason, "tool_calls")
    calls = first.message.tool_calls
    same([json.loads(call.function.arguments)["city"] for call in calls], ["Köln", "Oslo"])
    said = [{"id": call.id, "type": "function", "function": {"name": "weather", "arguments": call.function.arguments}} for call in calls]
    results = [{"role": "tool", "tool_call_id": call.id, "content": "wet"} for call in calls]
    history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None, "tool_calls": said}]
    same(chat_turn(fakes, history + results).choices[0].message.content, "results: wet | wet")
    try:
        chat_turn(fakes, history + results[:1])
    except openai.BadRequestError as error:
        assert "did not have response messages" in error.message, error.message
    else:
        raise AssertionError("a missing result was taken")


def chat_errors(fakes):
    fakes.script("openai-chat", {"text": "half", "error_event": {"kind": "server_error", "message": "gone"}}, LIMIT)
    for expected, words in [(openai.APIError, "gone"), (openai.RateLimitError, "slow down")]:
        try:
            chat_turn(fakes, [{"role": "user", "content": "hi"}])
        except expected as error:
            assert words in str(error), error
        else:
            raise AssertionError(f"no {expected.__name__}")


# Anthropic


def claude_turn(fakes, messages, **more):
    client = anthropic.Anthropic(base_url=fakes.url, api_key=CLAUDE_KEY, auth_token=None, max_retries=0)
    tools = [{"name": "weather", "description": "", "input_schema": SCHEMA}]
    body = {"model": THINKING_MODEL, "max_tokens": 1000, "messages": messages, "tools": tools, "thinking": {"type": "adaptive"}}
    body.update(more)
    with client.messages.stream(**body) as stream:
        return stream.get_final_message()


def claude_text(fakes):
    fakes.script("anthropic", {"text": "grüße", "usage": USAGE})
    final = claude_turn(fakes, [{"role": "user", "content": "hi"}])
    same((final.content[0].text, final.stop_reason), ("grüße", "end_turn"))
    same((final.usage.input_tokens, final.usage.cache_read_input_tokens, final.usage.output_tokens), (80, 40, 30))
    client = anthropic.Anthropic(base_url=fakes.url, api_key=CLAUDE_KEY, auth_token=None)
    same(client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "a"}]).content[0].text, "echo: a")
    assert client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "a"}]).input_tokens > 0
    token = anthropic.Anthropic(base_url=fakes.url, api_key=None, auth_token="t", default_headers={"anthropic-beta": "oauth-2025-04-20"})
    same(token.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "b"}]).content[0].text, "echo: b")


def claude_calls_and_results(fakes):
    fakes.script("anthropic", {"thinking": "both cities", "text": "well", "calls": CALLS}, {"calls": [{"name": "weather", "arguments": {}}]})
    messages = [{"role": "user", "content": "hi"}]
    first = claude_turn(fakes, messages)
    same([block.type for block in first.content], ["thinking", "text", "tool_use", "tool_use"])
    same((first.content[0].thinking, first.stop_reason), ("both cities", "tool_use"))
    same([block.input["city"] for block in first.content[2:]], ["Köln", "Oslo"])
    results = [{"type": "tool_result", "tool_use_id": block.id, "content": "wet"} for block in first.content[2:]]
    messages += [{"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in first.content]}]
    for block in messages[-1]["content"]:
        block.pop("parsed_output", None)
    second = claude_turn(fakes, messages + [{"role": "user", "content": results}])
    same((second.content[0].name, second.content[0].input), ("weather", {}))
    for change, words in [
        ({"messages": messages + [{"role": "user", "content": results[:1]}]}, "without `tool_result` blocks immediately after"),
        ({"messages": messages + [{"role": "user", "content": results}], "system": "new"}, "bound to a different conversation"),
    ]:
        try:
            claude_turn(fakes, **change)
        except anthropic.BadRequestError as error:
            assert words in error.message, error.message
        else:
            raise AssertionError(f"taken, although: {words}")


def claude_errors(fakes):
    fakes.script("anthropic", {"text": "half", "error_event": {"kind": "overloaded_error", "message": "Overloaded"}}, LIMIT)
    for expected, words in [(anthropic.APIStatusError, "Overloaded"), (anthropic.RateLimitError, "slow down")]:
        try:
            claude_turn(fakes, [{"role": "user", "content": "hi"}])
        except expected as error:
            assert words in str(error), error
        else:
            raise AssertionError(f"no {expected.__name__}")


# Gemini


def gemini_turn(fakes, contents, model=GEMINI_3, version=None):
    options = types.HttpOptions(base_url=fakes.url, api_version=version)
    client = genai.Client(api_key="key", http_options=options)
    declaration = {"name": "weather", "description": "", "parameters_json_schema": SCHEMA}
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[declaration])],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    parts, last = [], None
    for chunk in client.models.generate_content_stream(model=model, contents=contents, config=config):
        last = chunk
        content = chunk.candidates[0].content
        parts += (content.parts or []) if content else []
    return parts, last


def said(text):
    return types.Content(role="user", parts=[types.Part(text=text)])


def gemini_text(fakes):
    for version in [None, "v1beta"]:
        fakes.script("gemini", {"thinking": "hm", "text": "grüße, 世界", "usage": USAGE})
        parts, last = gemini_turn(fakes, [said("hi")], version=version)
        same("".join(part.text for part in parts if part.text and not part.thought), "grüße, 世界")
        same("".join(part.text for part in parts if part.thought), "hm")
        same(last.candidates[0].finish_reason.value, "STOP")
        usage = last.usage_metadata
        same((usage.prompt_token_count, usage.candidates_token_count, usage.thoughts_token_count), (120, 20, 10))


def gemini_calls_and_results(fakes):
    fakes.script("gemini", {"text": "well", "calls": CALLS})
    parts, _ = gemini_turn(fakes, [said("hi")])
    calls = [part for part in parts if part.function_call]
    same([call.function_call.args["city"] for call in calls], ["Köln", "Oslo"])
    same([bool(call.thought_signature) for call in calls], [True, False])
    model = types.Content(role="model", parts=calls)
    response = types.Part.from_function_response(name="weather", response={"output": "wet"})
    parts, _ = gemini_turn(fakes, [said("hi"), model, types.Content(role="user", parts=[response, response])])
    same("".join(part.text for part in parts), "results: wet | wet")
    unsigned = types.Content(role="model", parts=[types.Part(function_call=call.function_call) for call in calls])
    for contents, words in [
        ([said("hi"), model, types.Content(role="user", parts=[response])], "number of function response parts"),
        ([said("hi"), unsigned, types.Content(role="user", parts=[response, response])], "missing a thought_signature"),
    ]:
        try:
            gemini_turn(fakes, contents)
        except genai_errors.ClientError as error:
            assert words in str(error), error
        else:
            raise AssertionError(f"taken, although: {words}")


def gemini_unexpected_call(fakes):
    fakes.script("gemini", {"calls": [{"name": "nobody", "arguments": {}}]})
    parts, last = gemini_turn(fakes, [said("hi")])
    same((parts, last.candidates[0].finish_reason.value), ([], "UNEXPECTED_TOOL_CALL"))


def gemini_errors(fakes):
    fakes.script("gemini", {"text": "half", "error_event": {"kind": "UNAVAILABLE", "message": "gone"}}, LIMIT)
    for words in ["gone", "slow down"]:
        try:
            gemini_turn(fakes, [said("hi")])
        except genai_errors.APIError as error:
            assert words in str(error), error
        else:
            raise AssertionError(f"no error with {words}")


#: Cases that mean to break rules, and look at how they are told.
BREAKS_RULES = {"responses_calls_and_results", "chatgpt_text", "chat_calls_and_results", "claude_calls_and_results", "gemini_calls_and_results"}
CASES = [
    responses_text, responses_calls_and_results, responses_single_call_unscripted, responses_truncated,
    responses_error_event, responses_limit, chatgpt_text, chat_text, chat_calls_and_results, chat_errors, claude_text,
    claude_calls_and_results, claude_errors, gemini_text, gemini_calls_and_results, gemini_unexpected_call, gemini_errors,
]  # fmt: skip


def main(program):
    fakes = Fakes(program)
    wrong = []
    for case in CASES:
        try:
            case(fakes)
            if case.__name__ not in BREAKS_RULES:
                same(fakes.violations(), [])
        except Exception:  # Whatever it is, the case failed.
            wrong.append(f"{case.__name__}: {traceback.format_exc(limit=-3)}")
    fakes.close()
    print(json.dumps({"checked": len(CASES), "wrong": wrong}))


if __name__ == "__main__":
    main(sys.argv[1])
