"""Lets the official library of Google talk to a session.

    google_app.py BOARD KEY FAKES [CASE]
"""

import asyncio
import json

from google import genai
from google.genai import errors as genai_errors
from google.genai import types

from frame import FIND, LIMIT, SCHEMA, call, plain, run, same

MODEL = "gemini-3.1-pro-preview"
FOUND = {"calls": [call(FIND, q="tea")]}
ANSWER = {"text": "There are 42 teas."}
WEATHER = types.Tool(function_declarations=[types.FunctionDeclaration(name="weather", description="The weather", parameters_json_schema=SCHEMA)])
NO_LOOP = types.AutomaticFunctionCallingConfig(disable=True)


def client(place, url=None, key=None):
    return genai.Client(api_key=key or place.key, http_options=types.HttpOptions(base_url=url or place.session + "/gemini"))


def direct(place):
    return client(place, place.fakes.url, "AIza-direct")


def text_streamed(app, contents="hi", **config):
    chunks = list(app.models.generate_content_stream(model=MODEL, contents=contents, config=types.GenerateContentConfig(**config)))
    return "".join(chunk.text or "" for chunk in chunks), chunks


def whole(app, contents="hi", **config):
    return app.models.generate_content(model=MODEL, contents=contents, config=types.GenerateContentConfig(**config))


def as_direct(place):
    place.fakes.script("gemini", ANSWER)
    expected = plain(whole(direct(place)).model_dump())
    place.fakes.script("gemini", FOUND, FOUND, ANSWER)
    same(plain(whole(client(place)).model_dump()), expected)
    same(len(place.fakes.seen()), 3)
    place.fakes.script("gemini", ANSWER)
    expected = text_streamed(direct(place))
    place.fakes.script("gemini", FOUND, FOUND, ANSWER)
    found = text_streamed(client(place))
    same(found[0], expected[0])
    same(found[1][-1].candidates[0].finish_reason, expected[1][-1].candidates[0].finish_reason)


def both_in_one_round(place):
    place.fakes.script("gemini", {"calls": [call("weather", city="Oslo"), call(FIND, q="tea")]}, ANSWER)
    app = client(place)
    first = whole(app, tools=[WEATHER], automatic_function_calling=NO_LOOP)
    same([each.name for each in first.function_calls], ["weather"])
    result = types.Part.from_function_response(name="weather", response={"result": "rain"})
    history = [types.Content(role="user", parts=[types.Part(text="hi")]), first.candidates[0].content, types.Content(role="user", parts=[result])]
    second = whole(app, history, tools=[WEATHER], automatic_function_calling=NO_LOOP)
    same(second.text, "There are 42 teas.")
    sent = place.fakes.seen()[1]["contents"]
    same([content["role"] for content in sent], ["user", "model", "user"])
    same([part["functionCall"]["name"] for part in sent[1]["parts"]], ["weather", FIND])
    same([part["functionResponse"]["name"] for part in sent[2]["parts"]], ["weather", FIND])


def automatic_calls(place):
    def weather(city: str) -> str:
        """The weather"""
        return f"rain in {city}"

    place.fakes.script("gemini", {"calls": [call("weather", city="Oslo"), call(FIND, q="tea")]}, ANSWER)
    same(whole(client(place), tools=[weather]).text, "There are 42 teas.")
    same(len([body for body in place.fakes.seen() if "rain in Oslo" in json.dumps(body)]), 1)


def chats_keep_hidden_rounds(place):
    place.fakes.script("gemini", FOUND, ANSWER, {"text": "Yes."})
    app = client(place)
    chat = app.chats.create(model=MODEL)
    same("".join(chunk.text or "" for chunk in chat.send_message_stream("hi")), "There are 42 teas.")
    same(chat.send_message("Sure?").text, "Yes.")
    sent = place.fakes.seen()
    same([content["role"] for content in sent[2]["contents"]], ["user", "model", "user", "model", "user"])
    same(json.dumps(sent[2]["contents"][:3]), json.dumps(sent[1]["contents"]))


def errors(place):
    place.fakes.script("gemini", LIMIT)
    try:
        text_streamed(client(place))
    except genai_errors.ClientError as error:
        same(error.code, 429)
    else:
        raise AssertionError("no error")
    place.fakes.script("gemini", FOUND, LIMIT, ANSWER)
    same(text_streamed(client(place))[0], "There are 42 teas.")
    try:
        text_streamed(client(place, key="sb_wrong"))
    except genai_errors.ClientError as error:
        same(error.code, 401)
    else:
        raise AssertionError("no error")


def errors_in_the_stream(place):
    place.fakes.script("gemini", FOUND, {"text": "There", "error_event": {"kind": "INTERNAL", "message": "broken"}})
    try:
        text_streamed(client(place))
    except genai_errors.APIError as error:
        assert "broken" in str(error), error
    else:
        raise AssertionError("no error")


def async_and_parallel(place):
    place.fakes.script("gemini", {"calls": [call(FIND, q="a"), call(FIND, q="b"), call(FIND, q="c")]}, ANSWER)

    async def ask():
        chunks = await client(place).aio.models.generate_content_stream(model=MODEL, contents="hi")
        return "".join([chunk.text or "" async for chunk in chunks])

    same(asyncio.run(ask()), "There are 42 teas.")
    same([len(content["parts"]) for content in place.fakes.seen()[1]["contents"]], [1, 3, 3])


def own_tools_come_back(place):
    step = {"text": "Wait.", "calls": [call("weather", city="Oslo")]}
    place.fakes.script("gemini", step)
    expected = plain(whole(direct(place), tools=[WEATHER], automatic_function_calling=NO_LOOP).model_dump())
    place.fakes.script("gemini", FOUND, step)
    found = plain(whole(client(place), tools=[WEATHER], automatic_function_calling=NO_LOOP).model_dump())
    same(found, expected)


def counts_tokens_with_the_tools(place):
    place.fakes.script("gemini")
    app = client(place)
    assert app.models.count_tokens(model=MODEL, contents="hi").total_tokens > 0
    tools = place.fakes.seen()[0]["generateContentRequest"]["tools"]
    same(tools[0]["functionDeclarations"][0]["name"], FIND)


def models(place):
    app = client(place)
    assert [model.name for model in app.models.list()], "no models"


def json_output(place):
    place.fakes.script("gemini", {"text": "Let me look.", **FOUND}, {"text": '{"city": "Oslo"}'})
    same(whole(client(place), response_mime_type="application/json", response_json_schema=SCHEMA).parsed, {"city": "Oslo"})


if __name__ == "__main__":
    run([as_direct, both_in_one_round, automatic_calls, own_tools_come_back, async_and_parallel, chats_keep_hidden_rounds, errors, errors_in_the_stream, json_output, counts_tokens_with_the_tools, models])
