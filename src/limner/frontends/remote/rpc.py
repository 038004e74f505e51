"""One link -> requests and their answers in both directions, and notices from the server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from limner.errors import LimnerError
from limner.frontends.remote.transports import GONE, Link
from limner.json_shapes import as_object
from limner.net.redaction import redact

Params = Mapping[str, Any]

REFUSED = "SERVER_REFUSED"
REQUEST_TIMEOUT_S = 120.0
MAX_AT_ONCE = 256

OVERLOADED = -32001
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL = -32603

_TOLD_CHARS = 1_000

logger = logging.getLogger("limner")


class Unanswerable(Exception):
    """A request of the server that gets an error for an answer."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class _Message(msgspec.Struct):
    """Anything a server sends; which of the four kinds it is shows in what is there."""

    id: str | int | None = None
    method: str | None = None
    params: Any = None
    result: Any = None
    error: Any = None


class Peer:
    """The client's side of one link.

    Args:
        link: where messages go and come from.
        hear: gets each notice, in the order they come, and must not wait.
        answer: answers a request of the server; several run at once.
    """

    def __init__(
        self,
        link: Link,
        *,
        hear: Callable[[str, Params], None],
        answer: Callable[[str, Params], Awaitable[Any]],
    ) -> None:
        self._link, self._hear, self._answer = link, hear, answer
        self._waiting: dict[str | int, asyncio.Future[Any]] = {}
        self._asked = 0
        self._answering: set[asyncio.Task[None]] = set()
        self._ended: str | None = None
        self._reading = asyncio.create_task(self._read())

    async def request(
        self, method: str, params: Params, *, timeout_s: float = REQUEST_TIMEOUT_S
    ) -> Mapping[str, Any]:
        """Ask the server for something; what it answers.

        Raises:
            LimnerError: SERVER_REFUSED with the server's words, SERVER_GONE where the link ends
                first, or where no answer comes in time.
        """
        if self._ended is not None:
            raise gone(self._ended)
        self._asked += 1
        number, answer = self._asked, asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            async with asyncio.timeout(timeout_s):
                await self._send({"id": number, "method": method, "params": params})
                return as_object(await answer)
        except TimeoutError:
            raise gone(f"the server did not answer {method} in {timeout_s:g} s") from None
        finally:
            del self._waiting[number]

    async def notify(self, method: str) -> None:
        """Tell the server something that needs no answer."""
        await self._send({"method": method})

    async def ended(self) -> str:
        """Wait until the link has ended; why it did."""
        await asyncio.shield(self._reading)
        return self._ended or "the connection was closed"

    async def aclose(self) -> None:
        """Close the link; what is still being answered has nobody to go to."""
        await self._link.aclose()
        self._reading.cancel()
        for task in tuple(self._answering):
            task.cancel()
        await asyncio.gather(self._reading, *self._answering, return_exceptions=True)
        self._end("the connection was closed")

    async def _send(self, message: Mapping[str, Any]) -> None:
        await self._link.send(msgspec.json.encode(message))

    async def _read(self) -> None:
        while (data := await self._link.receive()) is not None:
            try:
                message = msgspec.json.decode(data, type=_Message)
            except (msgspec.DecodeError, RecursionError) as error:
                logger.warning("The server sent something that is no message: %s", error)
                continue
            self._take(message)
            # Refusals take their time too: a server that only asks and never reads has to wait.
            while len(self._answering) >= 2 * MAX_AT_ONCE:
                await asyncio.wait(self._answering, return_when=asyncio.FIRST_COMPLETED)
        self._end(await self._link.obituary())

    def _take(self, message: _Message) -> None:
        if message.method is None:
            self._answered(message)
        elif message.id is None:
            self._hear(message.method, as_object(message.params))
        else:
            # Each in a task of its own: a tool that draws must not hold up the next call.
            task = asyncio.create_task(
                self._reply(message.id, message.method, as_object(message.params))
            )
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    def _answered(self, message: _Message) -> None:
        waiting = None if message.id is None else self._waiting.get(message.id)
        if waiting is None or waiting.done():
            logger.debug("An answer came that nobody waits for: %s", message.id)
        elif message.error is not None:
            waiting.set_exception(_refused(as_object(message.error)))
        else:
            waiting.set_result(message.result)

    async def _reply(self, number: str | int, method: str, params: Params) -> None:
        reply: dict[str, Any] = {"id": number}
        try:
            if len(self._answering) > MAX_AT_ONCE:
                raise Unanswerable(OVERLOADED, "Client overloaded; retry later.")
            reply["result"] = await self._answer(method, params)
        except Unanswerable as problem:
            reply["error"] = {"code": problem.code, "message": problem.message}
        except Exception as error:
            # The outermost frame of an answer: the server must not wait for ever.
            logger.exception("The request %s of the server could not be answered.", method)
            told = redact(f"{type(error).__name__}: {error}")[:_TOLD_CHARS]
            reply["error"] = {"code": INTERNAL, "message": told}
        with contextlib.suppress(LimnerError):  # the link has ended, which is told elsewhere
            await self._send(reply)

    def _end(self, reason: str) -> None:
        if self._ended is None:
            self._ended = reason
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(gone(reason))


def gone(reason: str) -> LimnerError:
    """The error of who wanted something from a server that is not there."""
    return LimnerError(f"The app-server is gone: {reason}", code=GONE, retryable=True)


def _refused(error: Mapping[str, Any]) -> LimnerError:
    words = error.get("message")
    told = redact(words)[:_TOLD_CHARS] if isinstance(words, str) else "it gave no reason"
    extras = {"rpc_code": error.get("code"), "data": error.get("data")}
    return LimnerError(f"The app-server refused: {told}", code=REFUSED, extras=extras)
