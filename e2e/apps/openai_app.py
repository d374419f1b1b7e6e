"""Lets the official library of OpenAI talk to a session, with both of its APIs.

    openai_app.py BOARD KEY FAKES [CASE]
"""

import asyncio
import json
import time

import openai
from pydantic import BaseModel

from frame import FIND, LIMIT, SCHEMA, call, plain, run, same

WEATHER = {"type": "function", "function": {"name": "weather", "description": "The weather", "parameters": SCHEMA}}
WEATHER_ITEM = {"type": "function", "name": "weather", "description": "The weather", "parameters": SCHEMA, "strict": False}


class City(BaseModel):
    name: str
    people: int


def client(place, retries=0, **more):
    return openai.OpenAI(base_url=place.session + "/openai/v1", api_key=place.key, max_retries=retries, **more)


def direct(place):
    return openai.OpenAI(base_url=place.fakes.url + "/v1", api_key="sk-direct", max_retries=0)


HI = [{"role": "user", "content": "hi"}]


def chat_streamed(app, messages=HI, **more):
    with app.chat.completions.stream(model="llama", messages=messages, **more) as stream:
        for _ in stream:
            pass
        return stream.get_final_completion()


def both_ways(place, backend, ask, steps, hidden=()):
    """Asks directly, then through the board with rounds before the last one, and compares the answers."""
    place.fakes.script(backend, *steps)
    expected = plain(ask(direct(place)).to_dict())
    place.fakes.script(backend, *hidden, *steps)
    found = ask(client(place))
    same(plain(found.to_dict()), expected)
    return found, place.fakes.seen()


# Chat Completions

FOUND = {"calls": [call(FIND, q="tea")]}
ANSWER = {"text": "There are 42 teas."}


def chat_whole_is_as_direct(place):
    _, seen = both_ways(place, "openai-chat", lambda app: app.chat.completions.create(model="llama", messages=HI), [ANSWER], [FOUND])
    same(len(seen), 2)
    same([tool["function"]["name"] for tool in seen[0]["tools"]][:1], [FIND])
    same([message["role"] for message in seen[1]["messages"]], ["user", "assistant", "tool"])
    assert "tea" in json.dumps(seen[1]["messages"][2]), seen[1]["messages"]


def chat_streamed_is_as_direct(place):
    _, seen = both_ways(place, "openai-chat", chat_streamed, [ANSWER], [FOUND, FOUND])
    same(len(seen), 3)


def chat_own_tools_come_back(place):
    steps = [{"text": "Wait.", "calls": [call("weather", city="Oslo"), call("weather", city="Bonn")]}]
    _, seen = both_ways(place, "openai-chat", lambda app: chat_streamed(app, tools=[WEATHER]), steps, [FOUND])
    same([tool["function"]["name"] for tool in seen[0]["tools"]][:2], ["weather", FIND])


def chat_both_in_one_round(place):
    for ask in (chat_streamed, lambda app, messages, **more: app.chat.completions.create(model="llama", messages=messages, **more)):
        place.fakes.script("openai-chat", {"calls": [call("weather", city="Oslo"), call(FIND, q="tea"), call("weather", city="Bonn")]}, ANSWER)
        app = client(place)
        first = ask(app, messages=HI, tools=[WEATHER])
        message = first.choices[0].message
        same([each.function.name for each in message.tool_calls], ["weather", "weather"])
        same(first.choices[0].finish_reason, "tool_calls")
        history = [*HI, message.to_dict()]
        history += [{"role": "tool", "tool_call_id": each.id, "content": "rain"} for each in message.tool_calls]
        second = ask(app, messages=history, tools=[WEATHER])
        same(second.choices[0].message.content, "There are 42 teas.")
        sent = place.fakes.seen()[1]["messages"]
        same([message["role"] for message in sent], ["user", "assistant", "tool", "tool", "tool"])
        same([each["function"]["name"] for each in sent[1]["tool_calls"]], ["weather", FIND, "weather"])
        same(sorted(message["tool_call_id"] for message in sent[2:]), sorted(each["id"] for each in sent[1]["tool_calls"]))


def chat_hidden_rounds_are_put_back(place):
    place.fakes.script("openai-chat", FOUND, ANSWER, {"text": "Yes."})
    app = client(place)
    first = chat_streamed(app)
    history = [*HI, first.choices[0].message.to_dict(), {"role": "user", "content": "Sure?"}]
    same(chat_streamed(app, history).choices[0].message.content, "Yes.")
    sent = place.fakes.seen()
    same([message["role"] for message in sent[2]["messages"]], ["user", "assistant", "tool", "assistant", "user"])
    # What the provider has cached stays as it was.
    same(json.dumps(sent[2]["messages"][:3]), json.dumps(sent[1]["messages"]))
    same(json.dumps(sent[2]["tools"]), json.dumps(sent[0]["tools"]))


def chat_parses_formats(place):
    place.fakes.script("openai-chat", {"text": "Let me look.", "calls": [call(FIND, q="Oslo")]}, {"text": '{"name": "Oslo", "people": 7}'})
    parsed = client(place).chat.completions.parse(model="llama", messages=HI, response_format=City)
    same(parsed.choices[0].message.parsed, City(name="Oslo", people=7))
    place.fakes.script("openai-chat", {"text": "Let me look.", "calls": [call(FIND, q="Oslo")]}, {"text": '{"name": "Oslo", "people": 7}'})
    same(chat_streamed(client(place), response_format=City).choices[0].message.parsed, City(name="Oslo", people=7))


def chat_errors(place):
    place.fakes.script("openai-chat", LIMIT)
    try:
        chat_streamed(client(place))
    except openai.RateLimitError as error:
        same(error.status_code, 429)
        assert "slow down" in str(error), error
    else:
        raise AssertionError("no error")
    # An SDK tries again by itself.
    place.fakes.script("openai-chat", LIMIT, FOUND, ANSWER)
    same(chat_streamed(client(place, retries=2)).choices[0].message.content, "There are 42 teas.")
    # A later round is repeated here.
    place.fakes.script("openai-chat", FOUND, LIMIT, ANSWER)
    same(chat_streamed(client(place)).choices[0].message.content, "There are 42 teas.")
    same(len(place.fakes.seen()), 3)
    place.fakes.script("openai-chat", FOUND, {"text": "There", "error_event": {"kind": "server_error", "message": "broken"}})
    try:
        chat_streamed(client(place))
    except openai.APIError as error:
        assert "broken" in str(error), error
    else:
        raise AssertionError("no error")
    try:
        client(place).chat.completions.create(model="llama", messages=HI, n=2)
    except openai.BadRequestError as error:
        same(error.body["param"], "n")
    else:
        raise AssertionError("n=2 was taken")


def chat_cut_streams_are_errors(place):
    place.fakes.script("openai-chat", {"text": "There are many words in here", "cut_after": 500})
    try:
        chat_streamed(client(place))
    except (openai.APIError, openai.APIConnectionError):
        pass
    else:
        raise AssertionError("a cut answer was taken for a whole one")


def chat_without_injection(place):
    place.fakes.script("openai-chat", ANSWER)
    same(client(place, default_headers={"X-Switchboard-Inject": "off"}).chat.completions.create(model="llama", messages=HI).choices[0].message.content, "There are 42 teas.")
    same("tools" in place.fakes.seen()[0], False)


def chat_headers(place):
    place.fakes.script("openai-chat", FOUND, ANSWER)
    raw = client(place).chat.completions.with_raw_response.create(model="llama", messages=HI)
    same(raw.headers["x-switchboard-rounds"], "2")
    assert len(raw.headers["x-switchboard-turn"]) == 32, raw.headers
    same(raw.parse().choices[0].message.content, "There are 42 teas.")


def chat_async_and_parallel(place):
    place.fakes.script("openai-chat", {"calls": [call(FIND, q="a"), call(FIND, q="b"), call(FIND, q="c")]}, ANSWER)

    async def ask():
        async with openai.AsyncOpenAI(base_url=place.session + "/openai/v1", api_key=place.key, max_retries=0) as app:
            text = ""
            async for chunk in await app.chat.completions.create(model="llama", messages=HI, stream=True):
                text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
            return text

    same(asyncio.run(ask()), "There are 42 teas.")
    roles = [message["role"] for message in place.fakes.seen()[1]["messages"]]
    same(roles, ["user", "assistant", "tool", "tool", "tool"])


def chat_retries_join_the_turn(place):
    """The SDK gives up waiting and sends the request again: no call runs twice, and no round is asked for twice."""
    place.fakes.script("openai-chat", {**FOUND, "delay_ms": 1200}, ANSWER)
    answer = client(place, retries=3, timeout=0.8).chat.completions.create(model="llama", messages=HI)
    same(answer.choices[0].message.content, "There are 42 teas.")
    same(len(place.fakes.seen()), 2)
    # Without the word of the SDK, the same question is another one.
    place.fakes.script("openai-chat", ANSWER, {"text": "43"})
    first, second = [client(place).chat.completions.create(model="llama", messages=HI).choices[0].message.content for _ in range(2)]
    same((first, second), ("There are 42 teas.", "43"))


def chat_ends_with_its_app(place):
    place.fakes.script("openai-chat", FOUND, {"text": "many words " * 50, "pace_ms": 50})
    before = place.fakes.ask("/_fake/seen")["closed_by_client"]
    app = client(place)
    stream = app.chat.completions.create(model="llama", messages=HI, stream=True)
    next(chunk for chunk in stream if chunk.choices[0].delta.content)
    stream.close()
    for _ in range(100):
        if place.fakes.ask("/_fake/seen")["closed_by_client"] > before:
            return
        time.sleep(0.05)
    raise AssertionError("the request to the provider goes on")


def keys_and_sessions(place):
    for key, url, wanted in (("sb_wrong", place.session, openai.AuthenticationError), (place.key, place.board + "/s/nobodys", openai.NotFoundError)):
        try:
            openai.OpenAI(base_url=url + "/openai/v1", api_key=key, max_retries=0).chat.completions.create(model="llama", messages=HI)
        except wanted as error:
            assert error.body["message"], error.body
        else:
            raise AssertionError(f"no {wanted}")
    place.fakes.script("openai-chat", FOUND, ANSWER)
    without = openai.OpenAI(base_url=place.board + "/openai/v1", api_key=place.key, max_retries=0)
    same(without.chat.completions.create(model="llama", messages=HI).choices[0].message.content, "There are 42 teas.")
    assert len(client(place).models.list().data) > 0


# Responses


def responses_streamed(app, input="hi", **more):
    with app.responses.stream(model="gpt-5.5", input=input, **more) as stream:
        events = list(stream)
        final = stream.get_final_response()
    same([event.sequence_number for event in events], list(range(len(events))))
    return final


def without_calls(response):
    """An answer without the calls that ran at the board."""
    shown = plain(response.to_dict())
    ran = [item for item in shown["output"] if item["type"] == "mcp_call"]
    return {name: each for name, each in shown.items() if name != "output"}, [item for item in shown["output"] if item["type"] != "mcp_call"], ran


def responses_stream_shows_calls(place):
    place.fakes.script("openai", ANSWER)
    expected = without_calls(responses_streamed(direct(place)))
    place.fakes.script("openai", FOUND, ANSWER)
    final = responses_streamed(client(place))
    found = without_calls(final)
    same(found[1], expected[1])
    same([(item["name"], item["status"], json.loads(item["arguments"])) for item in found[2]], [(FIND, "completed", {"q": "tea"})])
    assert "tea" in found[2][0]["output"], found[2]
    same(final.output_text, "There are 42 teas.")
    same(final.usage.input_tokens, 200)


def responses_calls_can_be_hidden(place):
    place.fakes.script("openai", FOUND, ANSWER)
    final = responses_streamed(client(place, default_headers={"X-Switchboard-Show": "none"}))
    same([item.type for item in final.output], ["message"])


def responses_both_in_one_round(place):
    place.fakes.script("openai", {"thinking": "both", "calls": [call("weather", city="Oslo"), call(FIND, q="tea")]}, ANSWER)
    app = client(place)
    more = {"tools": [WEATHER_ITEM], "store": False, "include": ["reasoning.encrypted_content"]}
    first = responses_streamed(app, **more)
    calls = [item for item in first.output if item.type == "function_call"]
    same([item.name for item in calls], ["weather"])
    history = [{"role": "user", "content": "hi"}]
    for item in first.output:
        item = item.to_dict()
        item.pop("parsed_arguments", None)
        history.append(item)
    history.append({"type": "function_call_output", "call_id": calls[0].call_id, "output": "rain"})
    second = responses_streamed(app, history, **more)
    same(second.output_text, "There are 42 teas.")
    kinds = [item.get("type", "message") for item in place.fakes.seen()[1]["input"]]
    same(sorted(kinds), sorted(["message", "reasoning", "function_call", "function_call", "function_call_output", "function_call_output"]))


def responses_are_stored(place):
    place.fakes.script("openai", FOUND, ANSWER, {"text": "Yes."})
    app = client(place)
    first = app.responses.create(model="gpt-5.5", input="hi", stream=True)
    first = [event for event in first][-1].response
    stored = app.responses.retrieve(first.id)
    same((stored.id, stored.output_text), (first.id, "There are 42 teas."))
    second = responses_streamed(app, "Sure?", previous_response_id=first.id)
    same(second.output_text, "Yes.")
    app.responses.delete(first.id)
    try:
        app.responses.retrieve(first.id)
    except openai.NotFoundError:
        pass
    else:
        raise AssertionError("a deleted response is there")


def responses_parse_formats(place):
    steps = [{"text": "Let me look.", "calls": [call(FIND, q="Oslo")]}, {"text": '{"name": "Oslo", "people": 7}'}]
    place.fakes.script("openai", *steps)
    same(responses_streamed(client(place), text_format=City).output_parsed, City(name="Oslo", people=7))


def responses_async_and_parallel(place):
    place.fakes.script("openai", {"calls": [call(FIND, q="a"), call(FIND, q="b"), call(FIND, q="c")]}, ANSWER)

    async def ask():
        async with openai.AsyncOpenAI(base_url=place.session + "/openai/v1", api_key=place.key, max_retries=0) as app:
            async with app.responses.stream(model="gpt-5.5", input="hi") as stream:
                return await stream.get_final_response()

    final = asyncio.run(ask())
    same([item.type for item in final.output], ["mcp_call"] * 3 + ["message"])
    same(final.output_text, "There are 42 teas.")


def responses_whole_is_as_streamed(place):
    steps = [{"thinking": "hm", "text": "Wait.", **FOUND}, ANSWER]
    found = []
    for ask in (responses_streamed, lambda app: app.responses.create(model="gpt-5.5", input="hi")):
        place.fakes.script("openai", *steps)
        response = ask(client(place))
        found.append((without_calls(response)[1], [(item["name"], item["output"]) for item in without_calls(response)[2]], response.usage.to_dict()))
    same(found[0], found[1])


def responses_retries_join_the_turn(place):
    place.fakes.script("openai", {**FOUND, "delay_ms": 1200}, ANSWER)
    same(client(place, retries=3, timeout=0.8).responses.create(model="gpt-5.5", input="hi").output_text, "There are 42 teas.")
    same(len(place.fakes.seen()), 2)


def responses_count_tokens_with_the_tools(place):
    place.fakes.script("openai")
    count = client(place).responses.input_tokens.count(model="gpt-5.5", input="hi")
    assert count.input_tokens > 0
    same([tool["name"] for tool in place.fakes.seen()[0]["tools"]][:1], [FIND])


def responses_errors(place):
    place.fakes.script("openai", LIMIT)
    try:
        responses_streamed(client(place))
    except openai.RateLimitError as error:
        same(error.status_code, 429)
    else:
        raise AssertionError("no error")
    place.fakes.script("openai", FOUND, LIMIT, ANSWER)
    same(responses_streamed(client(place)).output_text, "There are 42 teas.")
    place.fakes.script("openai", FOUND, {"text": "There", "error_event": {"kind": "server_error", "message": "broken"}})
    try:
        responses_streamed(client(place))
    except (openai.APIError, RuntimeError):
        pass
    else:
        raise AssertionError("no error")
    for member in ({"background": True}, {"conversation": "conv_1"}):
        try:
            client(place).responses.create(model="gpt-5.5", input="hi", **member)
        except openai.BadRequestError as error:
            same(error.body["param"], next(iter(member)))
        else:
            raise AssertionError(f"{member} was taken")


if __name__ == "__main__":
    cases = [value for name, value in list(globals().items()) if name.startswith(("chat_", "responses_", "keys_")) and callable(value) and not name.endswith("_streamed")]
    run(cases)
