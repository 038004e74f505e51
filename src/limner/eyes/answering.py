"""A prompt -> an answer, the way every model is asked: ``limner/eyes`` as one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from limner.errors import ModelTimeout, UserError
from limner.eyes.report import KEYS
from limner.eyes.seeing import Eyes
from limner.wires.base import Answer, Prompt

NAME = "limner/eyes"


def _tell_nobody(text: str) -> None:
    """Pieces of an answer where nobody is watching it come in."""


class EyesModel:
    """The embedded vision model, asked like any other."""

    name = NAME

    def __init__(self, eyes: Eyes) -> None:
        self._eyes = eyes

    async def ask(
        self,
        prompt: Prompt,
        *,
        timeout_s: float | None = None,
        on_text: Callable[[str], None] = _tell_nobody,
    ) -> Answer:
        """Answer from what can be measured.

        Raises:
            UserError: the answer has to follow a schema, which takes a model that understands it.
            ImageError: a picture does not decode.
            ModelTimeout: the time is up.
        """
        if prompt.schema is not None:
            raise UserError(
                f"{NAME} cannot follow a schema.", code="MODEL_CANNOT", hint=f"Set {KEYS}."
            )
        sources = [sight.data for sight in prompt.pictures.values()]
        try:
            async with asyncio.timeout(timeout_s):
                text = await self._eyes.see(sources, _question(prompt))
        except TimeoutError:
            raise ModelTimeout(f"{NAME} did not finish in {timeout_s:g} s") from None
        on_text(text)
        return Answer(text=text, stop="end", model=NAME)


def _question(prompt: Prompt) -> str:
    """The first words of the last message; what follows them explains pictures to others."""
    parts = prompt.items[-1]["content"]
    return next(part["text"] for part in parts if part["type"] == "input_text")
