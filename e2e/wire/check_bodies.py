"""Checks whole requests with validators that are given as a directory.

    check_bodies.py DIRECTORY VALIDATORS

`DIRECTORY` holds `NAME.KIND.json`, where the kind is a word of the table below. `VALIDATORS` holds `validate_bodies.py` and
`strict_td.py`, which are imported, so that the libraries behind them are loaded once. Prints one line of JSON: how many
were checked, and what is wrong with which.
"""

import json
import pathlib
import sys
import warnings

warnings.simplefilter("ignore")


def main(directory, validators):
    sys.path.insert(0, validators)
    import strict_td
    import validate_bodies

    # Which checks a kind must pass: the lenient ones, and the types of the library without unknown keys, which say more.
    kinds = {
        "anthropic": ([], ["anthropic", "anthropic-beta"]),
        "anthropic-beta": ([], ["anthropic-beta"]),
        "gemini": (["gemini"], []),
    }
    adapters = {
        "anthropic": strict_td.anthropic_adapter(),
        "anthropic-beta": strict_td.anthropic_adapter(beta=True),
    }

    def errors(kind, body):
        lenient, strict = kinds[kind]
        for name in lenient:
            yield from validate_bodies.F[name](body)
        for name in strict:
            try:
                strict_td.materialise(adapters[name].validate_python(body))
            except Exception as error:  # Whatever it is, the body is not taken.
                yield str(error)[:1500]

    checked, wrong = 0, []
    for file in sorted(pathlib.Path(directory).glob("*.*.json")):
        kind = file.name.split(".")[-2]
        found = [f"{file.name}: {error}" for error in errors(kind, json.loads(file.read_text()))]
        wrong += found
        checked += 1
    print(json.dumps({"checked": checked, "wrong": wrong}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
