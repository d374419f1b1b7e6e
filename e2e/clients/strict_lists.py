"""Reads every list with the Python SDK, which checks it strictly, and what the meta-tools show of definitions.

Arguments: the address and the era (legacy or modern).
"""

import json
import sys

import anyio
import mcp
import mcp_types


async def main() -> None:
    address, era = sys.argv[1:3]
    mode = "2026-07-28" if era == "modern" else "legacy"
    seen = {}
    async with mcp.Client(address, mode=mode) as client:
        seen["tools"] = names((await client.list_tools()).tools)
        seen["prompts"] = names((await client.list_prompts()).prompts)
        seen["resources"] = names((await client.list_resources()).resources)
        seen["templates"] = names((await client.list_resource_templates()).resource_templates)
    async with mcp.Client(f"{address}?dynamic=true", mode=mode) as client:
        await client.list_tools()

        async def call(name: str, arguments: dict) -> dict:
            result = await client.call_tool(name, arguments)
            if result.is_error:
                raise RuntimeError(f"{name}: {result.content[0].text}")
            return result.structured_content

        described = []
        for toolset in (await call("list_toolsets", {}))["toolsets"]:
            chosen = {"toolsetName": toolset["name"]}
            for tool in (await call("describe_toolset", chosen))["tools"]:
                definition = await call("describe_tool", {"name": tool["name"]})
                described.append(mcp_types.Tool.model_validate(definition).name)
            enabled = (await call("enable_toolset", chosen))["tools"]
            if era == "modern":
                [mcp_types.Tool.model_validate(definition) for definition in enabled]
        listed = described if era == "modern" else names((await client.list_tools()).tools)
        seen["described"] = described
        seen["enabled"] = [name for name in listed if name in described]
    print(json.dumps(seen), flush=True)


def names(entries: list) -> list[str]:
    return [entry.name for entry in entries]


anyio.run(main)
