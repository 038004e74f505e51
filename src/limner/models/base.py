"""A prompt -> a model's answer: the protocol of every model, remote or embedded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from limner.wires.base import Answer, Prompt

DEFAULT_TIMEOUT_S = 300.0


def ignore_text(text: str) -> None:
    """Ignore the text of an answer, for callers that do not stream."""


class Model(Protocol):
    """A model that answers prompts."""

    @property
    def name(self) -> str:
        """``provider/id``."""
        ...

    async def ask(
        self,
        prompt: Prompt,
        *,
        timeout_s: float | None = DEFAULT_TIMEOUT_S,
        on_text: Callable[[str], None] = ignore_text,
    ) -> Answer:
        """Send a prompt; ``on_text`` gets the text of the answer as it arrives.

        The answer's ``stop`` is "end" or "length"; everything else raises. Its ``items`` have the
        tool calls of the model, and may be empty if it only writes text. ``timeout_s`` is the limit
        for the whole call; None is no limit. A cancellation closes the connection.

        Raises:
            ModelTimeout: the answer took too long.
            ProviderRefused: the service or the model refuses to answer.
            ProviderError: the service failed. ``provider_message`` is its own message,
                ``extras["usage"]`` has the tokens if they were counted, and the cost is charged.
                ``extras["broke_off"]`` says that an answer started and did not end.
            InputInvalid: the model's wire cannot carry a part of the prompt.
        """
        ...
