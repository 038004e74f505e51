"""`Limner`, the composition root: Settings in; everything built, connected and ready out."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from limner import illustrator
from limner.catalogue.vision import vision_model
from limner.content import Picture
from limner.imaging.fit import Region
from limner.imaging.pool import Imaging
from limner.money.amounts import usd_to_nano
from limner.money.ledger import Caps, JobRow, Money
from limner.net.http import Http
from limner.net.loops import PerLoop
from limner.pictures.fitting import FittedImage, Fitting
from limner.pictures.order import ImageRequest, Progress
from limner.pictures.take import Pictures
from limner.providers.base import Connection, Provider, all_specs
from limner.providers.choose import Choice
from limner.settings import Settings, load
from limner.storage.blobs import Blobs
from limner.storage.home import Home
from limner.storage.keys import Keys
from limner.storage.reach import Reach
from limner.storage.store import Store
from limner.tools.arguments import check
from limner.tools.base import Question, Tool, ToolContext, ask_nobody, tell_nobody
from limner.tools.consent import Approval
from limner.tools.drawing import Drawing
from limner.tools.image_generate import SCHEMA, image_generate, read_order
from limner.tools.landing import GeneratedImage, Landing
from limner.tools.ordering import Order, Plan, Planner
from limner.tools.recovery import recover
from limner.tools.registry import ToolRegistry
from limner.tools.under_way import UnderWay


def _now() -> datetime:
    return datetime.now(UTC)


class Limner:
    """Pictures for a program: makes them, keeps them, counts what they cost.

    Building one touches neither disk nor network. Use it as ``async with limner.Limner() as lim``
    so that its helpers are stopped at the end; the same object may be used from several event
    loops.

    Args:
        settings: how it behaves; read from files and environment when left out.
        budget_usd: a cap on everything this object spends.
        env: where keys and base addresses come from.
        cwd: what relative paths are relative to.
        clock: the time, for prices that change and models that retire.
        observe: gets one redacted line for each HTTP request and answer.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        budget_usd: Decimal | float | str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        clock: Callable[[], datetime] = _now,
        observe: Callable[[str], None] | None = None,
    ) -> None:
        self.env = os.environ if env is None else env
        self.cwd = Path.cwd() if cwd is None else cwd
        self.settings = load(env=self.env, cwd=self.cwd) if settings is None else settings
        self.session_id = uuid.uuid4().hex
        self.clock = clock
        self.home = home = Home(self.settings.home)
        images, approval = self.settings.images, self.settings.approval
        self.keys = Keys(home.keys, env=self.env)
        self.specs = all_specs(embedded=images.embedded)
        self.store = Store(home.database)
        self.money = Money(self.store, caps=_caps(self.settings, budget_usd), clock=clock)
        self.imaging = Imaging()
        self.pictures = Pictures(
            blobs=Blobs(home.blobs), store=self.store, imaging=self.imaging, clock=clock
        )
        self.fitting = Fitting(pictures=self.pictures, mode=images.fit, tile=images.tile)
        self._http = Http(observe=observe)
        self._turns = PerLoop(lambda: asyncio.Semaphore(images.concurrency))
        self.drawing = Drawing(
            planner=Planner(
                specs=self.specs,
                key_of=self.keys.get,
                approval=Approval(
                    policy=approval.policy, above_nano=usd_to_nano(approval.above_usd)
                ),
                generated=home.generated,
            ),
            connect=self._connect,
            turn=self._turns.get,
            landing=Landing(pictures=self.pictures, generated=home.generated, clock=clock),
            money=self.money,
            under_way=UnderWay(),
            session_id=self.session_id,
            clock=clock,
        )

    async def generate(
        self,
        prompt: str,
        *,
        progress: Callable[[Progress], None] = tell_nobody,
        ask: Callable[[Question], Awaitable[bool]] = ask_nobody,
        **arguments: Any,
    ) -> GeneratedImage:
        """Draw one picture; takes the arguments of the tool `image_generate`.

        Raises:
            LimnerError: with code, retryable, billed and cost.
        """
        order = self._order(prompt, arguments)
        return await self.drawing.draw(order, self.person(progress=progress, ask=ask))

    async def quote(self, prompt: str, **arguments: Any) -> Plan:
        """What `generate` would do with the same arguments, and what it would cost, for free."""
        order = self._order(prompt, arguments)
        return await self.drawing.planner.plan(order, self.person(), today=self.clock().date())

    async def recover(
        self, job: JobRow, *, progress: Callable[[Progress], None] = tell_nobody
    ) -> GeneratedImage | None:
        """Bring in the picture of an unfinished job, or None where its service cannot be asked."""
        return await recover(job, self.drawing, progress=progress)

    async def fit(
        self,
        path: str | Path,
        *,
        model: str | None = None,
        region: Region | None = None,
        page: int = 1,
    ) -> FittedImage:
        """A picture file as a model should get it, and what looking at it costs that model.

        Raises:
            InputInvalid: nobody knows the model.
            ImageError: the file is no picture, or the region lies outside it.
            ReachDenied: the path is below the floor.
            StorageError: the file cannot be read.
        """
        seer = None if model is None else vision_model(model)
        picture = await self.take(path)
        return await self.fitting.fit(picture, model=seer, region=region, page=page)

    async def take(self, path: str | Path) -> Picture:
        """Take in a picture file that a person named; the file stays as it is.

        Raises:
            LimnerError: as `fit`.
        """
        return await self.pictures.take_file(self._person_reach.resolve_read(path, cwd=self.cwd))

    def tools(self) -> list[Tool]:
        """The tools a model can call."""
        return [image_generate(self.drawing, default_provider=self.settings.images.provider)]

    def registry(self) -> ToolRegistry:
        """The tools, ready to be called in parallel."""
        tools = self.settings.tools
        return ToolRegistry(self.tools(), timeout_s=tools.timeout_s)

    def person(
        self,
        *,
        progress: Callable[[Progress], None] = tell_nobody,
        ask: Callable[[Question], Awaitable[bool]] = ask_nobody,
    ) -> ToolContext:
        """The context of a call that a person typed: only the floor bounds its paths."""
        return ToolContext(
            cwd=self.cwd,
            reach=self._person_reach,
            progress=progress,
            ask=ask,
        )

    @cached_property
    def _person_reach(self) -> Reach:
        # Looked up once: finding the places of the floor reads some two hundred folder entries.
        return Reach.for_person(home=self.home.folder)

    async def aclose(self) -> None:
        """Wait for pictures under way, then stop the workers and close connections and database."""
        async with AsyncExitStack() as last:
            last.push_async_callback(self.store.aclose)
            last.push_async_callback(self._http.aclose)
            last.push_async_callback(self.imaging.aclose)
            await self.drawing.under_way.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _order(self, prompt: str, arguments: Mapping[str, Any]) -> Order:
        given = {"prompt": prompt, **{k: v for k, v in arguments.items() if v is not None}}
        check(SCHEMA, given)
        return read_order(given, default_provider=self.settings.images.provider)

    def _connect(self, choice: Choice) -> Provider:
        spec = choice.spec
        base_url = self.env.get(spec.base_url_env, "") if spec.base_url_env else ""
        return spec.build(
            Connection(
                http=self._http.client(),
                base_url=(base_url.strip() or spec.base_url).rstrip("/"),
                key=choice.key,
                illustrate=self._illustrate,
            )
        )

    async def _illustrate(self, request: ImageRequest) -> tuple[bytes, Mapping[str, Any]]:
        drawing = await asyncio.to_thread(
            illustrator.illustrate,
            prompt=request.prompt,
            svg=request.svg,
            width=request.width,
            height=request.height,
            seed=request.seed,
        )
        png = await self.imaging.render_svg(
            drawing.svg, width=request.width, height=request.height, assets=drawing.assets
        )
        return png, drawing.facts


def create_image_tools(lim: Limner | None = None) -> list[Tool]:
    """The picture tools as a list, for a registry of your own."""
    return (Limner() if lim is None else lim).tools()


def _caps(settings: Settings, budget_usd: Decimal | float | str | None) -> Caps:
    def nano(usd: Any) -> int | None:
        return None if usd is None else usd_to_nano(usd)

    budget = settings.budget
    limits = [cap for cap in (nano(budget.session_usd), nano(budget_usd)) if cap is not None]
    return Caps(
        call_nano=nano(budget.call_usd),
        session_nano=min(limits, default=None),
        day_nano=nano(budget.day_usd),
    )
