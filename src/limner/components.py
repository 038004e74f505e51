"""Settings in; every part of the program built and connected out.

What one package needs of a sibling is handed over here, as a value.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from limner import eyes, illustrator
from limner.agent.compaction import Compactor
from limner.agent.conversation import Conversations
from limner.agent.gc import GarbageCollector
from limner.agent.ingress import Ingress
from limner.agent.loop import TurnParts
from limner.agent.model_call import TOOL as CONVERSATION
from limner.agent.model_call import ModelCaller
from limner.agent.personality import Personalities
from limner.agent.prompt_builder import PromptBuilder
from limner.agent.quarantine import Quarantine
from limner.agent.session_export import SessionExporter
from limner.agent.session_import import SessionImporter
from limner.agent.sessions import Sessions
from limner.agent.turn_config import TurnConfigBuilder
from limner.dollars import usd_to_nano
from limner.imaging.formats import accepted_formats
from limner.imaging.pool import Imaging
from limner.models import offline
from limner.models.base import Model
from limner.models.registry import EYES, OFFLINE, KnownModel, Registry
from limner.models.remote import RemoteModel
from limner.money.ledger import Caps, Money
from limner.net.http import Http
from limner.net.per_loop import PerLoop
from limner.pictures.fitting import Fitting
from limner.pictures.request import ImageRequest
from limner.pictures.take import Pictures
from limner.providers.base import Connection, Provider, ProviderSpec
from limner.providers.choice import Choice
from limner.providers.specs import all_specs
from limner.settings import Settings, load
from limner.storage.blobs import Blobs
from limner.storage.home import Home
from limner.storage.keys import Keys
from limner.storage.store import Store
from limner.tools.answer_cache import AnswerCache
from limner.tools.base import ApprovalPolicy
from limner.tools.generation import ImageGenerator
from limner.tools.handles import Handles
from limner.tools.in_flight import InFlight
from limner.tools.inspection import TOOL as INSPECT
from limner.tools.inspection import Inspector
from limner.tools.output_file import OutputWriter
from limner.tools.picture_info import PictureInfoReader
from limner.tools.picture_loader import PictureLoader
from limner.tools.planning import Planner
from limner.tools.sources import SourceLoader


def _now() -> datetime:
    return datetime.now(UTC)


class Components:
    """The parts of one program. Building them touches neither disk nor network.

    Args:
        settings: how they behave; read from files and environment when left out.
        budget_usd: a cap on everything that is spent through them.
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
        self.store = Store(home.database)
        self.money = Money(self.store, caps=_caps(self.settings, budget_usd), clock=clock)
        self.imaging = Imaging(accept=images.accept)
        blobs = Blobs(home.blobs)
        self.pictures = Pictures(blobs=blobs, store=self.store, imaging=self.imaging, clock=clock)
        self.fitting = Fitting(pictures=self.pictures, mode=images.fit, tile=images.tile)
        self._http = Http(observe=observe)
        self._slots = PerLoop(lambda: asyncio.Semaphore(images.concurrency))
        self._consent = ApprovalPolicy(
            policy=approval.policy, above_nano=usd_to_nano(approval.above_usd)
        )
        self._in_flight = InFlight()
        roles = self.settings.model_roles
        self.models = Registry(
            key_of=self.keys.get,
            env=self.env,
            roles={"vision": roles.vision, "default": roles.default},
            own=self.settings.models,
            embedded=images.embedded,
            today=lambda: clock().date(),
        )
        self.handles = Handles(pictures=self.pictures, known=self._session_handles)
        self.drawing = self._build_drawing()
        self.looking = self._build_looking()
        self.ingress = Ingress(pictures=self.pictures)
        self.quarantine = Quarantine(store=self.store, clock=clock)
        self.requests = self._build_prompts()
        self.sessions = Sessions(store=self.store, clock=clock)
        self.personalities = Personalities(home.personalities)
        self.conversations = self._build_conversations()
        self.importing = SessionImporter(
            sessions=self.sessions, ingress=self.ingress, pictures=self.pictures
        )
        self.exporting = SessionExporter(pictures=self.pictures)
        self.garbage = GarbageCollector(store=self.store, blobs=blobs, clock=clock)
        self.showing = PictureInfoReader(
            pictures=self.pictures, money=self.money, imaging=self.imaging
        )

    @cached_property
    def specs(self) -> dict[str, ProviderSpec]:
        """Every provider by name."""
        # Loaded when something is to be drawn: a conversation alone needs none of their modules.
        return all_specs(embedded=self.settings.images.embedded)

    def _build_drawing(self) -> ImageGenerator:
        generated = self.home.generated
        return ImageGenerator(
            planner=Planner(
                sourcing=SourceLoader(pictures=self.pictures, handles=self.handles),
                specs=lambda: self.specs,
                key_of=self.keys.get,
                approval=self._consent,
                generated=generated,
            ),
            connect=self._connect,
            slot=self._slots.get,
            output=OutputWriter(
                pictures=self.pictures,
                generated=generated,
                clock=self.clock,
                metadata=self.settings.images.metadata,
            ),
            money=self.money,
            in_flight=self._in_flight,
            session_id=self.session_id,
            clock=self.clock,
        )

    def _build_looking(self) -> Inspector:
        images = self.settings.images
        return Inspector(
            registry=self.models,
            connect=partial(self._model, kind=INSPECT),
            viewing=PictureLoader(
                pictures=self.pictures,
                handles=self.handles,
                fitting=self.fitting,
                accept=accepted_formats(images.accept),
                auto_resize=images.auto_resize,
            ),
            money=self.money,
            approval=self._consent,
            cache=AnswerCache(store=self.store, clock=self.clock) if images.cache_answers else None,
            in_flight=self._in_flight,
            block_images=images.block_images,
            timeout_s=self.settings.tools.timeout_s,
            session_id=self.session_id,
        )

    def _build_prompts(self) -> PromptBuilder:
        images = self.settings.images
        return PromptBuilder(
            store=self.store,
            # In a conversation a model that wants to see more asks `inspect_image` for a region.
            fitting=replace(self.fitting, tile="off"),
            block_images=images.block_images,
            auto_resize=images.auto_resize,
        )

    def _build_conversations(self) -> Conversations:
        agent = self.settings.agent
        model_caller = ModelCaller(
            prompts=self.requests,
            quarantine=self.quarantine,
            money=self.money,
            approval=self._consent,
            connect=partial(self._model, kind=CONVERSATION),
            in_flight=self._in_flight,
        )
        return Conversations(
            sessions=self.sessions,
            standings=TurnConfigBuilder(
                registry=self.models,
                personalities=self.personalities,
                approval=self._consent,
                home=self.home.folder,
                personality=agent.personality,
                sandbox=agent.sandbox,
                max_requests=agent.max_requests,
                max_calls=agent.max_calls,
            ),
            parts=TurnParts(
                model_caller=model_caller,
                compaction=Compactor(
                    model_caller=model_caller, prompts=self.requests, at=agent.compact_at
                ),
                money=self.money,
                drawn_here=self.pictures.drawn_here,
            ),
        )

    def warm(self) -> None:
        """Make what the first request in this event loop would wait for: reading certificates."""
        self._http.client()

    async def aclose(self) -> None:
        """Wait for calls in flight, then stop the workers and close connections and database."""
        async with AsyncExitStack() as last:
            last.push_async_callback(self.store.aclose)
            last.push_async_callback(self.sessions.aclose)
            last.push_async_callback(self._http.aclose)
            last.push_async_callback(self.imaging.aclose)
            await self._in_flight.aclose()

    def _connect(self, choice: Choice) -> Provider:
        spec = choice.spec
        base_url = self.env.get(spec.base_url_env, "") if spec.base_url_env else ""
        return spec.build(
            Connection(
                http=self._http.client(),
                base_url=(base_url.strip() or spec.base_url).rstrip("/"),
                key=choice.key,
                illustrate=self._illustrate,
                variables={name: self.env[name] for name in spec.variables if name in self.env},
            )
        )

    def _model(self, model: KnownModel, *, kind: str) -> Model:
        if model.name == EYES:
            return eyes.EyesModel(eyes.Eyes(self.imaging))
        if model.name == OFFLINE:
            return offline.OfflineModel()
        key = self.models.key(model) or ""
        return RemoteModel(model, http=self._http.client(), key=key, kind=kind)

    async def _session_handles(self, session_id: str | None) -> list[str]:
        named = session_id or self.session_id
        rows = await self.store.read(lambda tx: tx.all("session_pictures", id=named))
        return [row["handle"] for row in rows]

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
