"""A prompt with pictures -> an answer from measurements and OCR: the model ``limner/eyes``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from limner.errors import ImageError, MissingExtra, ModelTimeout
from limner.eyes.differences import ASKS, answer_difference
from limner.eyes.evidence import Evidence, Finding
from limner.eyes.quotes import MARK
from limner.eyes.report import CANNOT_TELL, report
from limner.eyes.rules import findings, needs_text, normalize
from limner.eyes.schema import fill
from limner.imaging.pool import Imaging, Source
from limner.wires.base import Answer, Prompt

WHO_ANSWERS = "Answered by limner/eyes from measurements, not by a model that sees."

NAME = "limner/eyes"
MAX_SHORT_CHARS = 200
_ANSWER = "Answer: "


def _ignore(text: str) -> None:
    """The default for a caller that does not stream the answer."""


class EyesModel:
    """The embedded vision model, with the interface of every model."""

    name = NAME

    def __init__(self, eyes: Eyes) -> None:
        self._eyes = eyes

    async def ask(
        self,
        prompt: Prompt,
        *,
        timeout_s: float | None = None,
        on_text: Callable[[str], None] = _ignore,
    ) -> Answer:
        """Answer from what can be measured.

        Raises:
            UserError: the prompt has a schema, and a required value was not read.
            ImageError: a picture cannot be decoded.
            ModelTimeout: it did not finish in ``timeout_s``.
        """
        sources = [picture.data for picture in prompt.pictures.values()]
        try:
            async with asyncio.timeout(timeout_s):
                text = await self._answer(prompt, sources)
        except TimeoutError:
            raise ModelTimeout(f"{NAME} did not finish in {timeout_s:g} s") from None
        on_text(text)
        return Answer(text=text, stop="end", model=NAME)

    async def _answer(self, prompt: Prompt, sources: Sequence[Source]) -> str:
        if prompt.schema is None:
            return await self._eyes.see(sources, _question(prompt))
        seen = [await self._eyes.gather(source) for source in sources]
        return fill(prompt.schema, seen)


def _question(prompt: Prompt) -> str:
    """The first text of the last message; the texts after it describe pictures to other models."""
    parts = prompt.items[-1]["content"]
    return next(part["text"] for part in parts if part["type"] == "input_text")


class Eyes:
    """Answers questions about pictures with the workers of an `Imaging`."""

    def __init__(self, imaging: Imaging) -> None:
        self._imaging = imaging

    async def see(self, sources: Sequence[Source], question: str) -> str:
        """Answer a question about one or more pictures, in the given order.

        Raises:
            ImageError: one of the pictures cannot be decoded.
        """
        ocr = needs_text(question) or len(sources) > 1
        gathered = (self.gather(source, ocr=ocr) for source in sources)
        return look(await asyncio.gather(*gathered), question)

    async def gather(self, source: Source, *, ocr: bool = True) -> Evidence:
        """Measure a picture and run OCR; if the extra is missing, say how to install it.

        Raises:
            ImageError: the picture cannot be decoded.
        """
        measured = await self._imaging.measure(source)
        if not ocr:
            return Evidence(measured=measured, no_text_reason="it was not asked for")
        try:
            return Evidence(measured=measured, page=await self._imaging.read_page(source))
        except MissingExtra as error:
            return Evidence(measured=measured, no_text_reason=f"{error.message}; run: {error.hint}")
        except ImageError as error:
            # It decoded a moment ago, so OCR took too much time or memory.
            return Evidence(measured=measured, no_text_reason=error.message)


def look(pictures: Sequence[Evidence], question: str) -> str:
    """Answer a question about one or more pictures, or say why that is impossible."""
    normal = normalize(question)
    if len(pictures) == 2 and ASKS.search(normal):
        before, after = pictures
        answered = [[answer_difference(before, after, normal)]]
    else:
        answered = [findings(evidence, question) or [report(evidence)] for evidence in pictures]
    parts = [_format(found) for found in answered]
    if len(parts) > 1:
        parts = [f"Picture {number}\n{part}" for number, part in enumerate(parts, start=1)]
    caveats = (caveat for found in answered for finding in found for caveat in finding.caveats)
    return "\n\n".join([*parts, _format_list("Caveats", [*dict.fromkeys(caveats), WHO_ANSWERS])])


def short_answer(text: str) -> str | None:
    """The answer itself, of at most 200 characters; None if there is none, or one a picture."""
    head = text.partition("\n\n")[0]
    if not head.startswith(_ANSWER) or head.startswith(f"{_ANSWER}{CANNOT_TELL}"):
        return None
    first, *lines = head.removeprefix(_ANSWER).split("\n")
    said = " ".join(line.removeprefix(MARK) for line in lines) if lines else first
    return said if len(said) <= MAX_SHORT_CHARS else f"{said[: MAX_SHORT_CHARS - 1]}…"


def _format(found: Sequence[Finding]) -> str:
    answer = "\n".join(finding.answer for finding in found)
    evidence = list(dict.fromkeys(line for finding in found for line in finding.evidence))
    body = f"{_ANSWER}{answer}"
    return f"{body}\n\n{_format_list('Key evidence', evidence)}" if evidence else body


def _format_list(title: str, lines: Iterable[str]) -> str:
    return "\n".join([f"{title}:", *(f"- {line}" for line in lines)])
