"""One request of a client -> what it can be asked and told while its call runs.

The two eras of the protocol differ here and nowhere else. A session of the older one can be asked
in the middle of a call. A stateless request cannot: the call ends with what must be decided, and
the client makes it again with the answers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from limner.frontends.mcp.call_scope import folders_of
from limner.frontends.mcp.running_calls import RunningCall
from limner.frontends.mcp.server import TASKS
from limner.tools.base import Question

ROOTS_TIMEOUT_S = 5.0
# Accepting is the answer: a form without fields is a yes or no in every client.
_YES_OR_NO: Mapping[str, Any] = {"type": "object", "properties": {}}


class Caller:
    """The client behind one ``tools/call``."""

    def __init__(
        self, context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> None:
        self._context, self._session = context, context.session
        self._answers = params.input_responses or {}
        self._is_stateless = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        self._can = context.session.client_capabilities or types.ClientCapabilities()

    @property
    def takes_tasks(self) -> bool:
        """Whether it polls for the answer of a slow call by itself."""
        return self._is_stateless and TASKS in (self._can.extensions or {})

    async def ask(self, question: Question, work: RunningCall) -> bool:
        """Put a question to the user; no where there is no way to."""
        if not _asks_by_form(self._can.elicitation):
            return False
        if not self._is_stateless:
            return await self._ask_now(question, work)
        key = hashlib.sha256(question.text.encode()).hexdigest()[:16]
        if (answer := self._answers.get(key)) is not None:
            return isinstance(answer, types.ElicitResult) and answer.action == "accept"
        work.questions[key] = question
        return False

    async def tell(self, work: RunningCall) -> None:
        """Say how long it has taken, and the latest news."""
        await self._session.report_progress(
            round(work.elapsed_s, 1), message=work.message or f"{work.tool} is at work"
        )

    async def roots(self) -> tuple[Path, ...]:
        """The folders that the client works in, where it tells them."""
        if self._is_stateless or self._can.roots is None:
            return ()
        with suppress(MCPError, ValidationError):
            told = await self._session.send_request(
                types.ListRootsRequest(),
                types.ListRootsResult,
                request_read_timeout_seconds=ROOTS_TIMEOUT_S,
                metadata=ServerMessageMetadata(related_request_id=self._context.request_id),
            )
            return folders_of(str(root.uri) for root in told.roots)
        return ()

    async def _ask_now(self, question: Question, work: RunningCall) -> bool:
        work.asking = True
        try:
            answer = await self._session.elicit_form(
                question.text, dict(_YES_OR_NO), related_request_id=self._context.request_id
            )
        except (MCPError, ValidationError):  # it cannot after all, or has gone
            return False
        finally:
            work.asking = False
        return answer.action == "accept"


def to_decide(questions: Mapping[str, Question]) -> types.InputRequiredResult:
    """What the user must decide before the call is made again."""
    return types.InputRequiredResult(
        input_requests={
            key: types.ElicitRequest(
                params=types.ElicitRequestFormParams(
                    message=question.text, requested_schema=dict(_YES_OR_NO)
                )
            )
            for key, question in questions.items()
        }
    )


def _asks_by_form(offered: types.ElicitationCapability | None) -> bool:
    # Clients of the first revision with elicitation say nothing of modes: they have forms.
    return offered is not None and (offered.form is not None or offered.url is None)
