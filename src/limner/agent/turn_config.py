"""Terms, a personality and the settings -> who is talked to, what they are told, how far they go.

What the terms say comes first, then the personality, then the settings.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from limner.agent.personality import Personalities, Personality
from limner.agent.session_options import SessionOptions
from limner.agent.untrusted import RULE
from limner.dollars import usd_to_nano
from limner.models.registry import FoundModel, Registry
from limner.settings import Sandbox
from limner.storage.reach import Reach
from limner.tools.base import ApprovalPolicy, Question, ToolContext, ask_nobody

SUM_UP = (
    "Sum up the conversation so far for somebody who takes it over. Say what the user wants, what "
    "was decided and why, what was made and where it is (paths and picture handles, exactly as "
    "they are written), what was found out, and what is still to be done. Leave out what no "
    "longer matters. Answer with the summary alone."
)


class TurnConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for one turn.

    Attributes:
        found: who is asked, and how hard to think.
        instructions: the system prompt.
        context: who calls tools, from where, and how far they may go.
        compact_prompt: what the model is told when it is to sum up.
        max_requests: the most requests to the model.
        max_calls: the most tool calls.
        schema: a JSON schema that the answer has to follow.
    """

    found: FoundModel
    instructions: str
    context: ToolContext
    compact_prompt: str
    max_requests: int
    max_calls: int
    schema: Mapping[str, Any] | None = None


class TurnConfigBuilder(msgspec.Struct, frozen=True, kw_only=True):
    """Works out what holds for a turn."""

    registry: Registry
    personalities: Personalities
    approval: ApprovalPolicy
    home: Path
    personality: str
    sandbox: Sandbox
    max_requests: int
    max_calls: int

    def of(
        self,
        terms: SessionOptions,
        *,
        session_id: str,
        cwd: Path,
        ask: Callable[[Question], Awaitable[bool]] = ask_nobody,
        schema: Mapping[str, Any] | None = None,
    ) -> TurnConfig:
        """What holds for a turn of a session under these terms.

        Raises:
            InputInvalid: there is no such personality.
            SettingsError: the personality is broken.
            UserError: there is no such model, or its key is missing.
        """
        who = self.personalities.get(terms.personality or self.personality)
        resolved = self.registry.resolve_conversation_model(named=terms.model or who.model)
        found = FoundModel(model=resolved.model, effort=resolved.effort)
        budget_usd = who.budget_usd if terms.budget_usd is None else terms.budget_usd
        toolset = who.toolset if terms.toolset is None else terms.toolset
        context = ToolContext(
            session_id=session_id,
            cwd=cwd,
            reach=self._reach(terms, who, cwd),
            approval=self._approval(terms, who),
            budget_nano=None if budget_usd is None else usd_to_nano(budget_usd),
            allowed=None if toolset is None else frozenset(toolset),
            active_model=found.model.name,
            ask=ask,
        )
        return TurnConfig(
            found=found,
            instructions=_instructions(terms, who, cwd),
            context=context,
            compact_prompt=terms.compact_prompt or SUM_UP,
            max_requests=self.max_requests,
            max_calls=self.max_calls,
            schema=schema,
        )

    def _reach(self, terms: SessionOptions, who: Personality, cwd: Path) -> Reach:
        return Reach.for_sandbox(
            terms.sandbox or who.sandbox or self.sandbox,
            home=self.home,
            cwd=cwd,
            read=who.read,
            write=who.write,
            self_dir=who.folder,
        )

    def _approval(self, terms: SessionOptions, who: Personality) -> ApprovalPolicy:
        policy = terms.approval or who.approval or self.approval.policy
        return ApprovalPolicy(policy=policy, above_nano=self.approval.above_nano)


def _instructions(terms: SessionOptions, who: Personality, cwd: Path) -> str:
    """The system prompt: who the model is, what is data, where it works, what else it is told."""
    told = [
        who.soul if terms.base_instructions is None else terms.base_instructions,
        RULE,
        f"The working folder is {cwd}.",
        terms.developer_instructions,
    ]
    return "\n\n".join(part.strip() for part in told if part and part.strip())
