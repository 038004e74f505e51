"""Requests of the server to its clients, and the first answer to each."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Protocol
from weakref import WeakSet

from msgspec import Raw

from limner.frontends.appserver.rpc import ErrorResponse, RequestId, Response, encode_request


class Recipient(Protocol):
    """Whoever can be sent a message."""

    def post(self, message: bytes) -> None:
        """Send it."""
        ...


class PendingRequest:
    """One request that waits for an answer, whoever of those it was sent to answers first."""

    def __init__(
        self, number: int, method: str, params: object, forget: Callable[[], None]
    ) -> None:
        self.id, self.method, self.params = number, method, params
        self._message = encode_request(number, method, params)
        self._asked: WeakSet[Recipient] = WeakSet()
        self._outcome: asyncio.Future[Response | ErrorResponse | None] = (
            asyncio.get_running_loop().create_future()
        )
        self._outcome.add_done_callback(lambda _: forget())

    def send_to(self, client: Recipient, *, translated: tuple[str, object] | None = None) -> None:
        """Put it to a client, under the same id as to every other; to each client once.

        A client of another protocol gets it ``translated``: its method and params there.
        """
        if client not in self._asked and not self._outcome.done():
            self._asked.add(client)
            message = self._message
            client.post(message if translated is None else encode_request(self.id, *translated))

    def was_put_to(self, client: Recipient) -> bool:
        """Whether that client may answer it."""
        return client in self._asked

    def settle(self, outcome: Response | ErrorResponse | None) -> None:
        """Take an answer; None is that none will come."""
        if not self._outcome.done():
            self._outcome.set_result(outcome)

    async def answer(self, *, timeout_s: float | None = None) -> Raw:
        """Wait for the answer, once. Afterwards, however it ends, later answers are ignored.

        Raises:
            RpcError: a client answered with an error.
            TimeoutError: nobody answered in time.
            ConnectionError: nobody is left who could.
        """
        try:
            async with asyncio.timeout(timeout_s):
                outcome = await self._outcome
        finally:
            self._outcome.cancel()
        if outcome is None:
            raise ConnectionError("the client left before it answered")
        if isinstance(outcome, ErrorResponse):
            raise outcome.error
        return outcome.result


class ClientRequests:
    """The questions of one process that are open. Their ids count from 0, as upstream's do."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._numbers = itertools.count()
        self._open: dict[RequestId, PendingRequest] = {}

    def open(self, method: str, params: object) -> PendingRequest:
        """A new question, put to nobody yet."""
        number = next(self._numbers)
        question = PendingRequest(number, method, params, lambda: self._forget(number))
        self._open[number] = question
        return question

    def take(self, client: Recipient, answer: Response | ErrorResponse) -> None:
        """Give an answer to the question it is for, if that was put to this client."""
        question = self._open.get(answer.id)
        if question is None or not question.was_put_to(client):
            self._log(f"an answer to {answer.id!r:.80}, which nobody is waiting for, is ignored")
        else:
            question.settle(answer)

    def _forget(self, number: int) -> None:
        self._open.pop(number, None)
