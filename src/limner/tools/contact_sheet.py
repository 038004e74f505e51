"""Pictures, or prompts with models and seeds -> one numbered sheet with names, sizes and prices.

Prompts are drawn as `image_generate` draws them: the sum of the prices is approved first, and each
picture is paid for on its own.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path, PurePath
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from limner.content import Picture
from limner.dollars import format_usd, usd_to_nano
from limner.errors import NANO_PER_USD, BudgetExceeded, InputInvalid, LimnerError
from limner.imaging.pool import Imaging
from limner.imaging.transform import TransformRequest
from limner.rendering.sheet import SheetCell, lay_out
from limner.tools.base import ToolContext
from limner.tools.built_in.image_generate import GenerateArguments
from limner.tools.consent import approve_spending
from limner.tools.declaration import ImageText, OutputPath, Overwrite
from limner.tools.drawing_arguments import DrawingDefaults, Order, order_for
from limner.tools.generation import ImageGenerator
from limner.tools.handles import names_a_picture
from limner.tools.in_flight import InFlight
from limner.tools.output_target import OutputTarget
from limner.tools.picture_set import draw_all

MAX_PICTURES = 100
_CELL_EDGE = 320


class SheetArguments(msgspec.Struct, frozen=True, kw_only=True):
    """What a contact sheet is made of: pictures that exist, or prompts to draw."""

    images: Annotated[
        tuple[ImageText, ...],
        Meta(description="Pictures: file paths or handles.", max_length=MAX_PICTURES),
    ] = ()
    prompts: Annotated[
        tuple[str, ...],
        Meta(
            description="Texts to draw; each is drawn by each model with each seed.",
            extra={"flag": "--prompt", "metavar": "TEXT"},
        ),
    ] = ()
    models: Annotated[
        tuple[str, ...],
        Meta(
            description="Models that draw, by id, or providers by name.",
            extra={"flag": "--model", "metavar": "NAME"},
        ),
    ] = ()
    seeds: Annotated[
        tuple[Annotated[int, Meta(ge=0)], ...],
        Meta(description="Seeds, one picture for each.", extra={"flag": "--seed", "metavar": "N"}),
    ] = ()
    size: (
        Annotated[
            str,
            Meta(
                description="The size to draw: WIDTHxHEIGHT or a shape as 16:9.",
                extra={"metavar": "WxH"},
            ),
        ]
        | None
    ) = None
    budget_usd: (
        Annotated[
            str,
            Meta(
                description="Draw nothing if all pictures together cost more.",
                extra={"flag": "--budget", "metavar": "USD"},
            ),
        ]
        | None
    ) = None
    output_path: OutputPath | None = None
    overwrite: Overwrite = False


class SheetPicture(msgspec.Struct, frozen=True, kw_only=True):
    """A picture of a sheet by its number. ``cost_nano`` is None if the price is not known.

    If it could not be drawn, ``error`` says why, and there is no picture.
    """

    number: int
    title: str
    lines: tuple[str, ...] = ()
    image: Picture | None = None
    path: Path | None = None
    cost_nano: int | None = None
    error: str | None = None


class ContactSheet(msgspec.Struct, frozen=True, kw_only=True):
    """A sheet in a file, and its pictures by number. ``cost_nano`` is what was spent now."""

    path: Path
    image: Picture
    pictures: tuple[SheetPicture, ...]
    cost_nano: int = 0

    @property
    def cost_usd(self) -> float:
        """What was spent now, in dollars."""
        return self.cost_nano / NANO_PER_USD


class ContactSheetMaker(msgspec.Struct, frozen=True, kw_only=True):
    """Draws what is to be drawn, and puts all pictures on one sheet."""

    generator: ImageGenerator
    imaging: Imaging
    defaults: DrawingDefaults
    in_flight: InFlight

    async def make(self, arguments: SheetArguments, context: ToolContext) -> ContactSheet:
        """Make a sheet.

        Raises:
            InputInvalid: there is no picture and no prompt, or there are too many.
            BudgetExceeded: all pictures together cost more than the budget.
            LimnerError: nothing could be drawn, read or written.
        """
        orders = self._orders(arguments)
        with self.in_flight.track():
            target = await self.generator.planner.targets.check(
                arguments.output_path, context, overwrite=arguments.overwrite
            )
            if orders:
                await self._approve(orders, arguments.budget_usd, context)
            given = [await self._given(name, context) for name in arguments.images]
            drawn = await self._draw_all(orders, context, may_all_fail=bool(given))
            pictures = [
                replace(one, number=number, title=f"{number}  {one.title}")
                for number, one in enumerate([*given, *drawn], start=1)
            ]
            return await self._compose(pictures, sum(one.cost_nano or 0 for one in drawn), target)

    async def quote(self, arguments: SheetArguments, context: ToolContext) -> int:
        """What drawing all pictures of a sheet costs at most, in nano-dollars."""
        return await self._price(self._orders(arguments), context)

    async def _price(self, orders: Sequence[Order], context: ToolContext) -> int:
        planner, today = self.generator.planner, self.generator.clock().date()
        plans = [await planner.plan(order, context, today=today) for order in orders]
        return sum(plan.cost_nano for plan in plans)

    def _orders(self, arguments: SheetArguments) -> list[Order]:
        """An order for each prompt with each model and each seed."""
        if not arguments.prompts and (arguments.models or arguments.seeds or arguments.size):
            raise InputInvalid("models, seeds and size need prompts", field="prompts")
        if not arguments.images and not arguments.prompts:
            raise InputInvalid("give pictures, or prompts to draw", field="images")
        every = product(arguments.prompts, arguments.models or (None,), arguments.seeds or (None,))
        orders = [self._order(*one, size=arguments.size) for one in every]
        if len(orders) + len(arguments.images) > MAX_PICTURES:
            raise InputInvalid(f"a sheet has at most {MAX_PICTURES} pictures", field="prompts")
        return orders

    def _order(
        self, prompt: str, model: str | None, seed: int | None, *, size: str | None
    ) -> Order:
        named: dict[str, Any] = {"prompt": prompt, "seed": seed}
        if size is not None:
            named["size"] = size
        if model is not None:
            is_provider = model in self.generator.planner.specs()
            named["provider" if is_provider else "model"] = model
        return order_for(GenerateArguments(**named), self.defaults)

    async def _approve(
        self, orders: Sequence[Order], budget_usd: str | None, context: ToolContext
    ) -> None:
        total = await self._price(orders, context)
        most = None if budget_usd is None else usd_to_nano(budget_usd, field="budget_usd")
        if most is not None and total > most:
            raise BudgetExceeded(
                f"{len(orders)} pictures cost up to {format_usd(total)}, and the budget is "
                f"{format_usd(most)}",
                hint="Leave out prompts, models or seeds, or raise the budget.",
            )
        await approve_spending(
            total,
            f"{len(orders)} pictures",
            context,
            self.generator.planner.approval,
            has_session_cap=self.generator.money.has_session_cap,
        )

    async def _given(self, name: str, context: ToolContext) -> SheetPicture:
        image = await self.generator.planner.source_loader().take(name, context)
        bought = await self.generator.money.purchases(image.handle, limit=1)
        cost_nano = bought[0].cost_nano if bought else None
        return SheetPicture(
            number=0,
            title=name[:12] if names_a_picture(name) else PurePath(name).name,
            lines=(_facts(image, cost_nano),),
            image=image,
            path=Path(name) if Path(name).exists() else None,
            cost_nano=cost_nano,
        )

    async def _draw_all(
        self, orders: Sequence[Order], context: ToolContext, *, may_all_fail: bool
    ) -> list[SheetPicture]:
        """Draw each order; one that fails has its error in the result.

        Raises:
            LimnerError: all failed, and that must not be; it has the cost of all.
        """
        failures: list[LimnerError] = []
        drawn = await asyncio.gather(*(self._draw(one, context, failures) for one in orders))
        if failures and len(failures) == len(orders) and not may_all_fail:
            cost_nano = sum(error.cost_nano for error in failures)
            failures[0].charge(cost_nano, failures[0].cost_source)
            raise failures[0]
        return drawn

    async def _draw(
        self, order: Order, context: ToolContext, failures: list[LimnerError]
    ) -> SheetPicture:
        arguments = order.arguments
        seed = "" if arguments.seed is None else f" · seed {arguments.seed}"
        try:
            drawn = await draw_all(order, self.generator, context)
        except LimnerError as error:
            failures.append(error)
            wanted = arguments.model or arguments.provider or "auto"
            return SheetPicture(
                number=0,
                title=arguments.prompt,
                lines=(f"{wanted}{seed}", error.message),
                cost_nano=error.cost_nano,
                error=error.message,
            )
        (one,) = drawn.images
        return SheetPicture(
            number=0,
            title=arguments.prompt,
            lines=(f"{one.model}{seed}", _facts(one.image, one.cost_nano)),
            image=one.image,
            path=one.path,
            cost_nano=one.cost_nano,
        )

    async def _compose(
        self, pictures: Sequence[SheetPicture], cost_nano: int, target: OutputTarget
    ) -> ContactSheet:
        shown = [(one, one.image) for one in pictures if one.image is not None]
        cells = [
            SheetCell(size=(image.width, image.height), title=one.title, lines=one.lines)
            for one, image in shown
        ]
        columns = min(5, math.ceil(math.sqrt(len(cells))))
        layout = lay_out(cells, columns=columns, cell_edge=_CELL_EDGE)
        output = self.generator.output
        small = [
            (await self.imaging.transform(await output.pictures.original(image), request))[1]
            for (_, image), place in zip(shown, layout.request.places, strict=True)
            if (request := TransformRequest(width=place.width, height=place.height))
        ]
        data = await self.imaging.sheet(layout.request, layout.overlay, small)
        with output.pictures.sink() as sink:
            sink.write(data)
            parents = [image.handle for _, image in shown]
            untrusted = not await output.pictures.drawn_here(parents)
            lineage = {"made": "sheet", "parents": parents, "untrusted": untrusted}
            image = await output.pictures.take(sink, lineage=lineage)
        path = await asyncio.to_thread(
            output.write,
            target.path,
            await output.derived_bytes(image),
            overwrite=target.overwrite,
            replaces=target.replaces,
        )
        return ContactSheet(path=path, image=image, pictures=tuple(pictures), cost_nano=cost_nano)


def _facts(image: Picture, cost_nano: int | None) -> str:
    price = "" if cost_nano is None else f" · {format_usd(cost_nano)}"
    return f"{image.width} x {image.height}{price}"


def as_value(sheet: ContactSheet) -> dict[str, Any]:
    """What `limner sheet --json` prints."""
    return {
        "path": str(sheet.path),
        "dimensions": {"width": sheet.image.width, "height": sheet.image.height},
        "image": sheet.image.handle,
        "cost_usd": sheet.cost_usd,
        "pictures": [
            {
                "number": one.number,
                "title": one.title,
                "lines": list(one.lines),
                "image": None if one.image is None else one.image.handle,
                "path": None if one.path is None else str(one.path),
                "cost_usd": None if one.cost_nano is None else one.cost_nano / NANO_PER_USD,
                "error": one.error,
            }
            for one in sheet.pictures
        ],
    }
