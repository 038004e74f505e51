"""What a caller asks for -> the options of one session, stored with it as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, get_args

import msgspec

from limner.dollars import usd_to_nano
from limner.errors import InputInvalid
from limner.settings import Policy, Sandbox

OPTIONS_KEY = "terms"
"""The key of a session's settings that contains its options."""


class SessionOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a caller asked for when it started or continued a session; None is not asked for.

    What is not asked for comes from the personality, and then from the settings.

    Attributes:
        model: ``provider/id``, with or without ``:effort``.
        personality: the id of a personality.
        sandbox: what a model may write.
        approval: when the user is asked.
        budget_usd: the most the session may cost.
        base_instructions: the system prompt, in place of the personality's.
        developer_instructions: an addition at its end.
        compact_prompt: what asks a model for a summary of the conversation.
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


def parse_options(asked: Mapping[str, Any]) -> SessionOptions:
    """The options in a mapping.

    Raises:
        InputInvalid: one of them is not valid, such as an unknown policy.
    """
    if asked.get("budget_usd") is not None:
        usd_to_nano(asked["budget_usd"], field="budget_usd")
    try:
        return msgspec.convert(asked, SessionOptions)
    except msgspec.ValidationError as problem:
        hint = f"sandbox: {_choices(Sandbox)}; approval: {_choices(Policy)}"
        raise InputInvalid(
            f"These options of a session are invalid: {problem}.", field="terms", hint=hint
        ) from None


def _choices(annotated: object) -> str:
    """The values of a literal type that has a description."""
    return ", ".join(get_args(get_args(annotated)[0]))
