"""Questions about pictures -> what a model would see, what it costs, its answer, and evidence."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from limner.dollars import format_usd, usd_to_nano
from limner.errors import NANO_PER_USD, ApprovalDenied, UserError
from limner.frontends.studio.api.drawings import ASKS, Name
from limner.frontends.studio.endpoints import (
    Endpoint,
    FileAnswer,
    NoArguments,
    PictureHandle,
    StudioParts,
)
from limner.frontends.studio.runs import Report, RunResult, StudioRun
from limner.imaging.comparison import PixelComparison
from limner.imaging.evidence.record import Box
from limner.imaging.fit import Region
from limner.models.registry import EMBEDDED
from limner.tools.base import Question, ToolContext, ignore_progress
from limner.tools.inspection import InspectRequest
from limner.tools.regions import RegionArgument

MAX_QUESTION_CHARS = 20_000
_TITLE_CHARS = 200
Pixel = Annotated[int, Meta(ge=0, le=1_000_000)]


class QuestionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A question about a picture, or about a part of it."""

    handle: PictureHandle
    question: Annotated[str, Meta(min_length=1, max_length=MAX_QUESTION_CHARS)]
    region: RegionArgument | None = None
    model: Annotated[Name, Meta(description="As provider/model; empty: the settings say.")] = ""


class QuestionOrder(QuestionRequest, frozen=True, kw_only=True):
    """A question that may cost at most the price that the page showed."""

    agreed_usd: Annotated[float, Meta(ge=0, le=1e6)]


class QuestionQuote(msgspec.Struct, frozen=True, kw_only=True):
    """What a question costs at most, and which model answers it."""

    cost_usd: float
    model: str


class ViewRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A picture, or a part of it, as a model gets it; a ``width`` of 0 is the whole picture."""

    handle: PictureHandle
    model: Name = ""
    x: Pixel = 0
    y: Pixel = 0
    width: Pixel = 0
    height: Pixel = 0

    @property
    def region(self) -> Region | None:
        """The part."""
        if not self.width:
            return None
        return Region(x=self.x, y=self.y, width=self.width, height=self.height)


class ViewFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a model gets: type, size, tokens and their price, if these are known."""

    model: str | None
    mime: str
    width: int
    height: int
    bytes: int
    tokens: int | None
    tokens_exact: bool
    cost_usd: float | None


class SeeingModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that looks at pictures."""

    name: str


class SeeingModels(msgspec.Struct, frozen=True, kw_only=True):
    """The models that look at pictures and can be used now. ``used`` is what the settings say."""

    models: list[SeeingModel]
    used: str | None


class FoundText(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of text in a picture, and where it is."""

    text: str
    box: Box
    confidence: int


class PictureEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The text that was read in a picture."""

    lines: list[FoundText]


class EvidenceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A picture to read."""

    handle: PictureHandle


class DifferenceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Two pictures to compare."""

    handle: PictureHandle
    other: PictureHandle


async def list_seeing_models(studio: StudioParts, _: NoArguments) -> SeeingModels:
    """The models that look at pictures."""
    registry = studio.lim.models
    used = registry.resolve()
    names = [model.name for model in registry.available() if model.takes_images]
    return SeeingModels(
        models=[SeeingModel(name=name) for name in names],
        used=None if used is None else used.model.name,
    )


async def quote_question(studio: StudioParts, request: QuestionRequest) -> QuestionQuote:
    """What a question would cost at most. Nothing is sent or paid."""
    lim = studio.lim
    found = lim.inspector.find_model(request.model or None)
    if found.model.api == EMBEDDED:
        return QuestionQuote(cost_usd=0.0, model=found.model.name)
    asked: list[int] = []

    async def refuse(question: Question) -> bool:
        asked.append(question.amount_nano or 0)
        return False

    # The call stops where it asks: before anything is reserved or sent.
    try:
        await lim.inspector.inspect(_question(request), _context(studio, refuse))
    except ApprovalDenied:
        if not asked:
            raise
    cost_nano = asked[-1] if asked else 0
    return QuestionQuote(cost_usd=cost_nano / NANO_PER_USD, model=found.model.name)


async def start_question(studio: StudioParts, request: QuestionOrder) -> StudioRun:
    """Ask a model, if it costs no more than the page showed."""
    agreed_nano = usd_to_nano(request.agreed_usd)
    over: list[int] = []

    async def ask(question: Question) -> bool:
        amount_nano = question.amount_nano
        if amount_nano is None or amount_nano <= agreed_nano:
            return amount_nano is not None
        over.append(amount_nano)
        return False

    async def work(report: Report) -> RunResult:
        context = _context(studio, ask, report)
        try:
            answer = await studio.lim.inspector.inspect(_question(request), context)
        except ApprovalDenied as error:
            if not over:
                raise
            raise ApprovalDenied(
                f"It costs {format_usd(over[-1])} now, and you agreed to "
                f"{format_usd(agreed_nano)}.",
                code="PRICE_CHANGED",
                hint="Look at the new price and ask again.",
            ) from error
        return RunResult(text=answer.text, cost_usd=answer.cost_usd)

    return studio.runs.start("inspect_image", request.question[:_TITLE_CHARS], work)


async def show_view(studio: StudioParts, request: ViewRequest) -> FileAnswer:
    """The bytes that a model gets."""
    lim = studio.lim
    fitted = await lim.fit(request.handle, model=request.model or None, region=request.region)
    return FileAnswer(data=fitted.data, mime=fitted.mime)


async def describe_view(studio: StudioParts, request: ViewRequest) -> ViewFacts:
    """What a model gets, in numbers."""
    lim = studio.lim
    fitted = await lim.fit(request.handle, model=request.model or None, region=request.region)
    return ViewFacts(
        model=fitted.model,
        mime=fitted.mime,
        width=fitted.width,
        height=fitted.height,
        bytes=len(fitted.data),
        tokens=fitted.tokens,
        tokens_exact=fitted.tokens_exact,
        cost_usd=None if fitted.cost_nano is None else fitted.cost_nano / NANO_PER_USD,
    )


async def read_evidence(studio: StudioParts, request: EvidenceRequest) -> PictureEvidence:
    """Read the text in a picture here, free of charge."""
    data = await studio.lim.picture(request.handle).bytes()
    found = await studio.lim.eyes.gather(data)
    if found.no_text_reason is not None:
        raise UserError(found.no_text_reason)
    return PictureEvidence(
        lines=[
            FoundText(text=line.text, box=line.box, confidence=line.confidence)
            for line in found.lines
        ]
    )


async def compare_pictures(studio: StudioParts, request: DifferenceRequest) -> PixelComparison:
    """The areas in which two pictures differ; free, on this machine."""
    before = await studio.lim.picture(request.handle).bytes()
    after = await studio.lim.picture(request.other).bytes()
    return await studio.lim.imaging.compare(before, after)


def _question(request: QuestionRequest) -> InspectRequest:
    return InspectRequest(
        path=request.handle,
        question=request.question,
        region=request.region,
        model=request.model or None,
    )


def _context(
    studio: StudioParts,
    ask: Callable[[Question], Awaitable[bool]],
    report: Report = ignore_progress,
) -> ToolContext:
    return replace(studio.lim.person(progress=report, ask=ask), approval=ASKS)


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/seeing-models",
        summary="List the models that look at pictures and can be used now.",
        request=NoArguments,
        answer=SeeingModels,
        handler=list_seeing_models,
    ),
    Endpoint(
        method="POST",
        path="/api/questions/quote",
        summary="Say what a question would cost at most. Nothing is sent or paid.",
        request=QuestionRequest,
        answer=QuestionQuote,
        handler=quote_question,
    ),
    Endpoint(
        method="POST",
        path="/api/questions",
        summary="Ask a model about a picture or a part of it, for at most the agreed price.",
        request=QuestionOrder,
        answer=StudioRun,
        handler=start_question,
    ),
    Endpoint(
        method="GET",
        path="/api/pictures/{handle}/view",
        summary="Get the picture that a model would get.",
        request=ViewRequest,
        answer=FileAnswer,
        handler=show_view,
    ),
    Endpoint(
        method="GET",
        path="/api/pictures/{handle}/view/facts",
        summary="Say what a model would get: size, tokens and price.",
        request=ViewRequest,
        answer=ViewFacts,
        handler=describe_view,
    ),
    Endpoint(
        method="GET",
        path="/api/pictures/{handle}/evidence",
        summary="Read the text in a picture, with its places; free, on this machine.",
        request=EvidenceRequest,
        answer=PictureEvidence,
        handler=read_evidence,
    ),
    Endpoint(
        method="GET",
        path="/api/pictures/{handle}/differences",
        summary="Find the areas in which two pictures differ.",
        request=DifferenceRequest,
        answer=PixelComparison,
        handler=compare_pictures,
    ),
)
