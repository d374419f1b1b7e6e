"""Microsoft's extension for the OpenAI Agents SDK, unmodified, gives an agent its MCP servers.

Prints, as one line of JSON, the servers of the agent with their tools and the result of one call at each, and what the
extension logs from WARNING on. The first argument is the id of the agent, the second its token.
"""

import asyncio
import json
import logging
import sys
from types import SimpleNamespace

from agents import Agent
from microsoft_agents_a365.tooling.extensions.openai import mcp_tool_registration_service


class Lines(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


async def main():
    agent_id, token = sys.argv[1:]
    lines, logger = Lines(), logging.Logger("openai", logging.INFO)
    logger.addHandler(lines)
    service = mcp_tool_registration_service.McpToolRegistrationService(logger)
    # The members of a turn that the extension reads.
    activity = SimpleNamespace(
        id="turn-1",
        from_=SimpleNamespace(agentic_app_blueprint_id=None),
        is_agentic_request=lambda: True,
        get_agentic_instance_id=lambda: agent_id,
    )
    context = SimpleNamespace(activity=activity)
    before = Agent(name="assistant", instructions="Use the tools.")
    after = await service.add_tool_servers_to_agent(before, None, "handler", context, token)
    found = []
    for server in after.mcp_servers:
        tools = [tool.name for tool in await server.list_tools()]
        result = await server.call_tool(tools[0], {"text": "hello"}) if tools else None
        text = result.content[0].text if result else None
        found.append({"name": server.name, "url": server.params["url"], "tools": tools, "said": text})
    await service.cleanup_all_servers()
    print(json.dumps({"servers": found, "logs": lines.lines}))


asyncio.run(main())
