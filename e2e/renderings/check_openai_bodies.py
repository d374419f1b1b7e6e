"""Checks whole requests to OpenAI with the types of its own library, and with its API document where that is given.

    check_openai_bodies.py DIRECTORY [VALIDATORS]

reads every `openai-CASE.KIND.json` there, where KIND is `openai`, `chatgpt` or `openai-chat`. `VALIDATORS` holds
`validate_bodies.py` and `openai_items.py`. Prints one line of JSON, as `check.py` does.
"""

import importlib
import json
import pathlib
import sys
import warnings

from check import make_strict, type_of
from pydantic import ValidationError

warnings.simplefilter("ignore")

FORMATS = {"openai": "responses", "chatgpt": "responses", "openai-chat": "chat"}


def official():
    import openai.types

    make_strict(openai.types)
    return {
        "responses": type_of("openai.types.responses", "response_create_params", "ResponseCreateParamsStreaming"),
        "chat": type_of("openai.types.chat", "completion_create_params", "CompletionCreateParamsStreaming"),
    }


def by_document(form, body, validators):
    """What OpenAI's API document says, item by item: its words about a whole union cannot be read."""
    if validators is None:
        return
    bodies, items = (importlib.import_module(name) for name in ("validate_bodies", "openai_items"))
    if form == "chat":
        yield from bodies.F["chat"](body)
        return
    # The document has two words for a message of several pieces and allows but one of them, so that none fits.
    plain = [{**item, "content": "pieces"} if item.get("role") in ("user", "developer") and "content" in item else item for item in body["input"]]
    yield from bodies.F["openai"]({**body, "input": plain})
    for key, table in (("input", items.ITEMS), ("tools", items.TOOLS)):
        for number, item in enumerate(body.get(key, [])):
            yield from items.check(item, table, f"{key}/{number}")
            yield from items.unknown_keys(item, table, f"{key}/{number}")


def main(directory, validators=None):
    if validators is not None:
        sys.path.insert(0, validators)
    kinds = official()
    checked, wrong = 0, []
    for file in sorted(pathlib.Path(directory).glob("openai-*.*.json")):
        form = FORMATS[file.name.split(".")[1]]
        body = json.loads(file.read_text())
        found = []
        try:
            kinds[form].validate_python(body)
        except ValidationError as error:
            found.append(str(error)[:1500])
        found += by_document(form, body, validators)
        wrong += [f"{file.name}: {error}" for error in found]
        checked += 1
    print(json.dumps({"checked": checked, "wrong": wrong}))


if __name__ == "__main__":
    main(*sys.argv[1:])
