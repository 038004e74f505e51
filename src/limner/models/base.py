"""A prompt -> a model's answer: what every model is, wherever it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from limner.wires.base import Answer, Prompt

DEFAULT_TIMEOUT_S = 300.0


def ignore_text(text: str) -> None:
    """Pieces of an answer where nobody is watching it come in."""


class Model(Protocol):
    """Something that answers prompts."""

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
        """Ask once; ``on_text`` gets the answer's text in pieces as it arrives.

        Its ``stop`` is "end" or "length": everything else is raised. The tools that the model
        calls are among its ``items``; a model that only speaks may leave these empty.
        ``timeout_s`` bounds all of it, None not at all. A cancellation closes the connection.

        Raises:
            ModelTimeout: the time is up.
            ProviderRefused: the service or the model will not answer this.
            ProviderError: the service failed; ``provider_message`` has its own words,
                ``extras["usage"]`` the tokens where they were counted, and the cost is charged.
            InputInvalid: something in the prompt has no place on the model's wire.
        """
        ...
