"""Orders of the page -> quotes and runs: drawing, changing and rendering pictures."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from limner.catalogue.sizes import ListedSizes, parse_size
from limner.dollars import format_usd, usd_to_nano
from limner.errors import NANO_PER_USD, ApprovalDenied
from limner.frontends.studio.endpoints import (
    Endpoint,
    FileAnswer,
    NoArguments,
    PictureHandle,
    StudioParts,
    master_handle,
)
from limner.frontends.studio.runs import Report, RunResult, StudioRun
from limner.imaging.fit import FitRequest, Region
from limner.rendering.sources import SourceFormat
from limner.tools.base import ApprovalPolicy, Question
from limner.tools.built_in.image_edit import MAX_REFERENCES, EditArguments
from limner.tools.built_in.image_generate import GenerateArguments
from limner.tools.declaration import read_arguments
from limner.tools.drawing_arguments import MAX_COUNT, CallerOptions, DrawingArguments
from limner.tools.planning import Plan
from limner.tools.rendering import RenderArguments

MAX_PROMPT_CHARS = 100_000
MAX_SOURCE_CHARS = 2_000_000
_TITLE_CHARS = 200
# Every paid call of the page asks: the page has shown the price, and the user has agreed to it.
ASKS = ApprovalPolicy(policy="untrusted", above_nano=0)
_PARTIAL = FitRequest(
    mode="fast", max_width=1024, max_height=1024, max_bytes=512 * 1024, formats=("image/webp",)
)

Name = Annotated[str, Meta(max_length=300)]


class DrawingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A picture to draw, or with ``image`` a picture to change. Pictures are named by handles."""

    prompt: Annotated[str, Meta(max_length=MAX_PROMPT_CHARS)]
    image: PictureHandle | None = None
    references: Annotated[tuple[PictureHandle, ...], Meta(max_length=MAX_REFERENCES)] = ()
    mask: PictureHandle | None = None
    region: Region | None = None
    model: Annotated[Name, Meta(description="As provider/model; empty lets limner choose.")] = ""
    size: Annotated[Name, Meta(description="WIDTHxHEIGHT or a shape as 16:9.")] = ""
    quality: Literal["standard", "hd"] = "standard"
    n: Annotated[int, Meta(ge=1, le=MAX_COUNT)] = 1
    seed: int | None = None
    background: Literal["", "transparent", "opaque"] = ""
    negative_prompt: Annotated[str, Meta(max_length=MAX_PROMPT_CHARS)] = ""
    partial_pictures: Annotated[int, Meta(ge=0, le=3)] = 0


class DrawingOrder(DrawingRequest, frozen=True, kw_only=True):
    """A picture to draw for at most the price that the page showed."""

    agreed_usd: Annotated[float, Meta(ge=0, le=1e6)]


class DrawingQuote(msgspec.Struct, frozen=True, kw_only=True):
    """What an order costs, and who draws it. If it is not ``exact``, the price is the most."""

    cost_usd: float
    exact: bool
    provider: str
    model: str
    width: int
    height: int
    notice: str | None
    max_partial_pictures: int


class DrawingModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that draws. It can be used now if no ``key`` is missing."""

    name: str
    title: str
    missing_key: str | None
    sizes: tuple[str, ...]
    qualities: bool
    edits: bool
    masks: bool
    seeds: bool
    backgrounds: tuple[str, ...]
    negative_prompt: bool


class DrawingModels(msgspec.Struct, frozen=True, kw_only=True):
    """The models that draw, those that can be used now first."""

    models: list[DrawingModel]


class SourceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A document to render."""

    source: Annotated[str, Meta(max_length=MAX_SOURCE_CHARS)]
    source_format: SourceFormat | None = None
    size: Name = ""


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    id: Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]


async def list_models(studio: StudioParts, _: NoArguments) -> DrawingModels:
    """The models that draw."""
    lim, today = studio.lim, studio.lim.clock().date()
    found = [
        DrawingModel(
            name=model.name,
            title=model.title,
            missing_key=None if spec.key(lim.keys.get) is not None else spec.key_env,
            sizes=tuple(map(str, model.sizes.sizes))
            if isinstance(model.sizes, ListedSizes)
            else (),
            qualities=bool(model.qualities),
            edits=model.edit is not None,
            masks=model.edit is not None and model.edit.mask is not None,
            seeds=model.seeds,
            backgrounds=model.backgrounds,
            negative_prompt=model.negative_prompt,
        )
        for spec in lim.specs.values()
        for model in spec.models
        if not spec.named_only and (model.retired is None or model.retired > today)
    ]
    return DrawingModels(models=sorted(found, key=lambda one: one.missing_key is not None))


async def quote_drawing(studio: StudioParts, request: DrawingRequest) -> DrawingQuote:
    """What an order would cost. Nothing is sent, written or paid."""
    return _quote(await studio.lim.plan(*_arguments(request)))


async def start_drawing(studio: StudioParts, request: DrawingOrder) -> StudioRun:
    """Draw, if it costs no more than the page showed."""
    lim = studio.lim
    agreed_nano = usd_to_nano(request.agreed_usd)
    arguments, options = _arguments(request)
    plan = await lim.plan(arguments, options)
    if plan.cost_nano > agreed_nano:
        raise ApprovalDenied(
            f"It costs {format_usd(plan.cost_nano)} now, and you agreed to "
            f"{format_usd(agreed_nano)}.",
            code="PRICE_CHANGED",
            hint="Look at the new price and order again.",
            extras={"quote": msgspec.to_builtins(_quote(plan))},
        )

    async def ask(question: Question) -> bool:
        return question.amount_nano is not None and question.amount_nano <= agreed_nano

    async def work(report: Report) -> RunResult:
        drawn = await lim.draw(arguments, options, progress=report, ask=ask, approval=ASKS)
        failures = "\n".join(error.message for error in drawn.failures)
        return RunResult(
            pictures=tuple([await master_handle(lim, one.image.handle) for one in drawn.images]),
            text=failures,
            cost_usd=drawn.cost_nano / NANO_PER_USD,
        )

    return studio.runs.start(arguments.tool, request.prompt[:_TITLE_CHARS], work)


async def preview_source(studio: StudioParts, request: SourceRequest) -> FileAnswer:
    """A document as a picture that is not stored."""
    size = parse_size(request.size) if request.size else None
    png = await studio.lim.renderer.preview(request.source, request.source_format, size)
    return FileAnswer(data=png, mime="image/png")


async def start_rendering(studio: StudioParts, request: SourceRequest) -> StudioRun:
    """Render a document and store the picture; it is free."""
    lim = studio.lim
    arguments = RenderArguments(
        source=request.source, source_format=request.source_format, size=request.size or None
    )

    async def work(report: Report) -> RunResult:
        drawn = await lim.renderer.render(arguments, lim.person(progress=report))
        notes: Any = drawn.extras.get("notes", ())
        handle = await master_handle(lim, drawn.image.handle)
        return RunResult(pictures=(handle,), text="\n".join(map(str, notes)))

    title = " ".join(request.source.split())[:_TITLE_CHARS]
    return studio.runs.start(arguments.tool, title, work)


async def cancel_run(studio: StudioParts, request: RunRequest) -> StudioRun:
    """Stop a run. A service that can cancel does."""
    return studio.runs.cancel(request.id)


async def show_partial(studio: StudioParts, request: RunRequest) -> FileAnswer:
    """The last unfinished picture of a run."""
    data = studio.runs.partial(request.id)
    fitted, shown = await studio.lim.imaging.fit(data, _PARTIAL)
    return FileAnswer(data=shown, mime=fitted.mime)


def _arguments(request: DrawingRequest) -> tuple[DrawingArguments, CallerOptions]:
    given = {
        name: value
        for name, value in msgspec.to_builtins(request).items()
        if value not in (None, "", []) and name not in ("agreed_usd", "partial_pictures", "model")
    }
    if request.model:
        given["provider"], _, given["model"] = request.model.partition("/")
    kind = GenerateArguments if request.image is None else EditArguments
    arguments = read_arguments(kind, given)
    return arguments, CallerOptions(partial_pictures=request.partial_pictures)


def _quote(plan: Plan) -> DrawingQuote:
    return DrawingQuote(
        cost_usd=plan.cost_usd,
        exact=plan.quote.exact,
        provider=plan.choice.spec.name,
        model=plan.request.model,
        width=plan.request.width,
        height=plan.request.height,
        notice=plan.choice.notice,
        max_partial_pictures=plan.choice.model.partial_pictures,
    )


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/models",
        summary="List the models that draw.",
        request=NoArguments,
        answer=DrawingModels,
        handler=list_models,
    ),
    Endpoint(
        method="POST",
        path="/api/quotes",
        summary="Say what a picture would cost. Nothing is sent or paid.",
        request=DrawingRequest,
        answer=DrawingQuote,
        handler=quote_drawing,
    ),
    Endpoint(
        method="POST",
        path="/api/drawings",
        summary="Draw or change a picture for at most the agreed price.",
        request=DrawingOrder,
        answer=StudioRun,
        handler=start_drawing,
    ),
    Endpoint(
        method="POST",
        path="/api/previews",
        summary="Render a document without storing it.",
        request=SourceRequest,
        answer=FileAnswer,
        handler=preview_source,
    ),
    Endpoint(
        method="POST",
        path="/api/renderings",
        summary="Render a document and store the picture.",
        request=SourceRequest,
        answer=StudioRun,
        handler=start_rendering,
    ),
    Endpoint(
        method="POST",
        path="/api/runs/{id}/cancel",
        summary="Stop a run.",
        request=RunRequest,
        answer=StudioRun,
        handler=cancel_run,
    ),
    Endpoint(
        method="GET",
        path="/api/runs/{id}/partial",
        summary="Get the last unfinished picture of a run.",
        request=RunRequest,
        answer=FileAnswer,
        handler=show_partial,
    ),
)
