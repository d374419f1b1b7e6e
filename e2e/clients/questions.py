"""The Python SDK's client answers what the tools of asking_server.py ask; prints what each tool returned."""

import json
import sys

import anyio
import mcp
import mcp_types

TOOLS = ["ask", "ask_by_result", "sample", "roots", "talk"]


async def elicit(context: object, params: object) -> mcp_types.ElicitResult:
    return mcp_types.ElicitResult(action="accept", content={"value": "Ada"})


async def sample(context: object, params: object) -> mcp_types.CreateMessageResult:
    text = mcp_types.TextContent(type="text", text="something")
    return mcp_types.CreateMessageResult(role="assistant", content=text, model="none")


async def list_roots(context: object) -> mcp_types.ListRootsResult:
    return mcp_types.ListRootsResult(roots=[mcp_types.Root(uri="file:///home/ada", name="home")])


async def main() -> None:
    place, mode, *command = sys.argv[1:]
    if command:
        place = mcp.StdioServerParameters(command=command[0], args=command[1:])
    logs, heard = [], []

    async def log(params: object) -> None:
        logs.append(params.level)

    async def progress(done: float, total: float | None, message: str | None) -> None:
        heard.append(done)

    returned = {}
    with anyio.fail_after(60):
        async with mcp.Client(
            place,
            mode=mode,
            elicitation_callback=elicit,
            sampling_callback=sample,
            list_roots_callback=list_roots,
            logging_callback=log,
        ) as client:
            names = {tool.name.split("__")[-1]: tool.name for tool in (await client.list_tools()).tools}
            for tool in TOOLS:
                try:
                    result = await client.call_tool(names[tool], {}, progress_callback=progress)
                    returned[tool] = None if result.is_error else result.content[0].text
                except mcp.MCPError:
                    returned[tool] = None
    print(json.dumps({"returned": returned, "logs": logs, "progress": heard}), flush=True)


anyio.run(main)
