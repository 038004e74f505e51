"""An order for one or several pictures -> the pictures, from another provider if one fails."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import PurePath

import msgspec
from msgspec.structs import replace

from limner.errors import (
    Cancelled,
    InvalidSize,
    LimnerError,
    NoProvider,
    ProviderError,
    ProviderRefused,
    UnexpectedError,
    cancellation_cost,
)
from limner.net.redaction import redact
from limner.pictures.request import MAX_SEED
from limner.providers.choice import CANNOT
from limner.tools.base import Question, ToolContext
from limner.tools.consent import OverCap, approve_spending
from limner.tools.drawing_arguments import Order
from limner.tools.file_lookup import plain_path
from limner.tools.generation import ImageGenerator
from limner.tools.output_file import GeneratedImage


class PictureSet(msgspec.Struct, frozen=True, kw_only=True):
    """The pictures of one order, and the errors of those that are missing."""

    images: tuple[GeneratedImage, ...]
    failures: tuple[LimnerError, ...] = ()

    @property
    def untrusted(self) -> bool:
        """Whether a picture, or the message of a failure, may contain words from outside."""
        return any(part.untrusted for part in (*self.images, *self.failures))

    @property
    def cost_nano(self) -> int:
        """What all of it cost, the failures included."""
        return sum(part.cost_nano for part in (*self.images, *self.failures))


async def draw_all(order: Order, generator: ImageGenerator, context: ToolContext) -> PictureSet:
    """Draw every picture of an order. One that fails does not stop the others.

    Raises:
        LimnerError: nothing was drawn; the error carries what all of it cost.
    """
    if order.arguments.n == 1:
        return PictureSet(images=(await _draw(order, generator, context),))
    agreed = await _ask_once(order, generator, context)
    singles = _singles(order, context)
    tasks = [asyncio.ensure_future(_draw(single, generator, agreed)) for single in singles]
    try:
        await asyncio.wait(tasks)
    except asyncio.CancelledError as stop:
        stop.args = (await _call_off(tasks),)
        raise
    failures = tuple(_as_limner_error(error) for task in tasks if (error := task.exception()))
    images = tuple(task.result() for task in tasks if task.exception() is None)
    if not images:
        failures[0].charge(sum(error.cost_nano for error in failures), failures[0].cost_source)
        raise failures[0]
    return PictureSet(images=images, failures=failures)


def _as_limner_error(error: BaseException) -> LimnerError:
    """The error of one picture; an unexpected one must not hide what the others cost."""
    if isinstance(error, LimnerError):
        return error
    unexpected = UnexpectedError(redact(f"Unexpected {type(error).__name__}: {error}"))
    unexpected.__cause__ = error
    return unexpected


async def _draw(order: Order, generator: ImageGenerator, context: ToolContext) -> GeneratedImage:
    """Draw one picture, with the next provider if one fails and that cost nothing."""
    passed_over: list[dict[str, str]] = []
    providers = [order.provider, *order.fallback]
    while True:
        provider = providers.pop(0)
        try:
            drawn = await generator.draw(replace(order, provider=provider), context)
        except LimnerError as error:
            if not providers or not _may_try_another(error):
                raise
            passed_over.append({"provider": provider, "code": error.code, "why": error.message})
        else:
            extras = {"passed_over": passed_over} if passed_over else {}
            return replace(drawn, extras={**drawn.extras, **extras})


def _may_try_another(error: LimnerError) -> bool:
    """Whether nothing was paid and another provider might succeed. A refusal is final."""
    if isinstance(error, ProviderRefused) or error.billed:
        return False
    return isinstance(error, ProviderError | NoProvider | InvalidSize) or error.code == CANNOT


async def _ask_once(order: Order, generator: ImageGenerator, context: ToolContext) -> ToolContext:
    """Ask the user once for the price of the whole set, if the policy asks at all."""
    count = order.arguments.n
    plan = await generator.planner.plan(order, context, today=generator.clock().date())
    service = plan.choice.spec.name
    await approve_spending(
        plan.quote.nano * count,
        f"{count} pictures from {service}",
        context,
        generator.planner.approval,
        has_session_cap=generator.money.has_session_cap,
    )
    agreed = _Agreed(ask=context.ask, each_nano=plan.quote.nano, count=count)
    return replace(context, ask=agreed.answer)


class _Agreed(msgspec.Struct, kw_only=True):
    """The user's answer about the price of a set, for each picture of it."""

    ask: Callable[[Question], Awaitable[bool]]
    each_nano: int
    count: int
    over_caps: bool | None = None
    asking: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)

    async def answer(self, question: Question) -> bool:
        """Ask only what is new: a path, a dearer picture, and once whether to exceed a cap."""
        amount_nano = question.amount_nano
        if amount_nano is None or amount_nano > self.each_nano:
            return await self.ask(question)
        if not isinstance(question, OverCap):
            return True
        async with self.asking:
            if self.over_caps is None:
                text = f"{question.text} The answer applies to each of the {self.count} pictures."
                whole = replace(question, text=text, amount_nano=amount_nano * self.count)
                self.over_caps = await self.ask(whole)
        return self.over_caps


def _singles(order: Order, context: ToolContext) -> Sequence[Order]:
    """The same order for each picture, each with its own name and seed."""
    arguments = order.arguments
    path = arguments.output_path
    is_folder = path is not None and _is_folder(path, context)
    return [
        replace(
            order,
            arguments=replace(
                arguments,
                n=1,
                output_path=path if is_folder else _numbered(path, number),
                seed=None if arguments.seed is None else (arguments.seed + number) % (MAX_SEED + 1),
            ),
        )
        for number in range(arguments.n)
    ]


def _is_folder(path: str, context: ToolContext) -> bool:
    plain = plain_path(path, field="output_path")
    return plain.endswith(("/", os.sep)) or (context.cwd / os.path.expanduser(plain)).is_dir()  # noqa: PTH111 - expanduser of Path raises for an unknown user


def _numbered(path: str | None, number: int) -> str | None:
    if path is None or number == 0:
        return path
    pure = PurePath(path)
    return str(pure.with_name(f"{pure.stem}-{number}{pure.suffix}"))


async def _call_off(tasks: Sequence[asyncio.Future[GeneratedImage]]) -> Cancelled:
    """Cancel what is left of a set, and say what it cost."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    stopped = Cancelled("The call was cancelled.")
    stopped.charge(sum(map(_cost_of, tasks)), "unknown")
    return stopped


def _cost_of(task: asyncio.Future[GeneratedImage]) -> int:
    try:
        error = task.exception()
    except asyncio.CancelledError as stop:
        error = cancellation_cost(stop) or stop
    if error is None:
        return task.result().cost_nano
    return error.cost_nano if isinstance(error, LimnerError) else 0
