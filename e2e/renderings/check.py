"""Checks rendered tools with the types of the providers' own libraries.

    check.py DIRECTORY

reads every `CASE.PROVIDER.json` there, whose member `tools` is the value of `tools` for that provider (and whose member
`delta`, where there is one, what is appended to a conversation), and prints one line of JSON: the number of files that
were checked, and what is wrong with them.

Two habits of the libraries would let nearly everything pass, so they are switched off here: a `TypedDict` takes unknown
keys, and an `Iterable` is looked at only when somebody iterates over it.
"""

import importlib
import inspect
import json
import pathlib
import pkgutil
import re
import sys
import typing
import warnings

from pydantic import TypeAdapter, ValidationError
from typing_extensions import is_typeddict

NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")


def modules(package):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        try:
            yield importlib.import_module(found.name)
        except ImportError:
            continue


def make_strict(package):
    """Every typed dictionary of a package refuses unknown keys, and every iterable in it is a list."""
    for module in modules(package):
        if hasattr(module, "Iterable"):
            module.Iterable = list
        for _, kind in inspect.getmembers(module, is_typeddict):
            if "__pydantic_config__" not in vars(kind):
                kind.__pydantic_config__ = {"extra": "forbid"}


def type_of(package, module, name):
    return TypeAdapter(getattr(importlib.import_module(f"{package}.{module}"), name))


class Official:
    """The adapters, made when they are first needed: importing the libraries takes seconds."""

    def __init__(self):
        import anthropic.types
        import openai.types

        warnings.simplefilter("ignore")
        make_strict(openai.types)
        make_strict(anthropic.types)
        self.openai = type_of("openai.types.responses", "function_tool_param", "FunctionToolParam")
        self.item = type_of("openai.types.responses", "response_input_item_param", "AdditionalTools")
        self.chat = type_of("openai.types.chat", "chat_completion_function_tool_param", "ChatCompletionFunctionToolParam")
        self.anthropic = type_of("anthropic.types", "tool_param", "ToolParam")
        self.message = type_of("anthropic.types.beta", "beta_system_message_param", "BetaSystemMessageParam")

    def errors(self, provider, body):
        tools = body["tools"]
        if provider in ("openai", "openai-chat", "anthropic"):
            kind = {"openai": self.openai, "openai-chat": self.chat, "anthropic": self.anthropic}[provider]
            yield from of_each(kind, tools)
        if provider in ("gemini", "gemini-parameters"):
            yield from self.gemini(tools)
        if provider in ("openai", "anthropic"):
            yield from of_each({"openai": self.item, "anthropic": self.message}[provider], body.get("delta", []))
        if provider == "mcp":
            yield from mcp(tools)
        yield from names(provider, tools)

    def gemini(self, tools):
        from google.genai import types

        for tool in tools:
            if set(tool) != {"functionDeclarations"}:
                yield f"a tool has the keys {sorted(tool)}"
            try:
                types.Tool.model_validate(tool)
            except (ValidationError, AttributeError) as error:  # Its enumerations stumble over what is no text.
                yield str(error)


def of_each(kind, values):
    for value in values:
        try:
            kind.validate_python(value)
        except ValidationError as error:
            yield f"{json.dumps(value)[:200]}: {error}"


def mcp(tools):
    from mcp import types

    for tool in tools:
        try:
            types.Tool.model_validate(tool)
        except ValidationError as error:
            yield str(error)


def names(provider, tools):
    """What no type says: the pattern of names, and that each is there once."""
    if provider.startswith("gemini"):
        tools = [declared for tool in tools for declared in tool["functionDeclarations"]]
    found = [tool.get("name") or tool["function"]["name"] for tool in tools]
    yield from (f"{name!r} is no name" for name in found if not NAME.match(name))
    if len(set(found)) != len(found):
        yield "two tools share a name"


def schemas_are_valid(provider, tools):
    """JSON Schema 2020-12 by the reference implementation, formats of schemas included; and of an object, which the types
    do not ask for."""
    from jsonschema import Draft202012Validator, SchemaError

    key = {"anthropic": "input_schema", "openai": "parameters", "langchain": "args_schema"}.get(provider)
    for tool in tools if key else []:
        if tool[key].get("type") != "object":
            yield f"{tool['name']}: its schema is not of an object"
        try:
            Draft202012Validator.check_schema(tool[key])
        except SchemaError as error:
            yield f"{tool['name']}: {error.message}"


def main(directory: str) -> int:
    official = Official()
    wrong: typing.List[str] = []
    files = sorted(pathlib.Path(directory).glob("*.*.json"))
    for file in files:
        provider = file.name.split(".")[1]
        body = json.loads(file.read_text())
        found = [*official.errors(provider, body), *schemas_are_valid(provider, body["tools"])]
        wrong += [f"{file.name}: {error}" for error in found]
    print(json.dumps({"checked": len(files), "wrong": wrong}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
