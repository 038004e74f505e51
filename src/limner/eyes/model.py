"""A prompt with pictures -> an answer from measurements and OCR: the model ``limner/eyes``."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from limner.errors import ImageError, MissingExtra, ModelTimeout
from limner.eyes.differences import ASKS, answer_difference
from limner.eyes.evidence import DrawingRecord, Evidence, Finding
from limner.eyes.quotes import MARK
from limner.eyes.report import CANNOT_TELL, report
from limner.eyes.rules import findings, needs_text, normalize
from limner.eyes.schema import fill
from limner.eyes.things import read_label_record, read_record
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
        try:
            async with asyncio.timeout(timeout_s):
                text = await self._answer(prompt)
        except TimeoutError:
            raise ModelTimeout(f"{NAME} did not finish in {timeout_s:g} s") from None
        on_text(text)
        return Answer(text=text, stop="end", model=NAME)

    async def _answer(self, prompt: Prompt) -> str:
        sources = [picture.data for picture in prompt.pictures.values()]
        if prompt.schema is None:
            return await self._eyes.see(sources, _question(prompt))
        seen = [await self._eyes.gather(source) for source in sources]
        return fill(prompt.schema, seen)


def _question(prompt: Prompt) -> str:
    """The first text of the last message; the texts after it describe pictures to other models."""
    parts = prompt.items[-1]["content"]
    return next(part["text"] for part in parts if part["type"] == "input_text")


Origins = Mapping[str, object] | None


async def _no_origin(handle: str) -> Origins:  # noqa: ARG001 - the default for a caller without a store
    return None


async def _keep_no_text(handle: str, rows: Sequence[str]) -> None:
    """The default for a caller without a store."""


class Eyes:
    """Answers questions about pictures with the workers of an `Imaging`.

    ``find_origin`` is what the store recorded about the picture of a handle. ``keep_text`` gets the
    text that was read in it.
    """

    def __init__(
        self,
        imaging: Imaging,
        *,
        find_origin: Callable[[str], Awaitable[Origins]] = _no_origin,
        keep_text: Callable[[str, Sequence[str]], Awaitable[None]] = _keep_no_text,
    ) -> None:
        self._imaging = imaging
        self._find_origin = find_origin
        self._keep_text = keep_text

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
        evidence = Evidence(measured=measured, record=await self._record(source))
        if not ocr:
            return replace(evidence, no_text_reason="it was not asked for")
        try:
            evidence = replace(evidence, page=await self._imaging.read_page(source))
        except MissingExtra as error:
            return replace(evidence, no_text_reason=f"{error.message}; run: {error.hint}")
        except ImageError as error:
            # It decoded a moment ago, so OCR took too much time or memory.
            return replace(evidence, no_text_reason=error.message)
        if isinstance(source, bytes):
            await self._keep_text(hashlib.sha256(source).hexdigest(), evidence.rows)
        return evidence

    async def _record(self, source: Source) -> DrawingRecord | None:
        """limner's own record of exactly these bytes, from the store or from their label."""
        if not isinstance(source, bytes):
            return None
        # A part or another form of a picture has other bytes: the record does not hold for it.
        origin = await self._find_origin(hashlib.sha256(source).hexdigest())
        stored = None if origin is None else read_record(origin, "store")
        return stored or read_label_record(source)


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
