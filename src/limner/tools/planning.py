"""An order -> a plan: who draws it, what it costs and where it goes, decided before paying."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path

import msgspec
from msgspec.structs import replace

from limner.catalogue.images import ImageModel, Needs, Size
from limner.catalogue.prices import Quote
from limner.content import Picture
from limner.errors import InputInvalid
from limner.imaging.fit import Region
from limner.imaging.formats import OutputFormat
from limner.imaging.limits import DEFAULT_LIMITS
from limner.pictures.request import Background, ImageRequest
from limner.providers.base import ProviderSpec
from limner.providers.choice import Choice, DrawingNeeds, choose
from limner.storage.files import check_new
from limner.tools.base import ApprovalPolicy, ToolContext
from limner.tools.consent import approve_write
from limner.tools.sources import SourceLoader

MAX_SEED = 2**31 - 1
DEFAULT_SIZE = Size(1024, 1024)


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller wants: every field of the right type, nothing decided yet.

    Attributes:
        prompt: what to draw, or what to change.
        tool: the tool that was called, for the ledger.
        count: how many pictures; a set of them is saved under numbered names.
        output_path: where to save it; None for a name of its own.
        output_format: what to save it as; the picture as it came is kept beside that.
        size: None for the shape of the first source.
        any_size: only the shape of the size is meant.
        quality: standard or hd.
        provider: who draws, or ``auto``.
        fallback: who draws instead, one after the other, after failures that cost nothing.
        model: one model by its id.
        svg: a document to render instead.
        seed: for the same picture again.
        overwrite: replace an existing file.
        background: transparent or opaque.
        negative_prompt: what should not be in the picture.
        sources: paths or handles of pictures to draw from, the one to change first.
        mask: a path or handle of a picture that marks what may change.
        region: the part that may change.
        partial_pictures: how many unfinished pictures to show on the way.
    """

    prompt: str
    tool: str = "image_generate"
    count: int = 1
    output_path: str | None = None
    output_format: OutputFormat = "png"
    size: Size | None = DEFAULT_SIZE
    any_size: bool = False
    quality: str = "standard"
    provider: str = "auto"
    fallback: tuple[str, ...] = ()
    model: str | None = None
    svg: str | None = None
    seed: int | None = None
    overwrite: bool = False
    background: Background | None = None
    negative_prompt: str | None = None
    sources: tuple[str, ...] = ()
    mask: str | None = None
    region: Region | None = None
    partial_pictures: int = 0


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """An order with everything decided. Without a target the picture gets a name of its own.

    ``parents`` are the handles of the pictures it is drawn from. It is ``untrusted`` where others
    may have put words into one of these, or into its mask.
    """

    request: ImageRequest
    choice: Choice
    quote: Quote
    target: Path | None
    overwrite: bool
    parents: tuple[str, ...] = ()
    output_format: OutputFormat = "png"
    untrusted: bool = False


class Planner(msgspec.Struct, frozen=True, kw_only=True):
    """Turns orders into plans; it spends nothing, sends nothing and writes nothing."""

    sourcing: SourceLoader
    specs: Callable[[], Mapping[str, ProviderSpec]]
    key_of: Callable[[str], str | None]
    approval: ApprovalPolicy
    generated: Path

    async def plan(self, order: Order, context: ToolContext, *, today: date) -> Plan:
        """Decide, and check everything that can be checked for free.

        Raises:
            UserError: the order cannot be drawn as it is.
            ImageError: what is to be drawn from is no picture.
            ReachDenied: the output path may not be written, or nothing may.
            ApprovalDenied: the user must allow the output path, and did not.
            StorageError: it cannot be written.
        """
        _check_text(order)
        sources = [await self.sourcing.take(name, context) for name in order.sources]
        mask = None
        if sources:
            mask = await self.sourcing.mask(order.mask, order.region, sources[0], context)
        wish = _wish(order, sources, has_mask=mask is not None)
        choice = choose(wish, specs=self.specs(), key_of=self.key_of, today=today)
        model = choice.model
        if choice.spec.models_are_folders:
            _check_folder(model.id, context)
        if len(order.prompt) > model.max_prompt_chars:
            raise InputInvalid(
                f"prompt has {len(order.prompt):,} characters; "
                f"{model.title} takes {model.max_prompt_chars:,}",
                field="prompt",
            )
        target = await self._target(order, context)
        request = _request(order, model, model.nearest_size(wish.size))
        if model.edit is not None and sources:
            fitted = await self.sourcing.fit(sources, model.edit)
            request = replace(request, sources=fitted)
            if mask is not None:
                marked = await self.sourcing.fit_mask(mask, sources[0], fitted[0], model.edit)
                request = replace(request, mask=marked)
        return Plan(
            request=request,
            choice=choice,
            quote=quote_of(request, model),
            target=target,
            overwrite=order.overwrite,
            parents=tuple(source.handle for source in sources),
            output_format=order.output_format,
            untrusted=not await self.sourcing.are_drawn_here(sources, mask),
        )

    async def _target(self, order: Order, context: ToolContext) -> Path | None:
        if order.output_path is None:
            # The name is found when the picture is there; that one can be written is known now.
            some_name = context.reach.resolve_write(self.generated / "new.png", cwd=context.cwd)
            await asyncio.to_thread(check_new, some_name, overwrite=True)
            return None
        path = await approve_write(
            order.output_path, context, self.approval, generated=self.generated
        )
        await asyncio.to_thread(check_new, path, overwrite=order.overwrite)
        return path


def quote_of(request: ImageRequest, model: ImageModel) -> Quote:
    """What a request costs with a model."""
    return model.quote(
        Size(request.width, request.height),
        request.quality,
        request.prompt,
        sources=[Size(source.width, source.height) for source in request.sources],
        partial_pictures=request.partial_pictures,
    )


def _wish(order: Order, sources: Sequence[Picture], *, has_mask: bool) -> DrawingNeeds:
    size = order.size
    if size is None:
        size = Size(sources[0].width, sources[0].height) if sources else DEFAULT_SIZE
    return DrawingNeeds(
        provider=order.provider,
        model=order.model,
        size=size,
        any_size=order.any_size or order.size is None,
        quality=order.quality,
        has_svg=order.svg is not None,
        needs=Needs(
            sources=len(sources),
            mask=has_mask,
            background=order.background,
            negative_prompt=order.negative_prompt is not None,
            partial_pictures=order.partial_pictures,
        ),
    )


def _request(order: Order, model: ImageModel, size: Size) -> ImageRequest:
    # A seed of our own makes a job whose id was lost findable among the service's jobs.
    seed = secrets.randbelow(MAX_SEED) if order.seed is None else order.seed
    return ImageRequest(
        prompt=order.prompt,
        model=model.id,
        width=size.width,
        height=size.height,
        quality=order.quality,
        seed=seed,
        svg=order.svg,
        background=order.background,
        negative_prompt=order.negative_prompt,
        partial_pictures=order.partial_pictures,
    )


def _check_folder(model: str, context: ToolContext) -> None:
    """Refuse a folder to draw with that whoever asks may not read; a name is none.

    Raises:
        ReachDenied: it is out of reach.
    """
    folder = Path(os.path.expanduser(model))  # noqa: PTH111 - the other raises for ~nobody
    if folder.is_dir():
        context.reach.resolve_read(folder.absolute(), cwd=context.cwd)


def _check_text(order: Order) -> None:
    """Refuse what can neither be sent nor written down, and a document nobody will draw."""
    _size_bytes(order.prompt, field="prompt")
    most = DEFAULT_LIMITS.max_svg_bytes
    if order.svg is not None and _size_bytes(order.svg, field="svg") > most:
        raise InputInvalid(f"svg has more than {most:,} bytes", field="svg")


def _size_bytes(text: str, *, field: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise InputInvalid(
            f"{field} holds half of a character at position {error.start}", field=field
        ) from None
