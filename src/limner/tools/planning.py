"""An order -> a plan: who draws it, what it costs and where it goes, decided before paying."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from limner.catalogue.images import ImageModel, Needs, Size
from limner.catalogue.prices import Quote
from limner.content import Picture
from limner.errors import NANO_PER_USD, InputInvalid
from limner.imaging.formats import OutputFormat
from limner.imaging.limits import DEFAULT_LIMITS
from limner.pictures.request import MAX_SEED, ImageRequest
from limner.providers.base import ProviderSpec
from limner.providers.choice import AUTO, Choice, DrawingNeeds, choose, find_provider
from limner.tools.base import ApprovalPolicy, ToolContext
from limner.tools.drawing_arguments import DrawingInputs, Order
from limner.tools.output_target import OutputTargets

# Most orders are drawn from words alone: they need no stored picture.
if TYPE_CHECKING:
    from limner.tools.sources import Mask, SourceLoader

DEFAULT_SIZE = Size(1024, 1024)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """An order with everything decided.

    Without a ``target`` the file gets a new name in the folder of generated pictures. A target that
    is a folder gets a file with a new name.

    A ``document`` is written to the file in place of the picture. ``scene`` is kept with it for
    later edits.

    ``replaces`` is the handle of the picture that a model replaces at the target. ``quote`` is the
    price of one picture, and ``n`` the number of pictures. ``parents`` are the
    handles of the pictures it is drawn from. It is ``untrusted`` if one of them, or the mask, comes
    from outside: it may contain words of others. ``after_untrusted`` says that its prompt was
    written after content from outside was read, and may repeat it.
    """

    request: ImageRequest
    choice: Choice
    quote: Quote
    target: Path | None
    overwrite: bool
    replaces: str | None = None
    n: int = 1
    parents: tuple[str, ...] = ()
    output_format: OutputFormat = "png"
    document: bytes | None = None
    scene: Mapping[str, object] | None = None
    untrusted: bool = False
    after_untrusted: bool = False

    @property
    def is_marked(self) -> bool:
        """Whether the picture counts as content from outside in every later session."""
        return self.untrusted or self.after_untrusted

    @property
    def cost_nano(self) -> int:
        """What all pictures cost, in nano-dollars; the most if the quote is not exact."""
        return self.quote.nano * self.n

    @property
    def cost_usd(self) -> float:
        """What all pictures cost, in dollars; the most if the quote is not exact."""
        return self.cost_nano / NANO_PER_USD


class Planner(msgspec.Struct, frozen=True, kw_only=True):
    """Turns orders into plans; it spends nothing, sends nothing and writes nothing."""

    source_loader: Callable[[], SourceLoader]
    specs: Callable[[], Mapping[str, ProviderSpec]]
    key_of: Callable[[str], str | None]
    approval: ApprovalPolicy
    targets: OutputTargets

    async def plan(self, order: Order, context: ToolContext, *, today: date) -> Plan:
        """Decide, and check everything that can be checked for free.

        An order with neither pictures nor an output path waits for nothing.

        Raises:
            UserError: no model can draw the order as it is.
            ImageError: a file to draw from is not a picture.
            ReachDenied: the caller may not write the output path, or may write nothing.
            ApprovalDenied: the user must allow the output path, and did not.
            StorageError: it cannot be written.
        """
        _check_text(order)
        arguments = order.arguments
        sources, mask = await self._load_sources(order.inputs, context)
        needs = _needs(order, sources, has_mask=mask is not None)
        specs = self.specs()
        for name in {*order.fallback} - {AUTO}:
            find_provider(name, specs, field="fallback")
        choice = choose(needs, specs=specs, key_of=self.key_of, today=today)
        choice = _with_seed_notice(choice, arguments.seed)
        model = choice.model
        if choice.spec.models_are_folders:
            _check_folder(model.id, context)
        if len(arguments.prompt) > model.max_prompt_chars:
            raise InputInvalid(
                f"prompt has {len(arguments.prompt):,} characters; "
                f"{model.title} takes {model.max_prompt_chars:,}",
                field="prompt",
            )
        output = await self.targets.check(
            arguments.output_path, context, overwrite=arguments.overwrite
        )
        request = _request(order, model, model.nearest_size(needs.size))
        untrusted = False
        if sources:
            request = await self._with_sources(request, model, sources, mask)
            untrusted = not await self.source_loader().are_drawn_here(sources, mask)
        return Plan(
            request=request,
            choice=choice,
            quote=quote_of(request, model),
            target=output.path,
            overwrite=output.overwrite,
            replaces=output.replaces,
            n=arguments.n,
            parents=tuple(source.handle for source in sources),
            output_format=order.output_format,
            document=order.document,
            scene=order.scene,
            untrusted=untrusted,
            after_untrusted=context.has_read_untrusted,
        )

    async def _load_sources(
        self, inputs: DrawingInputs, context: ToolContext
    ) -> tuple[list[Picture], Mask | None]:
        """The pictures to draw from, and what marks the part of the first that may change."""
        if not inputs.sources:
            return [], None
        loader = self.source_loader()
        sources = [await loader.take(name, context) for name in inputs.sources]
        return sources, await loader.mask(inputs.mask, inputs.region, sources[0], context)

    async def _with_sources(
        self,
        request: ImageRequest,
        model: ImageModel,
        sources: Sequence[Picture],
        mask: Mask | None,
    ) -> ImageRequest:
        """The request with its pictures and its mask, as the model takes them."""
        if model.edit is None:
            return request
        loader = self.source_loader()
        fitted = await loader.fit(sources, model.edit)
        if mask is None:
            return replace(request, sources=fitted)
        marked = await loader.fit_mask(mask, sources[0], fitted[0], model.edit)
        return replace(request, sources=fitted, mask=marked)


def quote_of(request: ImageRequest, model: ImageModel) -> Quote:
    """What a request costs with a model."""
    return model.quote(
        Size(request.width, request.height),
        request.quality,
        request.prompt,
        sources=[Size(source.width, source.height) for source in request.sources],
        partial_pictures=request.partial_pictures,
    )


def _needs(order: Order, sources: Sequence[Picture], *, has_mask: bool) -> DrawingNeeds:
    size = order.size
    if size is None:
        size = Size(sources[0].width, sources[0].height) if sources else DEFAULT_SIZE
    return DrawingNeeds(
        provider=order.provider,
        model=order.arguments.model,
        size=size,
        any_size=order.any_size or order.size is None,
        quality=order.arguments.quality,
        has_svg=order.inputs.svg is not None,
        needs=Needs(
            sources=len(sources),
            mask=has_mask,
            partial_pictures=order.partial_pictures,
            options=order.arguments.given_options,
        ),
    )


def _request(order: Order, model: ImageModel, size: Size) -> ImageRequest:
    arguments = order.arguments
    # With a seed of our own, a job whose id was lost can be found among the service's jobs.
    seed = arguments.seed
    if seed is None:
        seed = int.from_bytes(os.urandom(8), "big") % MAX_SEED
    options: dict[str, Any] = {**arguments.options, "seed": seed}
    return ImageRequest(
        **options,
        prompt=arguments.prompt,
        model=model.id,
        width=size.width,
        height=size.height,
        svg=order.inputs.svg,
        partial_pictures=order.partial_pictures,
        vendor_fields=model.vendor_fields(arguments.given_options),
    )


def _with_seed_notice(choice: Choice, seed: int | None) -> Choice:
    """The choice, which tells the caller if the model ignores the seed."""
    if seed is None or choice.model.seeds:
        return choice
    ignored = f"{choice.model.name} has no seeds: the same seed draws another picture."
    notice = ignored if choice.notice is None else f"{choice.notice} {ignored}"
    return replace(choice, notice=notice)


def _check_folder(model: str, context: ToolContext) -> None:
    """Refuse a model folder that the caller may not read; a model's name is not a folder.

    Raises:
        ReachDenied: the caller may not read it.
    """
    folder = Path(os.path.expanduser(model))  # noqa: PTH111 - expanduser of Path raises for an unknown user
    if folder.is_dir():
        context.reach.resolve_read(folder.absolute(), cwd=context.cwd)


def _check_text(order: Order) -> None:
    """Refuse texts that cannot be encoded, and a document that is too large to render."""
    _size_bytes(order.arguments.prompt, field="prompt")
    svg, most = order.inputs.svg, DEFAULT_LIMITS.max_svg_bytes
    if svg is not None and _size_bytes(svg, field="svg") > most:
        raise InputInvalid(f"svg has more than {most:,} bytes", field="svg")


def _size_bytes(text: str, *, field: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise InputInvalid(
            f"{field} contains a lone surrogate at position {error.start}", field=field
        ) from None
