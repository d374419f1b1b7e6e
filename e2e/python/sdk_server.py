"""A small server on the official Python SDK, run by the end-to-end tests.

    python sdk_server.py stdio
    python sdk_server.py http PORT     serves http://127.0.0.1:PORT/mcp
    python sdk_server.py sse PORT      serves http://127.0.0.1:PORT/sse
"""

import argparse
import asyncio

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("e2e-sdk")


@server.tool()
def echo(text: str) -> str:
    """Return the text as it came."""
    return text


@server.tool()
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


@server.tool()
async def slow(ctx: Context, steps: int = 5, step_ms: int = 100) -> str:
    """Wait in steps and report progress after each of them."""
    for step in range(1, steps + 1):
        await asyncio.sleep(step_ms / 1000)
        await ctx.report_progress(step, steps, f"step {step} of {steps}")
    return f"done after {steps} steps"


@server.tool()
def fails(reason: str = "on purpose") -> str:
    """Always fail, with the given reason."""
    raise ValueError(f"failed {reason}")


@server.tool()
async def add_tool(name: str, ctx: Context) -> str:
    """Register one more tool that returns its own name, and tell the clients."""

    def added() -> str:
        return name

    ctx.mcp_server.add_tool(added, name=name, description="Added while the server ran.")
    await ctx.notify_tools_changed()  # streams opened by subscriptions/listen
    await ctx.session.send_tool_list_changed()  # sessions opened by initialize
    return f"added {name}"


def main() -> None:
    parser = argparse.ArgumentParser(description="end-to-end peer on the Python SDK")
    parser.add_argument("transport", choices=["stdio", "http", "sse"])
    parser.add_argument("port", nargs="?", type=int)
    arguments = parser.parse_args()
    if arguments.transport == "stdio":
        server.run()
        return
    if arguments.port is None:
        parser.error(f"{arguments.transport} needs a port")
    transport = "streamable-http" if arguments.transport == "http" else "sse"
    server.run(transport=transport, host="127.0.0.1", port=arguments.port)


if __name__ == "__main__":
    main()
