"""A FastMCP server whose tools ask their client while they work, run by the end-to-end tests.

    python asking_server.py stdio
    python asking_server.py http PORT     serves http://127.0.0.1:PORT/mcp
"""

import argparse
import asyncio
import os

import mcp_types
from fastmcp import Context, FastMCP

server = FastMCP("e2e-asking")
asked_before: list[str] = []


@server.tool
async def ask(ctx: Context) -> str:
    """Ask for a name and return it. Only the era with sessions has such requests."""
    answer = await ctx.elicit("What is your name?", response_type=str)
    return f"{answer.action}: {answer.data}"


@server.tool
async def ask_by_result(ctx: Context) -> object:
    """Ask for a name by an input_required result. Only the era without sessions has these."""
    if ctx.input_responses:
        return f"told: {ctx.input_responses['name'].content['value']}"
    schema = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}
    question = mcp_types.ElicitRequestFormParams(message="What is your name?", requested_schema=schema)
    return mcp_types.InputRequiredResult(input_requests={"name": mcp_types.ElicitRequest(params=question)})


@server.tool
async def sample(ctx: Context) -> str:
    """Have the client's model write something."""
    message = mcp_types.SamplingMessage(role="user", content=mcp_types.TextContent(type="text", text="Say something."))
    written = await ctx.session.create_message([message], max_tokens=10)
    return written.content.text


@server.tool
async def roots(ctx: Context) -> str:
    """Name the client's roots."""
    return ", ".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)


@server.tool
async def talk(ctx: Context) -> str:
    """Log, report progress and return."""
    await ctx.info("working")
    await ctx.report_progress(1, 2, "half")
    # Some clients miss progress that comes together with the result.
    await asyncio.sleep(0.3)
    return "done"


@server.tool
def count(name: str) -> str:
    """Remember a name and return all that were remembered by this process, and its id."""
    asked_before.append(name)
    return f"{os.getpid()}: {' '.join(asked_before)}"


def main() -> None:
    parser = argparse.ArgumentParser(description="end-to-end peer that asks")
    parser.add_argument("transport", choices=["stdio", "http"])
    parser.add_argument("port", nargs="?", type=int)
    arguments = parser.parse_args()
    if arguments.transport == "stdio":
        server.run(show_banner=False)
    else:
        server.run(transport="http", host="127.0.0.1", port=arguments.port, show_banner=False)


if __name__ == "__main__":
    main()
