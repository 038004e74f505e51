"""One call of a client -> the questions and notifications that it sends to the client.

Only this module knows that questions differ. In a session, the server can ask the client during a
call. A request that stands alone ends with the open questions, and the client repeats it with the
answers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from limner.frontends.mcp.call_scope import folders_of
from limner.frontends.mcp.protocol import WITH_HINTS, WITH_MODES, progress_token
from limner.frontends.mcp.running_calls import RunningCall
from limner.frontends.mcp.server import McpRequest
from limner.net.jsonrpc import RpcError
from limner.tools.base import Question

# Every client shows a form without fields as yes or no: to accept it means yes.
_YES_OR_NO: Mapping[str, Any] = {"type": "object", "properties": {}}


class _Answer(msgspec.Struct):
    action: str


class Caller:
    """The client behind one ``tools/call``."""

    def __init__(self, request: McpRequest) -> None:
        self._request, self._peer = request, request.peer
        self.client, self.arrived_s = request.client, request.arrived_s
        self.connected = request.connected
        self._token = progress_token(request.params)
        self._answers = _object(request.params.get("inputResponses"))
        self._accepted = set(str(request.params.get("requestState") or "").split(","))

    @property
    def session(self) -> str:
        """The id of the client's HTTP session.

        Empty for the one client of stdio, and for all clients whose requests stand alone.
        """
        return self._request.session.id

    async def ask(self, question: Question, call: RunningCall) -> bool:
        """Ask the user; the answer is no if the client cannot ask."""
        if not self.client.takes_questions:
            return False
        if not self.client.is_stateless:
            return await self._ask_now(question, call)
        key = hashlib.sha256(question.text.encode()).hexdigest()[:16]
        answer = self._answers.get(key)
        if _object(answer).get("action") == "accept":
            self._accepted.add(key)
        elif answer is None and key not in self._accepted:
            call.questions[key] = question
        return key in self._accepted

    def to_decide(self, questions: Mapping[str, Question]) -> dict[str, Any]:
        """Return the questions that the user must answer before the client repeats the call.

        The client sends its earlier answers back as the state of the request.
        """
        state = ",".join(sorted(filter(None, self._accepted)))
        return {
            "resultType": "input_required",
            "inputRequests": {
                key: {"method": "elicitation/create", "params": self._form(question)}
                for key, question in questions.items()
            },
            **({"requestState": state} if state else {}),
        }

    def report_progress(self, call: RunningCall) -> None:
        """Send a progress notification: the elapsed time and the latest message."""
        if self._token is None:
            return
        progress = {"progressToken": self._token, "progress": round(call.elapsed_s, 1)}
        if self.client.revision >= WITH_HINTS:
            progress["message"] = call.message or f"{call.tool} is running"
        self._peer.notify("notifications/progress", progress)

    async def roots(self, *, wait: bool) -> tuple[Path, ...]:
        """Return the folders that the client works in, if it names them.

        Without ``wait`` only those that it has already named.
        """
        if not self.client.names_roots:
            return ()
        return folders_of(await self._request.session.roots(self._peer, wait=wait))

    async def _ask_now(self, question: Question, call: RunningCall) -> bool:
        call.asking = True
        try:
            raw = await self._peer.request("elicitation/create", self._form(question))
            return msgspec.json.decode(raw, type=_Answer).action == "accept"
        except (RpcError, ConnectionError, msgspec.MsgspecError):
            return False  # the client cannot ask, or has disconnected
        finally:
            call.asking = False

    def _form(self, question: Question) -> dict[str, Any]:
        mode = {"mode": "form"} if self.client.revision >= WITH_MODES else {}
        return {**mode, "message": question.text, "requestedSchema": _YES_OR_NO}


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
