"""Lets the official libraries of OpenAI, Anthropic and Google talk to a session of one person, whose key grants two tools.

    APP_PERSON=alice APP_SESSION=first people_app.py BOARD KEY FAKES [CASE]
"""

import json
import os

import anthropic
import openai
from google import genai

from frame import FIND, call, run, same

PERSON, SESSION = os.environ["APP_PERSON"], os.environ["APP_SESSION"]
WHOAMI = "tracker__whoami"
HI = [{"role": "user", "content": "hi"}]
ANSWER = {"text": "There are 42 teas."}


def chat(place):
    app = openai.OpenAI(base_url=place.session + "/openai/v1", api_key=place.key, max_retries=0)
    return app.chat.completions.create(model="llama", messages=HI).choices[0].message.content


def responses(place):
    app = openai.OpenAI(base_url=place.session + "/openai/v1", api_key=place.key, max_retries=0)
    return app.responses.create(model="gpt-5.5", input="hi").output_text


def messages(place):
    app = anthropic.Anthropic(base_url=place.session + "/anthropic", api_key=place.key, max_retries=0)
    with app.messages.stream(model="claude-opus-5-5", max_tokens=1000, messages=HI) as stream:
        return stream.get_final_text()


def contents(place):
    app = genai.Client(api_key=place.key, http_options=genai.types.HttpOptions(base_url=place.session + "/gemini"))
    return app.models.generate_content(model="gemini-3.1-pro-preview", contents="hi").text


#: Each API, with its backend and the names of the tools in a request.
APIS = [
    (chat, "openai-chat", lambda body: [tool["function"]["name"] for tool in body["tools"]]),
    (responses, "openai", lambda body: [tool["name"] for tool in body["tools"]]),
    (messages, "anthropic", lambda body: [tool["name"] for tool in body["tools"]]),
    (contents, "gemini", lambda body: [each["name"] for tool in body["tools"] for each in tool["functionDeclarations"]]),
]


def after_whoami(place, ask, backend):
    """The last request to the model, after it called the tool that says whose account was used."""
    place.session = f"{place.board}/s/{SESSION}"
    place.fakes.script(backend, {"calls": [call(WHOAMI)]}, ANSWER)
    same(ask(place), ANSWER["text"])
    first, last = place.fakes.seen()
    return first, json.dumps(last)


def asks_to_sign_in(place):
    for ask, backend, _ in APIS:
        _, last = after_whoami(place, ask, backend)
        assert f"{place.board}/connect/" in last and "sign in" in last, last


def signed_in_it_uses_the_own_account(place):
    for ask, backend, names in APIS:
        first, last = after_whoami(place, ask, backend)
        same(sorted(names(first)), [FIND, WHOAMI])
        # The account server answers with the name of the account.
        same([person for person in ("alice", "bob") if person in last], [PERSON])
        assert "/connect/" not in last, last


def signed_in_other_tools_do_not_exist(place):
    """The model calls a tool that the key does not grant: the app gets the call as one of its own, and nothing runs."""
    place.session = f"{place.board}/s/{SESSION}"
    app = openai.OpenAI(base_url=place.session + "/openai/v1", api_key=place.key, max_retries=0)
    answers = []
    for name in ("shop__order", "shop__ordex"):
        place.fakes.script("openai-chat", {"calls": [call(name, q="tea")]}, ANSWER)
        message = app.chat.completions.create(model="llama", messages=HI).choices[0].message
        answers.append(json.dumps([[each.function.name for each in message.tool_calls or []], message.content]).replace(name, "NAME"))
    same(answers[0], answers[1])


if __name__ == "__main__":
    run([asks_to_sign_in, signed_in_it_uses_the_own_account, signed_in_other_tools_do_not_exist])
