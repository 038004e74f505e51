"""A call of a client's tool -> the request `item/tool/call`, and the outcome of its response.

A call is sent to every subscriber, and to those that join later. It waits for an answer until its
timeout, even if all clients leave meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from msgspec import Raw

from limner.frontends.appserver.protocol.server_requests import DynamicToolCallParams
from limner.frontends.appserver.subscribers import Subscribers
from limner.frontends.appserver.tool_answers import (
    ClientAnswer,
    ToolAnswers,
    cancelled,
    refused,
    timed_out,
)
from limner.frontends.appserver.tool_specs import ToolSpec
from limner.net.jsonrpc import RpcError
from limner.net.jsonrpc_peer import PendingRequest, PendingRequests

METHOD = "item/tool/call"


class ClientCalls:
    """Sends calls to the clients of one thread.

    Args:
        thread_id: the thread.
        subscribers: its clients.
        pending: the requests to clients.
        answers: decodes their answers.
        timeout_s: how long a call may take.
    """

    def __init__(
        self,
        thread_id: str,
        *,
        subscribers: Subscribers,
        pending: PendingRequests,
        answers: ToolAnswers,
        timeout_s: float,
    ) -> None:
        self._thread_id, self._subscribers, self._pending = thread_id, subscribers, pending
        self._answers, self._timeout_s = answers, timeout_s

    async def call(
        self, spec: ToolSpec, arguments: Any, *, call_id: str, turn_id: str
    ) -> ClientAnswer:
        """The answer to a call. If the turn is interrupted, the call ends with an answer too.

        Raises:
            StorageError: a picture in the answer cannot be stored.
        """
        params = DynamicToolCallParams(
            thread_id=self._thread_id,
            turn_id=turn_id,
            call_id=call_id,
            namespace=spec.namespace,
            tool=spec.name,
            arguments=arguments,
        )
        try:
            result = await self._result(self._pending.open(METHOD, params))
        except RpcError as error:
            return refused(error.message)
        except TimeoutError:
            return timed_out(self._timeout_s)
        except asyncio.CancelledError:
            return cancelled()
        return await _finish(self._answers.read(result, tool=spec.name))

    async def _result(self, request: PendingRequest) -> Raw:
        with self._subscribers.requested(request):
            return await request.result(timeout_s=self._timeout_s)


async def _finish(reading: Coroutine[Any, Any, ClientAnswer]) -> ClientAnswer:
    """Decode an answer to its end, even if the turn is cancelled: a client sends it only once."""
    task = asyncio.ensure_future(reading)
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise
    return task.result()
