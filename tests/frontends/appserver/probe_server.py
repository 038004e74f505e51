"""A server with methods that show how messages are carried: what `limner app-server` serves from.

Started as a program with the words of `serve`: an address, and perhaps a file with a token, or
`--no-token`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from limner.errors import InputInvalid
from limner.frontends.appserver.dispatch import RpcCall, RpcHandler
from limner.frontends.appserver.methods import Handlers
from limner.frontends.appserver.server import Host, run

Params = dict[str, Any]


async def echo(call: RpcCall, params: Params) -> Params:
    return params


async def forever(call: RpcCall, params: Params) -> None:
    await asyncio.get_running_loop().create_future()


async def turn(call: RpcCall, params: Params) -> None:
    """Answers, and then tells how it goes on."""
    call.answer({"turn": params["name"]})
    for number in range(params["count"]):
        await asyncio.sleep(0)
        call.connection.notify("turn/step", {"turn": params["name"], "number": number})


async def flood(call: RpcCall, params: Params) -> None:
    """Sends megabytes."""
    for _ in range(params["megabytes"]):
        call.connection.notify("flood", "x" * 1024 * 1024)


async def ask(call: RpcCall, params: Params) -> Any:
    answer = await call.connection.request("tool/call", params, timeout_s=params.get("timeout_s"))
    return msgspec.json.decode(answer)


async def say(call: RpcCall, params: Params) -> Params:
    """Prints in every way there is; the child says what it could read."""
    sys.stdout.write("from Python\n")
    sys.stdout.flush()
    os.write(1, b"from the system\n")
    child = "import sys; print('from a child that read', repr(sys.stdin.read()))"
    ended = await asyncio.create_subprocess_exec(sys.executable, "-c", child)
    return {"child": await ended.wait()}


async def mistake(call: RpcCall, params: Params) -> None:
    raise InputInvalid("The colour is unknown.", hint="Say red.")


async def bug(call: RpcCall, params: Params) -> None:
    raise LookupError("token=hush-hush-hush")


async def late_bug(call: RpcCall, params: Params) -> None:
    call.answer({})
    raise LookupError("after the answer")


async def unspeakable(call: RpcCall, params: Params) -> object:
    return object()


async def about(call: RpcCall, params: Params) -> Params:
    return {"pid": os.getpid(), "tasks": len(asyncio.all_tasks())}


def table(host: Host) -> Mapping[str, RpcHandler]:
    served = [echo, forever, turn, flood, ask, say, mistake, bug, late_bug, unspeakable, about]
    return {
        **Handlers(host),
        **{one.__name__: RpcHandler(serve=one, params=Params) for one in served},
        "new": RpcHandler(serve=echo, params=Params, experimental=True),
        "bare": RpcHandler(serve=echo),
    }


if __name__ == "__main__":
    host = Host(env=os.environ, cwd=Path.cwd(), config={})
    run(
        host,
        table(host),
        listen=sys.argv[1],
        token_file=next((Path(word) for word in sys.argv[2:] if word != "--no-token"), None),
        no_token="--no-token" in sys.argv,
    )
