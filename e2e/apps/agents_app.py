"""Lets the Agents SDK of OpenAI talk to a session, with both APIs.

    agents_app.py BOARD KEY FAKES [CASE]
"""

import asyncio
import json

import agents
import openai

from frame import FIND, call, run, same

agents.set_tracing_disabled(True)
#: One loop for all, since the libraries close their connections later.
loop = asyncio.new_event_loop()
FOUND = {"calls": [call(FIND, q="tea")]}
ANSWER = {"text": "There are 42 teas."}
BOTH = {"calls": [call("weather", city="Oslo"), call(FIND, q="tea")]}


@agents.function_tool
def weather(city: str) -> str:
    """The weather"""
    return f"rain in {city}"


def agent(place, model, name):
    app = openai.AsyncOpenAI(base_url=place.session + "/openai/v1", api_key=place.key, max_retries=0)
    return agents.Agent(name="a", tools=[weather], model=model(model=name, openai_client=app))


async def streamed(agent):
    result = agents.Runner.run_streamed(agent, "hi")
    async for _ in result.stream_events():
        pass
    return result.final_output


async def whole(agent):
    return (await agents.Runner.run(agent, "hi")).final_output


def agents_with(place, backend, model, name):
    for ask in (streamed, whole):
        for steps in ([FOUND, ANSWER], [BOTH, ANSWER], [{"calls": [call("weather", city="Oslo")]}, FOUND, ANSWER]):
            place.fakes.script(backend, *steps)
            same(loop.run_until_complete(ask(agent(place, model, name))), "There are 42 teas.")
            last = json.dumps(place.fakes.seen()[-1])
            for step in steps[:-1]:
                assert ("rain in Oslo" in last) >= any(each["name"] == "weather" for each in step["calls"]), last
                assert ("tea" in last) >= any(each["name"] == FIND for each in step["calls"]), last


def agents_with_chat(place):
    agents_with(place, "openai-chat", agents.OpenAIChatCompletionsModel, "llama")


def agents_with_responses(place):
    agents_with(place, "openai", agents.OpenAIResponsesModel, "gpt-5.5")


if __name__ == "__main__":
    run([agents_with_chat, agents_with_responses])
