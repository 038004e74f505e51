"""One request of a client -> the questions and notifications that its call sends to the client.

Only this module knows that the two generations of the protocol differ. In a session of the older
one, the server can ask the client during a call. With stateless requests it cannot: the call ends
with the open questions, and the client repeats it with the answers.
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
SESSION_HEADER = "mcp-session-id"
# Every client shows a form without fields as yes or no: to accept it means yes.
_YES_OR_NO: Mapping[str, Any] = {"type": "object", "properties": {}}


class Caller:
    """The client behind one ``tools/call``."""

    def __init__(
        self, context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> None:
        self._context, self._session = context, context.session
        self._answers = params.input_responses or {}
        self._accepted = set((params.request_state or "").split(","))
        self._is_stateless = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        self._can = context.session.client_capabilities or types.ClientCapabilities()

    @property
    def session(self) -> str:
        """The id of the client's HTTP session.

        Empty for the one client of stdio, and for all clients whose requests stand alone.
        """
        return session_of(self._context)

    @property
    def takes_tasks(self) -> bool:
        """Whether the client polls for the result of a slow call by itself."""
        return self._is_stateless and TASKS in (self._can.extensions or {})

    async def ask(self, question: Question, call: RunningCall) -> bool:
        """Ask the user; the answer is no if the client cannot ask."""
        if not _asks_by_form(self._can.elicitation):
            return False
        if not self._is_stateless:
            return await self._ask_now(question, call)
        key = hashlib.sha256(question.text.encode()).hexdigest()[:16]
        answer = self._answers.get(key)
        if isinstance(answer, types.ElicitResult) and answer.action == "accept":
            self._accepted.add(key)
        elif answer is None and key not in self._accepted:
            call.questions[key] = question
        return key in self._accepted

    def to_decide(self, questions: Mapping[str, Question]) -> types.InputRequiredResult:
        """Return the questions that the user must answer before the client repeats the call.

        The client sends its earlier answers back as the state of the request.
        """
        return types.InputRequiredResult(
            input_requests={
                key: types.ElicitRequest(
                    params=types.ElicitRequestFormParams(
                        message=question.text, requested_schema=dict(_YES_OR_NO)
                    )
                )
                for key, question in questions.items()
            },
            request_state=",".join(sorted(filter(None, self._accepted))) or None,
        )

    async def report_progress(self, call: RunningCall) -> None:
        """Send a progress notification: the elapsed time and the latest message."""
        await self._session.report_progress(
            round(call.elapsed_s, 1), message=call.message or f"{call.tool} is running"
        )

    async def roots(self) -> tuple[Path, ...]:
        """Return the folders that the client works in, if it lists them."""
        if self._is_stateless or self._can.roots is None:
            return ()
        with suppress(MCPError, ValidationError):
            listed = await self._session.send_request(
                types.ListRootsRequest(),
                types.ListRootsResult,
                request_read_timeout_seconds=ROOTS_TIMEOUT_S,
                metadata=ServerMessageMetadata(related_request_id=self._context.request_id),
            )
            return folders_of(str(root.uri) for root in listed.roots)
        return ()

    async def _ask_now(self, question: Question, call: RunningCall) -> bool:
        call.asking = True
        try:
            answer = await self._session.elicit_form(
                question.text, dict(_YES_OR_NO), related_request_id=self._context.request_id
            )
        except (MCPError, ValidationError):  # the client cannot ask, or has disconnected
            return False
        finally:
            call.asking = False
        return answer.action == "accept"


def session_of(context: ServerRequestContext[Any, Any]) -> str:
    """The id of the HTTP session that a request belongs to; empty if it belongs to none."""
    headers: Mapping[str, str] = getattr(context.request, "headers", {})
    return headers.get(SESSION_HEADER, "")


def _asks_by_form(offered: types.ElicitationCapability | None) -> bool:
    # Clients of the first revision with elicitation declare no modes: they have forms.
    return offered is not None and (offered.form is not None or offered.url is None)
