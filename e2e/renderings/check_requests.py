"""Puts rendered tools into whole requests and checks those with validators that are given as a directory.

    check_requests.py DIRECTORY VALIDATORS

`DIRECTORY` is as for `check.py`. `VALIDATORS` holds `validate_bodies.py`, `strict_td.py` and `openai_items.py`, which are
imported, so that the libraries behind them are loaded once. Prints one line of JSON, as `check.py` does.
"""

import json
import pathlib
import sys
import warnings

warnings.simplefilter("ignore")


def request(provider, tools, delta):
    """The smallest request that may have these tools."""
    said = {"role": "user", "content": "hello"}
    if provider == "openai":
        return {"model": "m", "input": [{"type": "message", **said}, *delta], "tools": tools, "stream": True}
    if provider == "openai-chat":
        return {"model": "m", "messages": [said], "tools": tools, "stream": True}
    if provider == "anthropic":
        return {"model": "m", "max_tokens": 1, "messages": [said, *delta[:1]], "tools": tools, "stream": True}
    return {"contents": [{"role": "user", "parts": [{"text": "hello"}]}], "tools": tools}


def main(directory, validators):
    sys.path.insert(0, validators)
    import openai_items
    import strict_td
    import validate_bodies

    strict = {
        "openai": strict_td.openai_adapter("responses"),
        "openai-chat": strict_td.openai_adapter("chat"),
        "anthropic": strict_td.anthropic_adapter(),
        "anthropic-beta": strict_td.anthropic_adapter(beta=True),
    }
    lenient = {"openai": ["openai", "openai-td"], "openai-chat": ["chat"], "anthropic": ["anthropic-beta"]}

    def errors(provider, body, has_delta):
        for name in lenient.get(provider, ["gemini"]):
            yield from validate_bodies.F[name](body)
        kinds = {"anthropic": ["anthropic-beta"] if has_delta else ["anthropic", "anthropic-beta"]}
        for name in kinds.get(provider, [provider]):
            if name in strict:
                try:
                    strict_td.materialise(strict[name].validate_python(body))
                except Exception as error:  # Whatever it is, the body is not taken.
                    yield str(error)[:1500]
        if provider == "openai":
            for number, tool in enumerate(body["tools"]):
                yield from openai_items.check(tool, openai_items.TOOLS, f"tools/{number}")
                yield from openai_items.unknown_keys(tool, openai_items.TOOLS, f"tools/{number}")

    checked, wrong = 0, []
    for file in sorted(pathlib.Path(directory).glob("*.*.json")):
        provider = file.name.split(".")[1]
        if provider not in ("openai", "openai-chat", "anthropic", "gemini", "gemini-parameters"):
            continue
        found = json.loads(file.read_text())
        for delta in ([], found["delta"]):
            if delta or not found["delta"] or provider in ("openai", "anthropic"):
                body = request(provider, found["tools"], delta)
                wrong += [f"{file.name}: {error}" for error in errors(provider, body, bool(delta))]
                checked += 1
    print(json.dumps({"checked": checked, "wrong": wrong}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
