"""The Python SDK's client, in the era that the second argument names: legacy, auto or modern."""

import sys

import anyio
import mcp
from mcp.client.subscriptions import listen

import session


async def main() -> None:
    place, era, *command = sys.argv[1:]
    if command:
        place = mcp.StdioServerParameters(command=command[0], args=command[1:])
    changed = anyio.Event()

    async def heard(message: object) -> None:
        if type(message).__name__ == "ToolListChangedNotification":
            changed.set()

    mode = "2026-07-28" if era == "modern" else era
    async with mcp.Client(place, mode=mode, message_handler=heard) as client:

        async def tools() -> list:
            return (await client.list_tools()).tools

        async def call(name: str, arguments: dict, progress: object) -> object:
            return (await client.call_tool(name, arguments, progress_callback=progress)).structured_content

        await session.use(client, listen, tools, call, changed)


anyio.run(main)
