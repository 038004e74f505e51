"""Settings and an address -> a server that runs until its client leaves or a signal stops it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Coroutine, Iterable, Mapping
from decimal import Decimal
from functools import cached_property
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING, cast

from limner.display_text import clean_text
from limner.errors import UserError
from limner.frontends.appserver.connection import Clients
from limner.frontends.appserver.dispatch import Dispatcher, RpcHandler, serve_stdio
from limner.frontends.appserver.methods import Handlers
from limner.frontends.metrics_option import MetricsAddress, metrics_served
from limner.net.jsonrpc_lines import standard_streams
from limner.net.jsonrpc_peer import PendingRequests
from limner.net.redaction import redact
from limner.settings import Settings, all_settings, load
from limner.storage.home import Home

if TYPE_CHECKING:
    from limner.client import Limner
    from limner.frontends.appserver.threads import ThreadTable

TOKEN_VARIABLE = "LIMNER_APP_SERVER_TOKEN"  # noqa: S105 - the name of a variable
STDIO = "stdio://"
# The response to `initialize` leaves first, and most clients ask for a thread at once.
WARM_AFTER_S, CERTIFICATES_AFTER_S = 0.005, 0.05
# What the first thread and its first turn need, in steps of some 10 ms: the server reads messages
# between them, and answers those first.
WARM_MODULES = (
    "limner.storage.database",
    "limner.client",
    "limner.frontends.appserver.threads",
    "limner.frontends.appserver.thread_opener",
    "limner.money.ledger",
    "limner.net.http",
    "limner.pictures.take",
    "limner.providers.specs",
    "limner.agent.loop",
    "limner.agent.conversation",
    "limner.frontends.appserver.thread_tools",
    "limner.frontends.appserver.turn_methods",
    "limner.tools.built_in",
    "limner.tools.generation",
    "limner.tools.batches",
    "limner.models.remote",
)
CLOSE_TIMEOUT_S = 1.5
STDERR = 2
MAX_WAITING = 1_000
MAX_LINE_CHARS = 8_000
FLUSH_TIMEOUT_S = 0.5


class Host:
    """What all clients of one server share.

    Attributes:
        settings: the settings of the server.
        config: every value of ``--config`` by dotted key, also unknown keys.
        log: writes a line for the user who runs the server.
        pending: the requests to clients that wait for a response.
        clients: those that have sent `initialize`.
        closing: closes what the server has opened.

    Args:
        env: the environment that the settings and keys come from.
        cwd: the folder of new threads.
        config: the values of ``--config``.
        lim: serves the threads and is closed by its owner; None makes one from the rest.
    """

    def __init__(
        self,
        *,
        env: Mapping[str, str],
        cwd: Path,
        config: Mapping[str, object],
        lim: Limner | None = None,
    ) -> None:
        self.log = StderrLog()
        self.pending = PendingRequests(self.log)
        self.clients = Clients()
        self.cwd, self.config = cwd, config
        # The environment of the process is not kept.
        self.env = None if env is os.environ else env
        known = {key: value for key, value in config.items() if key in all_settings()}
        self._given = lim
        self.settings: Settings = (
            load(env=env, cwd=cwd, flags=known) if lim is None else lim.settings
        )
        self.closing = contextlib.AsyncExitStack()
        self._warming: asyncio.TimerHandle | asyncio.Task[None] | None = None
        for key in config.keys() - known.keys():
            self.log(f"--config {key} is not a setting of limner")

    @cached_property
    def limner(self) -> Limner:
        """The tools and everything below them; closed with the server that made it."""
        if self._given is not None:
            return self._given
        from limner.client import Limner  # noqa: PLC0415 - `initialize` alone does not need it

        made = Limner(self.settings, env=self.env, cwd=self.cwd)
        self.closing.push_async_callback(made.aclose)
        return made

    @cached_property
    def threads(self) -> ThreadTable:
        """The open threads; closed with the server, before `limner` is."""
        from limner.frontends.appserver.threads import ThreadTable  # noqa: PLC0415 - as above

        made = ThreadTable(self.limner, pending=self.pending, log=self.log, clients=self.clients)
        self.closing.push_async_callback(made.aclose)
        return made

    def warm_soon(self) -> None:
        """Load what the first turn needs, step by step, unless the server ends before."""
        if self._warming is not None:
            return
        loop, modules = asyncio.get_running_loop(), iter(WARM_MODULES)

        def load_next() -> None:
            if self.clients.are_waiting:
                self._warming = loop.call_later(WARM_AFTER_S, load_next)
                return
            module = next(modules, None)
            if module is None:
                self._warming = loop.call_later(CERTIFICATES_AFTER_S, start_warm)
            else:
                import_module(module)
                self._warming = loop.call_later(0, load_next)

        async def warm() -> None:
            self.threads.limner.warm()

        def start_warm() -> None:
            # What sends requests looks for the task that it runs in, and loads less without one.
            self._warming = loop.create_task(warm())

        def stop() -> None:
            if self._warming is not None:
                self._warming.cancel()

        self._warming = loop.call_later(WARM_AFTER_S, load_next)
        self.closing.callback(stop)


def serve(
    listen: str,
    *,
    overrides: Iterable[str] = (),
    token_file: Path | None = None,
    no_token: bool = False,
    metrics: MetricsAddress | None = None,
) -> None:
    """Run a server to its end.

    Args:
        listen: ``stdio://``, ``ws://IP:PORT`` or ``unix://[PATH]``.
        overrides: settings as ``key=value``.
        token_file: contains the token that clients need on TCP; otherwise the server makes one.
        no_token: clients need none.
        metrics: the address for the metrics of this server.

    Raises:
        LimnerError: it cannot be started, or its only client had to be cut off.
    """
    host = Host(
        env=os.environ,
        cwd=Path.cwd(),
        config=read_overrides(overrides),
    )
    run(
        host,
        Handlers(host),
        listen=listen,
        token_file=token_file,
        no_token=no_token,
        metrics=metrics,
    )


def run(
    host: Host,
    table: Mapping[str, RpcHandler],
    *,
    listen: str,
    token_file: Path | None = None,
    no_token: bool = False,
    metrics: MetricsAddress | None = None,
) -> None:
    """Serve a table of handlers to the end; see `serve`."""
    dispatcher = Dispatcher(table, pending=host.pending, log=host.log)
    try:
        if listen == STDIO:
            with standard_streams() as (source, target):
                work = serve_stdio(dispatcher, source=source, target=target)
                asyncio.run(_until_stopped(host, work, metrics))
        else:
            from limner.frontends import server_token  # noqa: PLC0415 - stdio needs none of these
            from limner.frontends.appserver import listen_socket  # noqa: PLC0415
            from limner.net.websocket import require_library  # noqa: PLC0415

            require_library()
            from limner.frontends.appserver import websocket  # noqa: PLC0415

            home = host.settings.home
            address = listen_socket.read_address(listen, home=home)
            options = server_token.TokenOptions.read(
                file=token_file, variable=TOKEN_VARIABLE, env=os.environ, is_off=no_token
            )
            work = websocket.serve_websocket(
                dispatcher, address, token=options, home=home, log=host.log
            )
            asyncio.run(_until_stopped(host, work, metrics))
    finally:
        host.log.close()


async def _until_stopped(
    host: Host, work: Coroutine[None, None, None], metrics: MetricsAddress | None
) -> None:
    """Run until the end of the work or until SIGTERM."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()

    async def serve_all() -> None:
        async with metrics_served(metrics, home=Home(host.settings.home)):
            await work

    task = asyncio.ensure_future(serve_all())

    def stop() -> None:
        stopped.set()
        task.cancel()

    def on_signal(_: int, __: FrameType | None) -> None:
        loop.call_soon_threadsafe(stop)

    # Not `loop.add_signal_handler`: Windows lacks it, and a loop that closes sets the default
    # again, so that a late SIGTERM would end in failure what is ending in good order.
    signal.signal(signal.SIGTERM, on_signal)
    try:
        await task
    except asyncio.CancelledError:
        if not stopped.is_set():
            raise
    finally:
        # Clients kill a server that does not end within two seconds.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await host.closing.aclose()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def read_overrides(pairs: Iterable[str]) -> dict[str, object]:
    """Settings from the command line -> values by dotted key; later ones win.

    A value is TOML. A value that is not valid TOML is a text, so ``model=o3`` needs no quotes.

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
    import tomllib  # noqa: PLC0415 - most servers start without overrides

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


class StderrLog:
    """Writes lines to standard error from a thread of its own, with secrets hidden.

    A client may start the server with a pipe for standard error and never read it. Writing to a
    full pipe would block the server. Lines that find no room are dropped and counted.
    """

    def __init__(self, fd: int = STDERR) -> None:
        self._fd = fd
        self._waiting: SimpleQueue[str | None] = SimpleQueue()
        self._lost = 0
        self._thread: threading.Thread | None = None

    def __call__(self, text: str) -> None:
        """Write one line."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._write, name="log", daemon=True)
            self._thread.start()
        if self._waiting.qsize() >= MAX_WAITING:
            self._lost += 1
            return
        if self._lost:
            self._waiting.put(f"limner: {self._lost:,} lines of this log are lost\n")
            self._lost = 0
        self._waiting.put(f"limner: {clean_text(redact(text[:MAX_LINE_CHARS]))}\n")

    def close(self) -> None:
        """Write the waiting lines, as far as there is time for it."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join(FLUSH_TIMEOUT_S)

    def _write(self) -> None:
        while (line := self._waiting.get()) is not None:
            # A closed standard error is no reason to fail.
            with contextlib.suppress(OSError):
                os.write(self._fd, line.encode("utf-8", "backslashreplace"))
