"""A session's options, a personality and the settings -> the configuration of a turn.

An option comes before the personality, and the personality before the settings.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from limner.agent.personality import Personalities, Personality
from limner.agent.session_options import SessionOptions
from limner.agent.untrusted import RULE
from limner.dollars import usd_to_nano
from limner.models.registry import FoundModel, Registry
from limner.settings import Sandbox
from limner.storage.home import Home
from limner.storage.reach import Reach
from limner.tools.base import ApprovalPolicy, Question, ToolContext, answer_no

SUM_UP = (
    "Sum up the conversation so far for an assistant that continues it. Say what the user wants, "
    "what was decided and why, what was made and where it is (paths and picture handles, exactly "
    "as they are written), what was found out, and what is still to be done. Leave out what no "
    "longer matters. Answer with the summary alone."
)


class TurnConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of one turn.

    Attributes:
        found: the model, and its reasoning effort.
        instructions: the system prompt.
        context: the session for tool calls, its working folder, and what it may do.
        compact_prompt: what asks the model for a summary.
        max_requests: the most requests to the model.
        max_calls: the most tool calls.
        schema: a JSON schema that the answer has to match.
    """

    found: FoundModel
    instructions: str
    context: ToolContext
    compact_prompt: str
    max_requests: int
    max_calls: int
    schema: Mapping[str, Any] | None = None


class TurnConfigBuilder(msgspec.Struct, frozen=True, kw_only=True):
    """Builds the configurations of turns."""

    registry: Registry
    personalities: Personalities
    approval: ApprovalPolicy
    home: Home
    personality: str
    sandbox: Sandbox
    max_requests: int
    max_calls: int

    def build(
        self,
        options: SessionOptions,
        *,
        session_id: str,
        cwd: Path,
        ask: Callable[[Question], Awaitable[bool]] = answer_no,
        schema: Mapping[str, Any] | None = None,
        more_tools: Sequence[str] = (),
    ) -> TurnConfig:
        """The configuration of a turn of a session with these options.

        ``more_tools`` are offered with the tools that a personality names.

        Raises:
            InputInvalid: there is no such personality.
            SettingsError: the personality is not valid.
            UserError: there is no such model, or its key is missing.
        """
        personality = self.personalities.get(options.personality or self.personality)
        resolved = self.registry.resolve_conversation_model(
            named=options.model or personality.model
        )
        found = FoundModel(model=resolved.model, effort=resolved.effort)
        budget_usd = personality.budget_usd if options.budget_usd is None else options.budget_usd
        toolset = options.toolset
        if toolset is None and personality.toolset is not None:
            toolset = (*personality.toolset, *more_tools)
        context = ToolContext(
            session_id=session_id,
            cwd=cwd,
            reach=self._reach(options, personality, cwd),
            approval=self._approval(options, personality),
            budget_nano=None if budget_usd is None else usd_to_nano(budget_usd),
            allowed=None if toolset is None else frozenset(toolset),
            active_model=found.model.name,
            ask=ask,
        )
        return TurnConfig(
            found=found,
            instructions=_instructions(options, personality, cwd),
            context=context,
            compact_prompt=options.compact_prompt or SUM_UP,
            max_requests=self.max_requests,
            max_calls=self.max_calls,
            schema=schema,
        )

    def _reach(self, options: SessionOptions, personality: Personality, cwd: Path) -> Reach:
        return Reach.for_sandbox(
            options.sandbox or personality.sandbox or self.sandbox,
            home=self.home,
            cwd=cwd,
            read=personality.read,
            write=personality.write,
            self_dir=personality.folder,
        )

    def _approval(self, options: SessionOptions, personality: Personality) -> ApprovalPolicy:
        policy = options.approval or personality.approval or self.approval.policy
        return ApprovalPolicy(policy=policy, above_nano=self.approval.above_nano)


def _instructions(options: SessionOptions, personality: Personality, cwd: Path) -> str:
    """The system prompt: the personality, the rule about data, the folder, and additions."""
    texts = [
        personality.soul if options.base_instructions is None else options.base_instructions,
        RULE,
        f"The working folder is {cwd}.",
        options.developer_instructions,
    ]
    return "\n\n".join(text.strip() for text in texts if text and text.strip())
