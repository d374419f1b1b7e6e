"""Lets the official library of Anthropic talk to a session.

    anthropic_app.py BOARD KEY FAKES [CASE]
"""

import asyncio
import json

import anthropic
from pydantic import BaseModel

from frame import FIND, LIMIT, SCHEMA, call, plain, run, same

WEATHER = {"name": "weather", "description": "The weather", "input_schema": SCHEMA}
HI = [{"role": "user", "content": "hi"}]
BASE = {"model": "claude-opus-5-5", "max_tokens": 1000}
SHOWN = {"X-Switchboard-Show": "calls"}
FOUND = {"calls": [call(FIND, q="tea")]}
ANSWER = {"text": "There are 42 teas."}


class City(BaseModel):
    name: str
    people: int


def client(place, retries=0, **more):
    return anthropic.Anthropic(base_url=place.session + "/anthropic", api_key=place.key, max_retries=retries, **more)


def direct(place):
    return anthropic.Anthropic(base_url=place.fakes.url, api_key="sk-ant-api-direct", max_retries=0)


def streamed(app, messages=HI, **more):
    with app.messages.stream(messages=messages, **BASE, **more) as stream:
        for _ in stream:
            pass
        return stream.get_final_message()


def whole(app, messages=HI, **more):
    return app.messages.create(messages=messages, **BASE, **more)


def as_direct(place):
    for ask in (streamed, whole):
        place.fakes.script("anthropic", ANSWER)
        expected = plain(ask(direct(place)).to_dict())
        place.fakes.script("anthropic", FOUND, FOUND, ANSWER)
        found = ask(client(place))
        same(plain(found.to_dict()), expected)
        same(found.usage.input_tokens, 300)
        seen = place.fakes.seen()
        same([message["role"] for message in seen[2]["messages"]], ["user", "assistant", "user", "assistant", "user"])
        same([tool["name"] for tool in seen[0]["tools"]][:1], [FIND])


def calls_are_shown_on_request(place):
    place.fakes.script("anthropic", {"text": "Wait.", **FOUND}, ANSWER)
    final = streamed(client(place, default_headers=SHOWN))
    same([block.type for block in final.content], ["text", "mcp_tool_use", "mcp_tool_result", "text"])
    same(final.content[1].input, {"q": "tea"})


def own_tools_come_back(place):
    step = {"thinking": "both", "text": "Wait.", "calls": [call("weather", city="Oslo")]}
    place.fakes.script("anthropic", step)
    expected = plain(streamed(direct(place), tools=[WEATHER]).to_dict())
    place.fakes.script("anthropic", step)
    same(plain(streamed(client(place), tools=[WEATHER]).to_dict()), expected)


def both_in_one_round(place):
    for ask in (streamed, whole):
        place.fakes.script("anthropic", {"calls": [call("weather", city="Oslo"), call(FIND, q="tea"), call("weather", city="Bonn")]}, ANSWER)
        app = client(place)
        first = ask(app, tools=[WEATHER])
        same([(block.type, block.name) for block in first.content], [("tool_use", "weather")] * 2)
        same(first.stop_reason, "tool_use")
        results = [{"type": "tool_result", "tool_use_id": block.id, "content": "rain"} for block in first.content]
        history = [*HI, {"role": "assistant", "content": [block.to_dict() for block in first.content]}, {"role": "user", "content": results}]
        second = ask(app, history, tools=[WEATHER])
        same(second.content[0].text, "There are 42 teas.")
        sent = place.fakes.seen()[1]["messages"]
        same([block["name"] for block in sent[1]["content"]], ["weather", FIND, "weather"])
        same({block["tool_use_id"] for block in sent[2]["content"]}, {block["id"] for block in sent[1]["content"]})


def hidden_rounds_are_put_back(place):
    place.fakes.script("anthropic", {"thinking": "hm", **FOUND}, ANSWER, {"text": "Yes."})
    app = client(place)
    first = streamed(app)
    history = [*HI, {"role": "assistant", "content": [block.to_dict() for block in first.content]}, {"role": "user", "content": "Sure?"}]
    same(streamed(app, history).content[0].text, "Yes.")
    sent = place.fakes.seen()
    same([message["role"] for message in sent[2]["messages"]], ["user", "assistant", "user", "assistant", "user"])
    same(json.dumps(sent[2]["messages"][:3]), json.dumps(sent[1]["messages"]))
    same(json.dumps(sent[2]["tools"]), json.dumps(sent[0]["tools"]))


def errors(place):
    place.fakes.script("anthropic", LIMIT)
    try:
        streamed(client(place))
    except anthropic.RateLimitError as error:
        same(error.status_code, 429)
    else:
        raise AssertionError("no error")
    place.fakes.script("anthropic", FOUND, LIMIT, ANSWER)
    same(streamed(client(place)).content[0].text, "There are 42 teas.")
    place.fakes.script("anthropic", FOUND, {"text": "There", "error_event": {"kind": "api_error", "message": "broken"}})
    try:
        streamed(client(place))
    except anthropic.APIError as error:
        assert "broken" in str(error), error
    else:
        raise AssertionError("no error")


def parses_formats(place):
    steps = [{"text": "Let me look.", "calls": [call(FIND, q="Oslo")]}, {"text": '{"name": "Oslo", "people": 7}'}]
    place.fakes.script("anthropic", *steps)
    same(client(place).messages.parse(messages=HI, output_format=City, **BASE).parsed_output, City(name="Oslo", people=7))
    place.fakes.script("anthropic", *steps)
    same(streamed(client(place), output_format=City).parsed_output, City(name="Oslo", people=7))


def async_and_parallel(place):
    place.fakes.script("anthropic", {"calls": [call(FIND, q="a"), call(FIND, q="b"), call(FIND, q="c")]}, ANSWER)

    async def ask():
        async with anthropic.AsyncAnthropic(base_url=place.session + "/anthropic", api_key=place.key, max_retries=0) as app:
            async with app.messages.stream(messages=HI, **BASE) as stream:
                return await stream.get_final_text()

    same(asyncio.run(ask()), "There are 42 teas.")
    results = place.fakes.seen()[1]["messages"][2]["content"]
    same([block["type"] for block in results], ["tool_result"] * 3)


def retries_join_the_turn(place):
    """The library gives up waiting and sends the request again: no call runs twice, and no round is asked for twice."""
    place.fakes.script("anthropic", {**FOUND, "delay_ms": 1200}, ANSWER)
    same(whole(client(place, retries=3, timeout=0.8)).content[0].text, "There are 42 teas.")
    same(len(place.fakes.seen()), 2)


def user(content):
    return {"role": "user", "content": content}


def threads(place):
    """A conversation that is held at the board: each request has only what is new, and the provider gets everything."""
    place.fakes.script("anthropic", {"thinking": "hm", **FOUND}, ANSWER, {"text": "Yes."}, {"calls": [call("weather", city="Oslo"), call(FIND, q="milk")]}, {"text": "Rain."})
    thread = client(place).beta.messages.thread(tools=[WEATHER], system="Be kind", **BASE)
    same(thread.send(user("hi")).content[-1].text, "There are 42 teas.")
    same(thread.send(user("Sure?")).content[0].text, "Yes.")
    with thread.stream(user("And the weather?")) as stream:
        reply = stream.get_final_message()
    same([(block.type, block.name) for block in reply.content], [("tool_use", "weather")])
    result = {"type": "tool_result", "tool_use_id": reply.content[0].id, "content": "rain"}
    same(thread.send(user([result])).content[0].text, "Rain.")
    seen = place.fakes.seen()
    assert all("thread" not in body for body in seen), seen
    assert all(body["system"] == seen[0]["system"] and body["tools"][0] == seen[0]["tools"][0] for body in seen), seen
    same([message["role"] for message in seen[4]["messages"]], ["user", "assistant", "user", "assistant", "user", "assistant", "user", "assistant", "user"])
    same({block["tool_use_id"] for block in seen[4]["messages"][-1]["content"]}, {block["id"] for block in seen[4]["messages"][-2]["content"]})


def tool_runner(place):
    """The tool runner keeps its conversation in a thread."""

    @anthropic.beta_tool
    def weather(city: str) -> str:
        """The weather

        Args:
            city: The city
        """
        return f"rain in {city}"

    place.fakes.script("anthropic", {"calls": [call("weather", city="Oslo"), call(FIND, q="tea")]}, ANSWER)
    runner = client(place).beta.messages.tool_runner(messages=HI, tools=[weather], **BASE)
    final = runner.until_done()
    same([block.text for block in final.content if block.type == "text"], ["There are 42 teas."])
    same(len([body for body in place.fakes.seen() if "rain in Oslo" in json.dumps(body)]), 1)


def counts_tokens_with_the_tools(place):
    place.fakes.script("anthropic")
    count = client(place).messages.count_tokens(model="claude-opus-5-5", messages=HI)
    assert count.input_tokens > 0
    same([tool["name"] for tool in place.fakes.seen()[0]["tools"]][:1], [FIND])


def keys(place):
    try:
        whole(anthropic.Anthropic(base_url=place.session + "/anthropic", api_key="sb_wrong", max_retries=0))
    except anthropic.AuthenticationError as error:
        same(error.body["error"]["type"], "authentication_error")
    else:
        raise AssertionError("no error")
    assert len(client(place).models.list().data) > 0


if __name__ == "__main__":
    run([as_direct, calls_are_shown_on_request, own_tools_come_back, both_in_one_round, hidden_rounds_are_put_back, errors, parses_formats, async_and_parallel, retries_join_the_turn, threads, tool_runner, counts_tokens_with_the_tools, keys])
