"""A FastMCP server whose tools answer with every kind of content, run by the tests of the page.

    python media_server.py stdio
    python media_server.py http PORT     serves http://127.0.0.1:PORT/mcp
"""

import argparse
import asyncio
import io
import struct
import sys
import wave
import zlib

import mcp_types
from fastmcp import Context, FastMCP
from fastmcp.tools import Tool
from fastmcp.utilities.types import Audio, Image

server = FastMCP("e2e-media")


def png(width: int, height: int) -> bytes:
    """A picture of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    row = b"\0" + bytes((28, 126, 214)) * width
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(row * height)) + chunk(b"IEND", b"")


@server.tool
def picture(width: int = 24, height: int = 16) -> Image:
    """Return a picture of one colour."""
    return Image(data=png(width, height), format="png")


@server.tool
def sound() -> Audio:
    """Return a quarter of a second of silence."""
    written = io.BytesIO()
    with wave.open(written, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(1)
        file.setframerate(8000)
        file.writeframes(b"\x80" * 2000)
    return Audio(data=written.getvalue(), format="wav")


@server.tool
def planets() -> dict[str, list[dict[str, str | int]]]:
    """Return a list of objects as structured content."""
    return {"planets": [{"name": "Mars", "moons": 2}, {"name": "Venus", "moons": 0}]}


@server.tool
async def work(ctx: Context, steps: int = 100) -> str:
    """Report progress in steps of 100 ms. What a cancelled call did is told on standard error."""
    try:
        for step in range(1, steps + 1):
            await ctx.report_progress(step, steps, f"step {step}")
            await asyncio.sleep(0.1)
    except asyncio.CancelledError:
        print("work was cancelled", file=sys.stderr, flush=True)
        raise
    return f"done after {steps} steps"


@server.tool
async def ask(ctx: Context) -> str:
    """Ask the caller for a name. Only the era with sessions has such requests."""
    answer = await ctx.elicit("What is your name?", response_type=str)
    return f"{answer.action}: {answer.data}"


@server.tool
async def grow(name: str, ctx: Context) -> str:
    """Register one more tool that returns its own name, and say that the list changed."""

    def grown() -> str:
        return name

    server.add_tool(Tool.from_function(grown, name=name, description="Added while the server ran."))
    await ctx.send_notification(mcp_types.ToolListChangedNotification())
    return f"added {name}"


@server.tool
async def swell(kib: int, ctx: Context) -> str:
    """Register the tool `large`, whose schema has this size, and say that the list changed."""

    def large(word: str) -> str:
        return word

    tool = Tool.from_function(large, description="Added while the server ran.")
    words = ["x" * 1000 + str(number) for number in range(kib)]
    tool.parameters = {"type": "object", "properties": {"word": {"type": "string", "enum": words}}}
    server.add_tool(tool)
    await ctx.send_notification(mcp_types.ToolListChangedNotification())
    return "added large"


def main() -> None:
    parser = argparse.ArgumentParser(description="end-to-end peer with every kind of content")
    parser.add_argument("transport", choices=["stdio", "http"])
    parser.add_argument("port", nargs="?", type=int)
    arguments = parser.parse_args()
    if arguments.transport == "stdio":
        server.run(show_banner=False)
    else:
        server.run(transport="http", host="127.0.0.1", port=arguments.port, show_banner=False)


if __name__ == "__main__":
    main()
