"""Calls Microsoft's Agent 365 tooling package, unmodified.

Reads a list of operations as JSON from standard input and prints the list of their results as one line of JSON. An
operation may have `env`, whose variables are set (or removed, when null) before it.

    {"op": "list", "agent": ..., "token": ..., "orchestrator": ..., "turn": {...}}
        -> {"servers": [...]} or {"error": text}
    {"op": "chat", "turn": {...}, "history": [...], "orchestrator": ...}
        -> {"succeeded": ..., "text": ..., "errors": [...]} or {"error": text}
    {"op": "urls", "agent": ..., "server": ...}
        -> {"gateway": ..., "base": ..., "server": ..., "chat": ...}
    {"op": "message", "message": {...}}
        -> {"message": {...}} or {"error": text}

What the package logs from INFO on goes into the member `logs` of each result.
"""

import asyncio
import dataclasses
import json
import logging
import os
import sys
from types import SimpleNamespace

from microsoft_agents_a365.tooling import (
    McpToolServerConfigurationService,
    build_mcp_server_url,
    get_mcp_base_url,
    get_tooling_gateway_for_digital_worker,
)
from microsoft_agents_a365.tooling.models import ChatHistoryMessage, ToolOptions
from microsoft_agents_a365.tooling.utils.utility import get_chat_history_endpoint


class Lines(logging.Handler):
    def __init__(self):
        super().__init__(logging.INFO)
        self.lines = []

    def emit(self, record):
        self.lines.append(f"{record.levelname} {record.getMessage()}")


def turn_context(turn):
    """The members of a turn that the package reads."""
    if turn is None:
        return None
    sender = SimpleNamespace(agentic_app_blueprint_id=turn.get("blueprint"))
    activity = SimpleNamespace(
        conversation=SimpleNamespace(id=turn.get("conversation")),
        id=turn.get("message"),
        text=turn.get("text"),
        from_=sender,
    )
    return SimpleNamespace(activity=activity)


async def perform(service, operation):
    options = ToolOptions(orchestrator_name=operation.get("orchestrator"))
    if operation["op"] == "list":
        servers = await service.list_tool_servers(
            operation["agent"],
            operation["token"],
            options=options,
            turn_context=turn_context(operation.get("turn")),
        )
        return {"servers": [dataclasses.asdict(server) for server in servers]}
    if operation["op"] == "chat":
        history = [ChatHistoryMessage(**message) for message in operation["history"]]
        result = await service.send_chat_history(turn_context(operation["turn"]), history, options=options)
        errors = [error.message for error in result.errors]
        return {"succeeded": result.succeeded, "text": str(result), "errors": errors}
    if operation["op"] == "urls":
        return {
            "gateway": get_tooling_gateway_for_digital_worker(operation["agent"]),
            "base": get_mcp_base_url(),
            "server": build_mcp_server_url(operation["server"]),
            "chat": get_chat_history_endpoint(),
        }
    if operation["op"] == "message":
        return {"message": ChatHistoryMessage(**operation["message"]).model_dump(mode="json")}
    raise ValueError(f"there is no operation {operation['op']!r}")


async def main():
    results = []
    for operation in json.load(sys.stdin):
        for name, value in operation.get("env", {}).items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        lines = Lines()
        logger = logging.Logger("tooling", logging.INFO)
        logger.addHandler(lines)
        service = McpToolServerConfigurationService(logger)
        try:
            result = await perform(service, operation)
        except Exception as error:  # what the package throws is a result here
            result = {"error": str(error)}
        results.append({**result, "logs": lines.lines})
    print(json.dumps(results))


asyncio.run(main())
