"""What the checks of apps share: the fakes, the cases, and a comparison of answers without their ids."""

import json
import os
import sys
import traceback
import urllib.request
import warnings

warnings.simplefilter("ignore")

# The libraries look for keys, addresses and proxies there: nothing of the person who runs this belongs into the test.
for name in list(os.environ):
    if name.upper().startswith(("ANTHROPIC", "CLAUDE", "OPENAI", "GOOGLE", "GEMINI")) or name.upper().endswith("_PROXY"):
        del os.environ[name]

#: The tool of the session.
FIND = "shop__find"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
LIMIT = {"status": {"code": 429, "headers": {"retry-after": "0"}, "body": {"error": {"message": "slow down", "type": "rate_limit_error", "code": 429, "status": "RESOURCE_EXHAUSTED"}}}}


class Fakes:
    """The fake backends, which another process serves."""

    def __init__(self, url):
        self.url = url

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data=data)) as answer:
            return json.loads(answer.read())

    def script(self, backend, *steps):
        self.ask("/_fake/clear", {})
        self.ask("/_fake/script", {backend: list(steps)})

    def seen(self):
        """The bodies of the requests, oldest first. None of them breaks a rule of its provider."""
        seen = self.ask("/_fake/seen")
        assert not seen["violations"], seen["violations"]
        return [request["body"] for request in seen["requests"]]


class Place:
    """A session of the board, and the fakes behind it."""

    def __init__(self, board, key, fakes):
        self.board, self.key, self.fakes = board, key, fakes
        self.session = board + "/s/apps"


#: Members that differ between two answers to one question.
CHANGING = {"id", "created", "created_at", "completed_at", "usage", "usage_metadata", "response_id", "item_id", "call_id", "sequence_number", "sdk_http_response", "_request_id", "system_fingerprint", "model_version", "create_time", "thought_signature", "signature"}


def plain(value):
    """An answer without what differs between two answers to one question."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items() if name not in CHANGING and each is not None}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value


def same(found, expected):
    assert found == expected, f"\n  found    {found!r}\n  expected {expected!r}"


def call(name, **arguments):
    return {"name": name, "arguments": arguments}


def run(cases):
    """Runs the cases whose names contain the last argument, and prints one line of JSON."""
    board, key, fakes, *wanted = sys.argv[1:]
    place, wrong, checked = Place(board, key, Fakes(fakes)), [], 0
    for case in cases:
        if wanted and wanted[0] not in case.__name__:
            continue
        checked += 1
        try:
            case(place)
            place.fakes.seen()
        except BaseException as error:
            if os.environ.get("TRACE"):
                traceback.print_exc()
            wrong.append(f"{case.__name__}: {type(error).__name__}: {error}"[:2000])
    print(json.dumps({"checked": checked, "wrong": wrong}))
