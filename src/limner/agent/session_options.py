"""What was agreed for one conversation beside the settings; kept with its session as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, get_args

import msgspec

from limner.dollars import usd_to_nano
from limner.errors import InputInvalid
from limner.settings import Policy, Sandbox


class SessionOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What somebody asked for when they began or continued a conversation; None is not asked for.

    What is not asked for comes from the personality, and then from the settings.

    Attributes:
        model: who is talked to, as ``provider/id``, with or without ``:effort``.
        personality: the id of a personality.
        sandbox: what a model may write.
        approval: when the user is asked.
        budget_usd: the most the session may cost.
        base_instructions: the system prompt, in place of the personality's.
        developer_instructions: more of it, at the end.
        compact_prompt: what a model is told when it is to sum up the conversation.
        toolset: the names of the tools that are offered.
    """

    model: str | None = None
    personality: str | None = None
    sandbox: Sandbox | None = None
    approval: Policy | None = None
    budget_usd: Decimal | None = None
    base_instructions: str | None = None
    developer_instructions: str | None = None
    compact_prompt: str | None = None
    toolset: tuple[str, ...] | None = None


def read_terms(asked: Mapping[str, Any]) -> SessionOptions:
    """Terms from what somebody wrote.

    Raises:
        InputInvalid: one of them is none, such as a policy that nobody knows.
    """
    if asked.get("budget_usd") is not None:
        usd_to_nano(asked["budget_usd"], field="budget_usd")
    try:
        return msgspec.convert(asked, SessionOptions)
    except msgspec.ValidationError as problem:
        words = f"sandbox: {_words_of(Sandbox)}; approval: {_words_of(Policy)}"
        raise InputInvalid(
            f"These are no terms of a conversation: {problem}.", field="terms", hint=words
        ) from None


def _words_of(choice: object) -> str:
    """The words of a literal type that has a description."""
    return ", ".join(get_args(get_args(choice)[0]))
