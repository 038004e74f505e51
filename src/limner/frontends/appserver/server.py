"""Settings and an address in; a server that runs until its clients, or whoever runs it, end it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Coroutine, Iterable, Mapping
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

from limner.errors import UserError
from limner.frontends.appserver.dispatch import Dispatcher, RpcHandler, serve_stdio
from limner.frontends.appserver.log import Log
from limner.frontends.appserver.methods import handlers
from limner.net.jsonrpc_lines import standard_streams
from limner.net.jsonrpc_peer import PendingRequests
from limner.settings import Settings, all_settings, load

if TYPE_CHECKING:
    from limner.client import Limner
    from limner.frontends.appserver.threads import ThreadTable

TOKEN_VARIABLE = "LIMNER_APP_SERVER_TOKEN"  # noqa: S105 - the name of a variable
STDIO = "stdio://"
CLOSE_TIMEOUT_S = 1.5


class Host:
    """What every client of one server shares.

    Attributes:
        settings: how it behaves.
        config: everything that ``--config`` said, by dotted key, known to limner or not.
        log: says one thing to whoever runs the server.
        asking: what clients are being asked.
        closing: what else is to be ended with the server.
    """

    def __init__(self, *, env: Mapping[str, str], cwd: Path, config: Mapping[str, object]) -> None:
        self.log = Log()
        self.asking = PendingRequests(self.log)
        self.env, self.cwd, self.config = env, cwd, config
        known = {key: value for key, value in config.items() if key in all_settings()}
        self.settings: Settings = load(env=env, cwd=cwd, flags=known)
        self.closing = contextlib.AsyncExitStack()
        for key in config.keys() - known.keys():
            self.log(f"--config {key} is no setting of limner's")

    @cached_property
    def limner(self) -> Limner:
        """The tools and everything below them; ends with the server."""
        from limner.client import Limner  # noqa: PLC0415 - a client may only want to say hello

        made = Limner(self.settings, env=self.env, cwd=self.cwd)
        self.closing.push_async_callback(made.aclose)
        return made

    @cached_property
    def threads(self) -> ThreadTable:
        """The threads that are open; ends with the server, before what they use does."""
        from limner.frontends.appserver.threads import ThreadTable  # noqa: PLC0415 - as above

        made = ThreadTable(self.limner, asking=self.asking, log=self.log)
        self.closing.push_async_callback(made.aclose)
        return made

    def warm(self) -> None:
        """Load what the first turn would wait for."""
        self.threads.limner.warm()


def serve(listen: str, *, overrides: Iterable[str] = (), token_file: Path | None = None) -> None:
    """Run a server to its end.

    Args:
        listen: ``stdio://``, ``ws://IP:PORT`` or ``unix://[PATH]``.
        overrides: settings as ``key=value``.
        token_file: holds what clients from elsewhere have to show.

    Raises:
        LimnerError: it cannot be started, or its only client had to be cut off.
    """
    host = Host(
        # The token is for clients, not for the settings and not for tools.
        env={name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE},
        cwd=Path.cwd(),
        config=read_overrides(overrides),
    )
    run(host, handlers(host), listen=listen, token_file=token_file)


def run(
    host: Host, table: Mapping[str, RpcHandler], *, listen: str, token_file: Path | None = None
) -> None:
    """Serve a table of methods to the end; as `serve`."""
    dispatcher = Dispatcher(table, pending=host.asking, log=host.log)
    try:
        if listen == STDIO:
            with standard_streams() as (source, target):
                work = serve_stdio(dispatcher, source=source, target=target)
                asyncio.run(_until_told(host, work))
        else:
            from limner.frontends.appserver import (  # noqa: PLC0415 - stdio needs neither
                listen_socket,
                websocket,
            )

            address = listen_socket.read_address(listen, home=host.settings.home)
            token = listen_socket.read_token(token_file, os.environ.get(TOKEN_VARIABLE))
            work = websocket.serve_websocket(dispatcher, address, token=token, log=host.log)
            asyncio.run(_until_told(host, work))
    finally:
        host.log.close()


async def _until_told(host: Host, work: Coroutine[None, None, None]) -> None:
    """Run until the end or SIGTERM, which is an end in good order too."""
    told = asyncio.Event()
    task = asyncio.ensure_future(work)

    def stop() -> None:
        told.set()
        task.cancel()

    with contextlib.suppress(NotImplementedError):  # Windows
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    try:
        await task
    except asyncio.CancelledError:
        if not told.is_set():
            raise
    finally:
        # Clients kill a server that does not end within two seconds.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await host.closing.aclose()


def read_overrides(pairs: Iterable[str]) -> dict[str, object]:
    """Settings as they stand on a command line -> values by dotted key; later ones win.

    A value is TOML; what is not TOML is a text, so that ``model=o3`` needs no quotes.

    Raises:
        UserError: one is not ``key=value``.
    """
    values: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key.strip() and equals):
            raise UserError(f"--config {pair!r} is not KEY=VALUE")
        values |= _flat(key.strip(), _toml(value))
    return values


def _toml(value: str) -> object:
    import tomllib  # noqa: PLC0415 - most servers are started without

    try:
        return tomllib.loads(f"value = {value}", parse_float=Decimal)["value"]
    except (ValueError, ArithmeticError, RecursionError):
        return value.strip().strip("\"'")


def _flat(key: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        return {key: value}
    flat: dict[str, object] = {}
    for name, inner in cast("dict[str, object]", value).items():
        flat |= _flat(f"{key}.{name}", inner)
    return flat
