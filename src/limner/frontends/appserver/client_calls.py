"""A call of a client's tool -> `item/tool/call`, and the client's answer as what a tool returns.

A call is put to every client that listens, and to those that come later: it waits for its answer
however often they leave, until its time is up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
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
from limner.net.jsonrpc_peer import PendingRequest as Request
from limner.net.jsonrpc_peer import PendingRequests

METHOD = "item/tool/call"


class ClientCalls:
    """Puts calls to the clients of one thread.

    Args:
        thread_id: the thread.
        audience: who listens to it.
        asking: what clients are asked with.
        answers: reads what they answer.
        timeout_s: how long they may take.
    """

    def __init__(
        self,
        thread_id: str,
        *,
        audience: Subscribers,
        asking: PendingRequests,
        answers: ToolAnswers,
        timeout_s: float,
    ) -> None:
        self._thread_id, self._audience, self._asking = thread_id, audience, asking
        self._answers, self._timeout_s = answers, timeout_s

    async def put(
        self, spec: ToolSpec, arguments: Mapping[str, Any], *, call_id: str, turn_id: str
    ) -> ClientAnswer:
        """What became of a call. A turn that is interrupted ends it, and that is an answer too.

        Raises:
            StorageError: a picture in the answer cannot be kept.
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
            result = await self._result(self._asking.open(METHOD, params))
        except RpcError as error:
            return refused(error.message)
        except TimeoutError:
            return timed_out(self._timeout_s)
        except asyncio.CancelledError:
            return cancelled()
        return await _whatever_happens(self._answers.read(result, tool=spec.name))

    async def _result(self, request: Request) -> Raw:
        with self._audience.asked(request):
            return await request.result(timeout_s=self._timeout_s)


async def _whatever_happens(reading: Coroutine[Any, Any, ClientAnswer]) -> ClientAnswer:
    """An answer that has come is read to its end: a client sends it only once."""
    task = asyncio.ensure_future(reading)
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise
    return task.result()
