"""The state of a thread beside its items <-> the settings of its session.

The session options are stored where every frontend finds them, and a client's tools where a Codex
rollout has them. What only the app-server needs has a key of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.agent.session_options import OPTIONS_KEY, SessionOptions
from limner.errors import InputInvalid
from limner.frontends.appserver.protocol.accounts import ThreadGoal
from limner.frontends.appserver.protocol.notifications import TokenUsageBreakdown
from limner.frontends.appserver.protocol.threads import GitInfo, ThreadReadState
from limner.frontends.appserver.protocol.turns import TurnError
from limner.frontends.appserver.tool_specs import ToolSpec, read_specs, write_specs

TOOLS = "dynamic_tools"
EXTRAS = "app_server"
MAX_FAILURES = 50


class ThreadExtras(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state that no other frontend needs.

    Attributes:
        cwd: the folder of the thread, if it differs from the session's.
        ephemeral: the thread is deleted when it is closed.
        originator: the client that started it.
        thread_source: what the client says it is for.
        tools_off: the names of limner's tools that the model does not get.
        found: the names of the deferred tools that the model has found.
        tokens: the tokens of all its model requests.
        last_tokens: the tokens of its last model request.
        last_turn: the turn of that request.
        failures: why turns failed, by turn id.
        goal: its goal.
        read_state: how far the user has read.
        git_info: the commit that a client says it is about.
    """

    cwd: str | None = None
    ephemeral: bool = False
    originator: str | None = None
    thread_source: str | None = None
    tools_off: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    tokens: TokenUsageBreakdown | None = None
    last_tokens: TokenUsageBreakdown | None = None
    last_turn: str | None = None
    failures: dict[str, TurnError] = msgspec.field(default_factory=dict[str, TurnError])
    goal: ThreadGoal | None = None
    read_state: ThreadReadState | None = None
    git_info: GitInfo | None = None


class ThreadState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is stored for a thread. ``others`` are settings of other frontends."""

    options: SessionOptions = SessionOptions()
    tools: tuple[ToolSpec, ...] = ()
    extras: ThreadExtras = ThreadExtras()
    others: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> ThreadState:
        """Read the settings of a session; a value of the wrong type counts as missing."""
        others = {
            name: settings[name] for name in settings if name not in (OPTIONS_KEY, TOOLS, EXTRAS)
        }
        return cls(
            options=_converted(settings.get(OPTIONS_KEY), SessionOptions) or SessionOptions(),
            tools=_tools(settings.get(TOOLS)),
            extras=_converted(settings.get(EXTRAS), ThreadExtras) or ThreadExtras(),
            others=others,
        )

    def to_settings(self) -> dict[str, Any]:
        """The settings in the form in which a session stores them."""
        return {
            **self.others,
            OPTIONS_KEY: msgspec.to_builtins(self.options),
            **({TOOLS: write_specs(self.tools)} if self.tools else {}),
            EXTRAS: msgspec.to_builtins(self.extras),
        }

    def with_extras(self, **changes: Any) -> ThreadState:
        """A copy with some of the extras changed."""
        return replace(self, extras=replace(self.extras, **changes))

    def with_usage(
        self, total: TokenUsageBreakdown, *, last: TokenUsageBreakdown | None, turn_id: str
    ) -> ThreadState:
        """A copy with the tokens of a turn, if the turn made a model request."""
        if last is None:
            return self
        return self.with_extras(tokens=total, last_tokens=last, last_turn=turn_id)

    def with_failure(self, turn_id: str, error: TurnError) -> ThreadState:
        """A copy with the failure of a turn; only the last failures are stored."""
        failures = {**self.extras.failures, turn_id: error}
        return self.with_extras(failures=dict(list(failures.items())[-MAX_FAILURES:]))


def _converted(value: object, kind: Any) -> Any:
    try:
        return None if value is None else msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return None


def _tools(value: object) -> tuple[ToolSpec, ...]:
    try:
        return read_specs(value if isinstance(value, list) else None)  # pyright: ignore[reportUnknownArgumentType] - read_specs checks every value in it
    except InputInvalid:
        return ()
