"""One of Microsoft's framework extensions of the Agent 365 SDK, unmodified, gives an agent its MCP servers.

The arguments are the framework, the id of the agent and its token. Prints, as one line of JSON: the servers that the
framework got, each with its tools and the result of one call; whether a report of a conversation was taken; and what the
extension logs from WARNING on.
"""

import asyncio
import json
import logging
import sys
from types import SimpleNamespace

ARGUMENTS = {"text": "hello"}


class Lines(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


async def openai(context, token, logger):
    from agents import Agent
    from microsoft_agents_a365.tooling.extensions.openai import mcp_tool_registration_service

    service = mcp_tool_registration_service.McpToolRegistrationService(logger)
    before = Agent(name="assistant", instructions="Use the tools.")
    after = await service.add_tool_servers_to_agent(before, None, "handler", context, token)
    found = []
    for server in after.mcp_servers:
        tools = [tool.name for tool in await server.list_tools()]
        result = await server.call_tool(tools[0], ARGUMENTS)
        said = result.content[0].text
        arguments = {"name": server.name, "params": dict(server.params)}
        found.append({"arguments": arguments, "tools": tools, "said": said})
    reported = await service.send_chat_history_messages(context, [{"role": "user", "content": "Hello"}])
    await service.cleanup_all_servers()
    return found, reported


async def semantic_kernel(context, token, logger):
    from microsoft_agents_a365.tooling.extensions.semantickernel import McpToolRegistrationService
    from semantic_kernel import Kernel
    from semantic_kernel.contents import ChatHistory

    service, kernel = McpToolRegistrationService(logger), Kernel()
    await service.add_tool_servers_to_agent(kernel, None, "handler", context, token)
    found = []
    for connected in service._connected_plugins:
        plugin = kernel.plugins[connected.name]
        tools = list(plugin.functions)
        result = await kernel.invoke(plugin[tools[0]], **ARGUMENTS)
        said = result.value[0].text
        arguments = {"name": connected.name, "url": connected.url, "headers": connected.headers}
        found.append({"arguments": arguments, "tools": tools, "said": said})
    history = ChatHistory()
    history.add_user_message("Hello")
    reported = await service.send_chat_history(context, history)
    for connected in service._connected_plugins:
        await connected.close()
    return found, reported


async def agent_framework(context, token, logger):
    from agent_framework import BaseChatClient, Message
    from microsoft_agents_a365.tooling.extensions.agentframework import McpToolRegistrationService

    class NoModel(BaseChatClient):
        def _inner_get_response(self, **_):
            raise AssertionError("nothing asks the model")

    service = McpToolRegistrationService(logger)
    agent = await service.add_tool_servers_to_agent(
        NoModel(), "Use the tools.", [], None, "handler", context, token
    )
    found = []
    for server in agent.mcp_tools:
        async with server:
            tools = [function.name for function in server.functions]
            result = await server.functions[0].invoke(arguments=ARGUMENTS)
            said = result if isinstance(result, str) else result[0].text
        arguments = {"name": server.name, "url": server.url, "description": server.description}
        found.append({"arguments": arguments, "tools": tools, "said": said})
    reported = await service.send_chat_history_messages([Message("user", ["Hello"])], context)
    for client in service._http_clients:
        await client.aclose()
    return found, reported


async def azure_ai_foundry(context, token, logger):
    from azure.ai.agents.models import MessageTextContent, MessageTextDetails, ThreadMessage
    from azure.ai.projects import AIProjectClient
    from azure.core.credentials import AccessToken
    from azure.core.pipeline.transport import RequestsTransport
    from mcp import Client
    from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
    from microsoft_agents_a365.tooling.extensions.azureaifoundry import McpToolRegistrationService

    sent = []

    class Recorder(RequestsTransport):
        """Keeps what would go to Azure."""

        def send(self, request, **_):
            sent.append(json.loads(request.content or request.body))
            raise ConnectionAbortedError("recorded")

    credential = SimpleNamespace(get_token=lambda *_, **__: AccessToken("azure", 2**40))
    project = AIProjectClient("https://foundry.invalid/api", credential, transport=Recorder())
    quiet = logging.Logger("azure", logging.INFO)
    service = McpToolRegistrationService(quiet, credential)
    try:
        await service.add_tool_servers_to_agent(project, None, "handler", context, token)
    except ConnectionAbortedError:
        pass
    found, body = [], sent[0]
    for tool, resource in zip(body["tools"], body["tool_resources"]["mcp"], strict=True):
        # What the service of Azure does with them.
        async with create_mcp_http_client(resource["headers"]) as http:
            async with Client(streamable_http_client(tool["server_url"], http_client=http)) as client:
                tools = [listed.name for listed in (await client.list_tools()).tools]
                said = (await client.call_tool(tools[0], ARGUMENTS)).content[0].text
        found.append({"arguments": {"tool": tool, "resource": resource}, "tools": tools, "said": said})
    content = [MessageTextContent(text=MessageTextDetails(value="Hello", annotations=[]))]
    message = ThreadMessage(id="m", role="user", content=content)
    reported = await service.send_chat_history_messages(context, [message])
    return found, reported


FRAMEWORKS = {
    "openai": openai,
    "semantic-kernel": semantic_kernel,
    "agent-framework": agent_framework,
    "azure-ai-foundry": azure_ai_foundry,
}


async def main():
    framework, agent_id, token = sys.argv[1:]
    lines, logger = Lines(), logging.Logger(framework, logging.INFO)
    logger.addHandler(lines)
    # The members of a turn that the extensions read.
    activity = SimpleNamespace(
        id="turn-1",
        text="Hello",
        conversation=SimpleNamespace(id="conversation-1"),
        from_=SimpleNamespace(agentic_app_blueprint_id=None),
        is_agentic_request=lambda: True,
        get_agentic_instance_id=lambda: agent_id,
    )
    context = SimpleNamespace(activity=activity)
    found, reported = await FRAMEWORKS[framework](context, token, logger)
    print(json.dumps({"servers": found, "reported": str(reported), "logs": lines.lines}))


asyncio.run(main())
