"""A session and its lease -> turns, one at a time; each passes its token counts to the next."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from limner.agent.events import Event, TurnEnded
from limner.agent.leases import Lease
from limner.agent.loop import Turn, TurnParts
from limner.agent.model_call import PromptCount
from limner.agent.session import Session
from limner.agent.session_options import OPTIONS_KEY, SessionOptions, parse_options
from limner.agent.sessions import Sessions
from limner.agent.turn_config import TurnConfigBuilder
from limner.errors import UserError
from limner.tools.base import Question, answer_no
from limner.tools.registry import ToolRegistry
from limner.wires.items import Item

logger = logging.getLogger("limner.agent")


class Conversation:
    """One session, and its running turn if there is one.

    Args:
        session: stores the items.
        lease: keeps other conversations from running turns in the session.
        options: may be changed between turns.
        cwd: the working folder; it may be changed between turns.
        more_tools: see `TurnConfigBuilder.build`; it may be changed between turns.
        tools: returns the tools; called at the start of each turn.
        turn_configs: builds the configuration of each turn.
        parts: the components that turns use.
        on_warning: gets a sentence about what the model is not sent, each once; by default the
            log does.
    """

    def __init__(
        self,
        session: Session,
        *,
        lease: Lease,
        options: SessionOptions,
        cwd: Path,
        tools: Callable[[], ToolRegistry],
        turn_configs: TurnConfigBuilder,
        parts: TurnParts,
        on_warning: Callable[[str], None] = logger.warning,
        more_tools: Sequence[str] = (),
    ) -> None:
        self.session, self.options, self.cwd = session, options, cwd
        self.more_tools = more_tools
        self._lease: Lease | None = lease
        self._tools, self._turn_configs, self._parts = tools, turn_configs, parts
        self._prompt_count: PromptCount | None = None
        self._on_warning, self._warned = on_warning, set[str]()
        self.turn: Turn | None = None

    async def run(
        self,
        given: Sequence[Item],
        *,
        on_event: Callable[[Event], None],
        ask: Callable[[Question], Awaitable[bool]] = answer_no,
        turn_id: str | None = None,
        schema: Mapping[str, Any] | None = None,
        pending: Sequence[Item] = (),
    ) -> TurnEnded:
        """Run a turn to its end.

        Args:
            given: the user's input, its pictures named by handle.
            on_event: gets every event, in order.
            ask: asks the user for approvals.
            turn_id: the id of the turn; a new one if it is None.
            schema: a JSON schema that the answer has to match.
            pending: calls of an earlier process that have no output yet.

        Raises:
            UserError: a turn is running, or the conversation was closed; or there is no such
                model, or no key for it.
            LimnerError: the turn cannot be configured. What goes wrong in the turn itself is in
                its events.
        """
        turn = self._start(on_event=on_event, ask=ask, turn_id=turn_id, schema=schema)
        return await self._finish(turn, turn.run(given, pending=pending))

    async def compact(
        self, *, on_event: Callable[[Event], None], turn_id: str | None = None
    ) -> TurnEnded:
        """Replace the history by a summary; raises as `run`."""
        turn = self._start(on_event=on_event, ask=answer_no, turn_id=turn_id, schema=None)
        return await self._finish(turn, turn.compact())

    async def aclose(self) -> None:
        """Release the session; this conversation runs no more turns."""
        lease, self._lease = self._lease, None
        if lease is not None:
            await lease.release()

    def _start(
        self,
        *,
        on_event: Callable[[Event], None],
        ask: Callable[[Question], Awaitable[bool]],
        turn_id: str | None,
        schema: Mapping[str, Any] | None,
    ) -> Turn:
        if self._lease is None:
            raise UserError(
                "This conversation was closed.",
                code="CONVERSATION_CLOSED",
                hint=f"Open the session {self.session.id} again.",
            )
        if self.turn is not None:
            raise UserError("A turn is running.", code="TURN_UNDER_WAY", hint="Steer it.")
        config = self._turn_configs.build(
            self.options,
            session_id=self.session.id,
            cwd=self.cwd,
            ask=ask,
            schema=schema,
            more_tools=self.more_tools,
        )
        self.turn = Turn(
            self.session,
            config,
            tools=self._tools(),
            parts=self._parts,
            on_event=on_event,
            on_warning=self._warn,
            turn_id=turn_id,
            prompt_count=self._prompt_count_for(config.found.model.name),
        )
        return self.turn

    def _warn(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            self._on_warning(message)

    def _prompt_count_for(self, model: str) -> PromptCount | None:
        # Another model counts in its own way.
        count = self._prompt_count
        return count if count is not None and count.model == model else None

    async def _finish(self, turn: Turn, work: Awaitable[TurnEnded]) -> TurnEnded:
        try:
            return await work
        finally:
            self.turn, self._prompt_count = None, turn.prompt_count


Tools = Callable[[], ToolRegistry]


class Conversations(msgspec.Struct, frozen=True, kw_only=True):
    """Creates conversations and opens them again."""

    sessions: Sessions
    turn_configs: TurnConfigBuilder
    parts: TurnParts

    async def create(
        self, options: SessionOptions, *, cwd: Path, tools: Tools, session_id: str | None = None
    ) -> Conversation:
        """Create a session with these options; the conversation holds it until it is closed.

        Raises:
            InputInvalid: the id is taken, or is not valid.
        """
        session = await self.sessions.create(
            cwd=str(cwd),
            session_id=session_id,
            settings={OPTIONS_KEY: msgspec.to_builtins(options)},
        )
        lease = await self.sessions.hold(session.id)
        return self._conversation(session, lease, options, cwd=cwd, tools=tools)

    async def open(
        self,
        session_id: str,
        *,
        tools: Tools,
        changes: SessionOptions | None = None,
        cwd: Path | None = None,
    ) -> Conversation:
        """Open a session with its own options and these ``changes``, which are stored.

        The conversation holds it until it is closed.

        Raises:
            UserError: another process or conversation holds it (``SESSION_IN_USE``).
            InputInvalid: there is no such session, or there are several; or this version cannot
                parse its options.
        """
        session = await self.sessions.open(session_id)
        about = await session.about()
        options = parse_options(about.settings.get(OPTIONS_KEY, {}))
        lease = await self.sessions.hold(session.id)
        conversation = self._conversation(
            session, lease, options, cwd=cwd or Path(about.cwd), tools=tools
        )
        if changes is not None:
            await self.change(conversation, changes)
        return conversation

    async def change(self, conversation: Conversation, changes: SessionOptions) -> None:
        """Change and store the options of a conversation, from the next turn on."""
        changed = {name: value for name, value in _fields(changes).items() if value is not None}
        options = msgspec.structs.replace(conversation.options, **changed)
        if options != conversation.options:
            about = await conversation.session.about()
            settings = {**about.settings, OPTIONS_KEY: msgspec.to_builtins(options)}
            await self.sessions.configure(conversation.session.id, settings)
            conversation.options = options

    def _conversation(
        self, session: Session, lease: Lease, options: SessionOptions, *, cwd: Path, tools: Tools
    ) -> Conversation:
        return Conversation(
            session,
            lease=lease,
            options=options,
            cwd=cwd,
            tools=tools,
            turn_configs=self.turn_configs,
            parts=self.parts,
        )


def _fields(options: SessionOptions) -> dict[str, object]:
    return {name: getattr(options, name) for name in options.__struct_fields__}
