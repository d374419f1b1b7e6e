"""Checks the requests of a conversation with validators that are given as a directory.

    check_bodies.py DIRECTORY VALIDATORS

reads every `NUMBER.FORM.json` there, where FORM is `openai`, `chat`, `anthropic-beta` or `gemini`. `VALIDATORS` holds
`validate_bodies.py`, `strict_td.py` and `openai_items.py`, which are imported, so that the libraries behind them are loaded
once. Prints one line of JSON: `{"checked": N, "wrong": ["FILE: why", ...]}`.
"""

import json
import pathlib
import sys
import warnings

warnings.simplefilter("ignore")


def main(directory, validators):
    sys.path.insert(0, validators)
    import openai_items
    import strict_td
    import validate_bodies

    strict = {
        "openai": strict_td.openai_adapter("responses"),
        "chat": strict_td.openai_adapter("chat"),
        "anthropic-beta": strict_td.anthropic_adapter(beta=True),
    }

    def errors(form, body):
        if form in strict:
            try:
                strict_td.materialise(strict[form].validate_python(body))
            except Exception as error:  # Whatever it is, the body is not taken.
                yield str(error)[:1500]
        else:
            yield from validate_bodies.F[form](body)
        if form == "openai":
            for key, table in (("input", openai_items.ITEMS), ("tools", openai_items.TOOLS)):
                for number, item in enumerate(body.get(key, [])):
                    yield from openai_items.check(item, table, f"{key}/{number}")
                    yield from openai_items.unknown_keys(item, table, f"{key}/{number}")

    files = {file: file.name.split(".")[1] for file in sorted(pathlib.Path(directory).glob("*.*.json"))}
    wrong = []
    for file, form in files.items():
        wrong += [f"{file.name}: {error}" for error in errors(form, json.loads(file.read_text()))]
    # OpenAI's document takes a second for each body: the longest one has all that the others have.
    chats = [file for file, form in files.items() if form == "chat"]
    for file in sorted(chats, key=lambda file: file.stat().st_size)[-1:]:
        wrong += [f"{file.name}: {error}" for error in validate_bodies.F["chat"](json.loads(file.read_text()))]
    print(json.dumps({"checked": len(files), "wrong": wrong}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
