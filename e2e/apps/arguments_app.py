"""Lets the official libraries of OpenAI, Anthropic and Google use a tool whose arguments the configuration declares.

    arguments_app.py BOARD KEY FAKES [CASE]

The tool is `get_bank_balance`, which echoes its arguments. Each library meets it in two ways: the board adds it to the
request of the app and runs its calls, or the app fetches the rendering of the session, sends it as its own tools, and
asks the board for each call.
"""

import json
import urllib.error
import urllib.parse
import urllib.request

import anthropic
import openai
from google import genai
from google.genai import types

from frame import call, run, same

TOOL = "get_bank_balance"
DESCRIPTION = "Get bank account balance"
ARGUMENTS = {"account_id": "Bank account identifier", "date": "Date for balance query (optional, format: YYYY-MM-DD)"}
GOOD = {"account_id": "A-1", "date": "2025-08-21"}
WRONG = {"account": "A-1"}
ANSWER = {"text": "It is 7."}
QUESTION = "What is my balance?"
SHOWN = {"X-Switchboard-Show": "calls"}
MODEL, CLAUDE, GEMINI = "gpt-5.5", "claude-opus-5-5", "gemini-3.1-pro-preview"


def declares_both(tools):
    """A request has the tool with both arguments, none of them required."""
    text = json.dumps(tools)
    assert TOOL in text and DESCRIPTION in text, text
    found = properties(tools)
    same({name: found[name]["description"] for name in found}, ARGUMENTS)
    same({str(found[name]["type"]).lower() for name in found}, {"string"})
    assert '"required": ["' not in text, text


def properties(value):
    if isinstance(value, dict):
        own = value.get("properties")
        if isinstance(own, dict) and "account_id" in own:
            return own
        value = list(value.values())
    for each in value if isinstance(value, list) else []:
        if found := properties(each):
            return found
    return None


def corrects_itself(place, backend, ask):
    """The model gives a wrong argument, is told so, gives the right ones, and answers."""
    place.fakes.script(backend, {"calls": [call(TOOL, **WRONG)]}, {"calls": [call(TOOL, **GOOD)]}, ANSWER)
    same(ask(), "It is 7.")
    seen = place.fakes.seen()
    same(len(seen), 3)
    for body in seen:
        declares_both(body["tools"])
    told = json.dumps(seen[1])
    assert "unknown argument `account`" in told and "`account_id`" in told, told
    assert "2025-08-21" in json.dumps(seen[2]), seen[2]


# The board adds the tool.


def openai_chat(place):
    app = openai.OpenAI(base_url=place.session + "/openai/v1", api_key=place.key, max_retries=0)
    messages = [{"role": "user", "content": QUESTION}]

    def whole():
        return app.chat.completions.create(model=MODEL, messages=messages).choices[0].message.content

    def streamed():
        with app.chat.completions.stream(model=MODEL, messages=messages) as stream:
            return stream.get_final_completion().choices[0].message.content

    for ask in (whole, streamed):
        corrects_itself(place, "openai-chat", ask)


def openai_responses(place):
    app = openai.OpenAI(base_url=place.session + "/openai/v1", api_key=place.key, max_retries=0)

    def ask():
        with app.responses.stream(model=MODEL, input=QUESTION) as stream:
            final = stream.get_final_response()
        ran = [item for item in final.output if item.type == "mcp_call"]
        same([(item.name, json.loads(item.arguments)) for item in ran], [(TOOL, WRONG), (TOOL, GOOD)])
        return final.output_text

    corrects_itself(place, "openai", ask)


def anthropic_messages(place):
    app = anthropic.Anthropic(base_url=place.session + "/anthropic", api_key=place.key, max_retries=0, default_headers=SHOWN)

    def ask():
        with app.messages.stream(model=CLAUDE, max_tokens=1000, messages=[{"role": "user", "content": QUESTION}]) as stream:
            final = stream.get_final_message()
        same([(block.name, block.input) for block in final.content if block.type == "mcp_tool_use"], [(TOOL, WRONG), (TOOL, GOOD)])
        same([block.is_error for block in final.content if block.type == "mcp_tool_result"], [True, False])
        return final.content[-1].text

    corrects_itself(place, "anthropic", ask)


def google_gemini(place):
    app = genai.Client(api_key=place.key, http_options=types.HttpOptions(base_url=place.session + "/gemini"))
    corrects_itself(place, "gemini", lambda: app.models.generate_content(model=GEMINI, contents=QUESTION).text)
    corrects_itself(place, "gemini", lambda: "".join(chunk.text or "" for chunk in app.models.generate_content_stream(model=GEMINI, contents=QUESTION)))


# The app sends the rendering, and asks for each call.


def api(place, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {place.key}", "content-type": "application/json"}
    request = urllib.request.Request(f"{place.board}/api/v1/sessions/apps{path}", data=data, headers=headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return json.loads(error.read())


def rendered(place, provider):
    tools = api(place, f"/render?provider={provider}&bare=true")
    declares_both(tools)
    return tools


def result(place, provider, name, arguments):
    """What the board answers to a call of the model, as text."""
    same(name, TOOL)
    answer = api(place, f"/tools/{urllib.parse.quote(name)}/call", {"provider": provider, "arguments": arguments})
    return json.dumps(answer["result"] if "result" in answer else answer)


def rendered_for_openai_chat(place):
    app = openai.OpenAI(base_url=place.fakes.url + "/v1", api_key="sk-direct", max_retries=0)
    tools = rendered(place, "openai-chat")

    def ask():
        messages = [{"role": "user", "content": QUESTION}]
        while True:
            message = app.chat.completions.create(model=MODEL, messages=messages, tools=tools).choices[0].message
            if not message.tool_calls:
                return message.content
            messages.append(message.to_dict())
            for each in message.tool_calls:
                text = result(place, "openai-chat", each.function.name, json.loads(each.function.arguments))
                messages.append({"role": "tool", "tool_call_id": each.id, "content": text})

    corrects_itself(place, "openai-chat", ask)


def rendered_for_openai_responses(place):
    app = openai.OpenAI(base_url=place.fakes.url + "/v1", api_key="sk-direct", max_retries=0)
    tools = rendered(place, "openai")

    def ask():
        messages = [{"role": "user", "content": QUESTION}]
        while True:
            # The fake backend only streams.
            with app.responses.stream(model=MODEL, input=messages, tools=tools, store=False) as stream:
                response = stream.get_final_response()
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                return response.output_text
            for item in calls:
                text = result(place, "openai", item.name, json.loads(item.arguments))
                messages.append({"type": "function_call", "call_id": item.call_id, "name": item.name, "arguments": item.arguments})
                messages.append({"type": "function_call_output", "call_id": item.call_id, "output": text})

    corrects_itself(place, "openai", ask)


def rendered_for_anthropic(place):
    app = anthropic.Anthropic(base_url=place.fakes.url, api_key="sk-ant-api-direct", max_retries=0)
    tools = rendered(place, "anthropic")

    def ask():
        messages = [{"role": "user", "content": QUESTION}]
        while True:
            answer = app.messages.create(model=CLAUDE, max_tokens=1000, messages=messages, tools=tools)
            calls = [block for block in answer.content if block.type == "tool_use"]
            if not calls:
                return answer.content[-1].text
            messages.append({"role": "assistant", "content": [block.to_dict() for block in answer.content]})
            results = [{"type": "tool_result", "tool_use_id": each.id, "content": result(place, "anthropic", each.name, each.input)} for each in calls]
            messages.append({"role": "user", "content": results})

    corrects_itself(place, "anthropic", ask)


def rendered_for_gemini(place):
    app = genai.Client(api_key="AIza-direct", http_options=types.HttpOptions(base_url=place.fakes.url))
    tools = rendered(place, "gemini")
    config = types.GenerateContentConfig(tools=tools, automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True))

    def ask():
        contents = [types.Content(role="user", parts=[types.Part(text=QUESTION)])]
        while True:
            answer = app.models.generate_content(model=GEMINI, contents=contents, config=config)
            if not answer.function_calls:
                return answer.text
            contents.append(answer.candidates[0].content)
            parts = [types.Part.from_function_response(name=each.name, response={"result": result(place, "gemini", each.name, each.args)}) for each in answer.function_calls]
            contents.append(types.Content(role="user", parts=parts))

    corrects_itself(place, "gemini", ask)


if __name__ == "__main__":
    run(
        [
            openai_chat,
            openai_responses,
            anthropic_messages,
            google_gemini,
            rendered_for_openai_chat,
            rendered_for_openai_responses,
            rendered_for_anthropic,
            rendered_for_gemini,
        ]
    )
