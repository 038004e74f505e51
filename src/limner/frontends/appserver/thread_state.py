"""What a thread is beside its items <-> the settings of its session.

Terms stand where every door finds them, and a client's tools where a Codex rollout has them; what
only this door knows has a place of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.agent.conversation import OPTIONS_KEY
from limner.agent.session_options import SessionOptions
from limner.errors import InputInvalid
from limner.frontends.appserver.protocol.accounts import ThreadGoal
from limner.frontends.appserver.protocol.notifications import TokenUsageBreakdown
from limner.frontends.appserver.protocol.turns import TurnError
from limner.frontends.appserver.tool_specs import ToolSpec, read_specs, write_specs

TOOLS = "dynamic_tools"
REST = "app_server"
MAX_FAILURES = 50


class ThreadExtras(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What no other door asks for.

    Attributes:
        cwd: the folder the thread works in, where that has changed.
        ephemeral: the thread is deleted when nobody has it open any more.
        originator: the client that began it.
        thread_source: what that client says it is for.
        tools_off: the tools of ours that are not offered.
        found: the deferred tools that the model has found.
        tokens: what its requests counted in all.
        last_tokens: what the last of them counted.
        last_turn: the turn it was made in.
        failures: why turns failed, by their ids.
        goal: what it is to reach.
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


class ThreadState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that holds for a thread. ``others`` are settings that are not for this door."""

    terms: SessionOptions = SessionOptions()
    tools: tuple[ToolSpec, ...] = ()
    rest: ThreadExtras = ThreadExtras()
    others: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> ThreadState:
        """From the settings of a session; what is not of the right shape there holds nothing."""
        others = {
            name: settings[name] for name in settings if name not in (OPTIONS_KEY, TOOLS, REST)
        }
        return cls(
            terms=_converted(settings.get(OPTIONS_KEY), SessionOptions) or SessionOptions(),
            tools=_tools(settings.get(TOOLS)),
            rest=_converted(settings.get(REST), ThreadExtras) or ThreadExtras(),
            others=others,
        )

    def settings(self) -> dict[str, Any]:
        """As a session keeps it."""
        return {
            **self.others,
            OPTIONS_KEY: msgspec.to_builtins(self.terms),
            **({TOOLS: write_specs(self.tools)} if self.tools else {}),
            REST: msgspec.to_builtins(self.rest),
        }

    def but(self, **changes: Any) -> ThreadState:
        """The same, but for what only this door knows."""
        return replace(self, rest=replace(self.rest, **changes))

    def counted(
        self, total: TokenUsageBreakdown, *, last: TokenUsageBreakdown | None, turn_id: str
    ) -> ThreadState:
        """The same, and what has been counted with a turn, if that asked anybody."""
        if last is None:
            return self
        return self.but(tokens=total, last_tokens=last, last_turn=turn_id)

    def failed(self, turn_id: str, error: TurnError) -> ThreadState:
        """The same, and a turn that failed; only the last ones are remembered."""
        failures = {**self.rest.failures, turn_id: error}
        last = dict(list(failures.items())[-MAX_FAILURES:])
        return self.but(failures=last)


def _converted(value: object, kind: Any) -> Any:
    try:
        return None if value is None else msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return None


def _tools(value: object) -> tuple[ToolSpec, ...]:
    try:
        return read_specs(value if isinstance(value, list) else None)  # pyright: ignore[reportUnknownArgumentType] - whatever is in it is checked there
    except InputInvalid:
        return ()
