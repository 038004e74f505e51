"""A prompt -> an answer, the way every model is asked: ``limner/eyes`` as one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from limner.errors import ImageError, MissingExtra, ModelTimeout, UserError
from limner.eyes.evidence import Evidence, Finding
from limner.eyes.report import KEYS, report
from limner.eyes.rules import findings, needs_text
from limner.imaging.pool import Imaging, Source
from limner.wires.base import Answer, Prompt

WHO_ANSWERS = "Answered by limner/eyes from measurements, not by a model that sees."


def look(pictures: Sequence[Evidence], question: str) -> str:
    """Answer a question about one picture or several; it says so where it cannot."""
    answered = [findings(evidence, question) or [report(evidence)] for evidence in pictures]
    parts = [_body(found) for found in answered]
    if len(parts) > 1:
        parts = [f"Picture {number}\n{part}" for number, part in enumerate(parts, start=1)]
    said = (caveat for found in answered for finding in found for caveat in finding.caveats)
    return "\n\n".join([*parts, _list("Caveats", [*dict.fromkeys(said), WHO_ANSWERS])])


def _body(found: Sequence[Finding]) -> str:
    answer = "\n".join(finding.answer for finding in found)
    evidence = list(dict.fromkeys(line for finding in found for line in finding.evidence))
    body = f"Answer: {answer}"
    return f"{body}\n\n{_list('Key evidence', evidence)}" if evidence else body


def _list(title: str, lines: Iterable[str]) -> str:
    return "\n".join([f"{title}:", *(f"- {line}" for line in lines)])


class Eyes:
    """Looks at pictures through the workers of one `Imaging`, which others may share."""

    def __init__(self, imaging: Imaging) -> None:
        self._imaging = imaging

    async def see(self, sources: Sequence[Source], question: str) -> str:
        """Answer a question about one picture or several, in the order they are given.

        Raises:
            ImageError: one of them is no picture that can be decoded.
        """
        reads = needs_text(question)
        gathered = (self.gather(source, read_text=reads) for source in sources)
        return look(await asyncio.gather(*gathered), question)

    async def gather(self, source: Source, *, read_text: bool = True) -> Evidence:
        """Measure a picture and read its text; without the extra, say how to get it.

        Raises:
            ImageError: it is no picture that can be decoded.
        """
        measured = await self._imaging.measure(source)
        if not read_text:
            return Evidence(measured=measured, unread="it was not asked for")
        try:
            return Evidence(measured=measured, lines=await self._imaging.recognize_text(source))
        except MissingExtra as error:
            return Evidence(measured=measured, unread=f"{error.message}; run: {error.hint}")
        except ImageError as error:
            # It decoded a moment ago, so this is the time or the memory that reading takes.
            return Evidence(measured=measured, unread=error.message)


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
