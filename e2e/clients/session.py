"""What every Python client does, whatever its library: list, call, hear of progress and of a change."""

import contextlib
import json
from collections.abc import Awaitable, Callable

import anyio

PATIENCE = 20


async def use(
    client: object,
    listen: Callable,
    tools: Callable[[], Awaitable[list]],
    call: Callable[[str, dict, object], Awaitable[object]],
    changed: anyio.Event,
) -> None:
    with anyio.fail_after(PATIENCE):
        async with contextlib.AsyncExitStack() as stack:
            version = client.session.protocol_version
            subscription = None
            if version >= "2026-07-28":
                subscription = await stack.enter_async_context(listen(client.session, tools_list_changed=True))
            names = sorted(tool.name for tool in await tools())
            echo = await call(named(names, "echo"), {"text": "hello"}, None)
            heard = []

            async def progress(done: float, total: float | None, message: str | None) -> None:
                heard.append(done)

            await call(named(names, "slow"), {}, progress)
            say(waits="for a change")
            if subscription is None:
                await changed.wait()
            else:
                await anext(aiter(subscription))
            after = sorted(tool.name for tool in await tools())
            say(version=version, tools=names, echo=echo, progress=len(heard), after=after)


def named(names: list[str], suffix: str) -> str:
    return next(name for name in names if name.endswith(suffix))


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)
