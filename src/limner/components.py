"""Settings in; every part of the program out, each built and connected when it is first used.

What one package needs of a sibling is handed over here, as a value. A part that few commands need
is imported where it is built, so that a program loads only what it uses.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast, overload

import msgspec
from msgspec.structs import replace

from limner import illustrator
from limner.dollars import usd_to_nano
from limner.errors import InputInvalid, LimnerError, StorageError
from limner.money.caps import Caps
from limner.net.per_loop import PerLoop
from limner.settings import BudgetSettings, Settings, load
from limner.settings.variables import Variables
from limner.storage.home import Home, shared_folder
from limner.storage.keys import Keys
from limner.tools.base import ApprovalPolicy
from limner.tools.in_flight import InFlight

if TYPE_CHECKING:
    from limner.agent.conversation import Conversations
    from limner.agent.ingress import Ingress
    from limner.agent.personality import Personalities
    from limner.agent.prompt_builder import PromptBuilder
    from limner.agent.quarantine import Quarantine
    from limner.agent.session_export import SessionExporter
    from limner.agent.session_import import SessionImporter
    from limner.agent.sessions import Sessions
    from limner.batches.records import BatchStatus
    from limner.catalogue.images import Size
    from limner.eyes.model import Eyes
    from limner.imaging.pool import Imaging
    from limner.models.base import Model
    from limner.models.registry import KnownModel, Registry
    from limner.money.ledger import Money
    from limner.net.http import Http
    from limner.pictures.deletion import PictureDeleter
    from limner.pictures.fitting import Fitting
    from limner.pictures.gallery import Gallery
    from limner.pictures.gc import GarbageCollector
    from limner.pictures.repair import HomeRepairer
    from limner.pictures.request import ImageRequest
    from limner.pictures.take import Pictures
    from limner.pictures.thumbnails import Thumbnails
    from limner.providers.base import Provider, ProviderSpec
    from limner.providers.choice import Choice
    from limner.rendering.canvas import RenderedDocument
    from limner.rendering.elements import Document
    from limner.rendering.sources import CompiledSource, SourceFormat
    from limner.storage.blobs import BlobStore
    from limner.storage.incoming_files import Incoming
    from limner.storage.store import Store
    from limner.tools.batches import Batches
    from limner.tools.built_in import ToolParts
    from limner.tools.contact_sheet import ContactSheetMaker
    from limner.tools.drawing_arguments import DrawingDefaults
    from limner.tools.generation import ImageGenerator
    from limner.tools.handles import Handles
    from limner.tools.inspection import Inspector
    from limner.tools.output_target import OutputTargets
    from limner.tools.picture_checker import PictureChecker
    from limner.tools.picture_info import PictureInfoReader
    from limner.tools.planning import Planner
    from limner.tools.registry import ToolRegistry
    from limner.tools.rendering import SourceRenderer
    from limner.tools.sources import SourceLoader
    from limner.tools.transformation import PictureTransformer

T = TypeVar("T")


async def _close_quietly(opened: Any) -> None:
    """Close a part; a failure is logged, since it must not hide what the program paid for."""
    try:
        await opened.aclose()
    except (OSError, RuntimeError, MemoryError, LimnerError) as error:
        logger = logging.getLogger("limner")  # here, because most quotes load no `logging`
        logger.warning("A part of limner could not be closed: %s", error)
        logger.debug("It failed here:", exc_info=error)


def utc_now() -> datetime:
    """The time of this machine."""
    return datetime.now(UTC)


class part(cached_property[T]):  # noqa: N801 - used as a decorator, as `property` is
    """A property that is built once, even if several threads ask for it at the same time."""

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...
    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Self | T:
        """Build the part, or wait until another thread has."""
        if instance is None:
            return self
        with instance.building:
            return cast("T", super().__get__(instance, owner))


# The components that pay: a scope has its own.
_PAYING = (
    *("money", "generator", "renderer", "transformer", "inspector", "checker", "picture_info"),
    *("sheets", "conversations", "tool_parts", "_row_registry", "batches"),
)
# The components that open or remember something: a scope uses those of its program.
_SHARED = ("store", "blobs", "imaging", "sessions", "models", "_http", "_incoming")


class Components:
    """The parts of one program. Building them touches neither disk nor network.

    Args:
        settings: how they behave; read from files and environment when left out.
        budget_usd: a cap on everything that is spent through them.
        env: where keys and base addresses come from.
        cwd: what relative paths are relative to.
        clock: the time, for prices that change and models that retire.
        observe: gets one redacted line for each HTTP request and response.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        budget_usd: Decimal | float | str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        clock: Callable[[], datetime] = utc_now,
        observe: Callable[[str], None] | None = None,
    ) -> None:
        self.building = threading.RLock()
        self._variables = Variables(env)
        self.cwd = Path.cwd() if cwd is None else cwd
        if settings is None:
            settings = load(env=os.environ if env is None else env, cwd=self.cwd)
        self.settings = settings
        self.session_id = uuid.uuid4().hex
        self.clock = clock
        self.home = Home(self.settings.home, shared_folder(self.settings.blobs))
        self._caps = _caps(self.settings, budget_usd)
        self._observe = observe
        concurrency = self.settings.images.concurrency
        self._slots = PerLoop(lambda: asyncio.Semaphore(concurrency))
        approval = self.settings.approval
        self._approval = ApprovalPolicy(
            policy=approval.policy, above_nano=usd_to_nano(approval.above_usd)
        )
        self._in_flight = InFlight(self.home.path_locks)
        self._running_batches: dict[str, asyncio.Task[BatchStatus]] = {}
        self._is_scope = False

    # --- storage, money, pictures ---

    @part
    def blobs(self) -> BlobStore:
        """The bytes of pictures: in the home, in a shared folder or in a bucket."""
        from limner.storage.blobs import Blobs

        address = self.settings.blobs
        return Blobs(self.home.blobs) if address is None else self.blobs_at(address)

    def blobs_at(self, address: str) -> BlobStore:
        """The place of an address as in the setting ``blobs``.

        Raises:
            StorageError: the shared folder does not exist, or a variable is wrong.
        """
        if (folder := shared_folder(address)) is not None:
            from limner.storage.blobs import Blobs

            # A folder that is not mounted must not become a folder of this machine.
            if not folder.is_dir():
                raise StorageError(
                    f"The shared folder {str(folder)!r} does not exist.",
                    code="NO_BUCKET",
                    hint="Create or mount it, or correct LIMNER_BLOBS.",
                )
            return Blobs(folder, is_shared=True)
        from limner.storage.object_blobs import ObjectBlobs

        return ObjectBlobs(address, cache=self.home.blob_copies, env=self._variables)

    @part
    def keys(self) -> Keys:
        """The keys of services."""
        return Keys(self.home.keys, env=self._variables)

    @part
    def store(self) -> Store:
        """The database."""
        from limner.storage.store import Store

        return Store(self.home.database, url=self.settings.store)

    @part
    def money(self) -> Money:
        """The ledger."""
        from limner.money.ledger import Money

        return Money(
            self.store,
            caps=self._caps,
            clock=self.clock,
            program=self.session_id,
            # A call says that the budget is short before its time limit ends it.
            wait_s=self.settings.tools.timeout_s * 0.9,
        )

    def adopt_budget(self, budget: BudgetSettings) -> None:
        """Check the next calls against other caps."""
        self.settings = replace(self.settings, budget=budget)
        changed = _caps(self.settings, None)
        self._caps = replace(changed, program_nano=self._caps.program_nano)
        self.money.change_caps(self._caps)

    @part
    def _http(self) -> Http:
        """The HTTP clients."""
        from limner.net.http import Http

        return Http(observe=self._observe)

    @part
    def _incoming(self) -> Incoming:
        """The bytes of pictures that are not verified yet."""
        from limner.storage.incoming_files import Incoming

        return Incoming(self.home.incoming, self.blobs)

    @part
    def imaging(self) -> Imaging:
        """The workers that decode and encode pictures."""
        from limner.imaging.limits import limits_for
        from limner.imaging.pool import Imaging
        from limner.imaging.process import RENDERING_WORKER

        images = self.settings.images
        limits = limits_for(images.max_megapixels)
        return Imaging(accept=images.accept, limits=limits, program=RENDERING_WORKER)

    @part
    def pictures(self) -> Pictures:
        """Takes pictures in and gives them out."""
        from limner.imaging.limits import limits_for
        from limner.pictures.take import Pictures

        return Pictures(
            blobs=self.blobs,
            store=self.store,
            imaging=self.imaging,
            clock=self.clock,
            max_bytes=limits_for(self.settings.images.max_megapixels).max_file_bytes,
        )

    @part
    def fitting(self) -> Fitting:
        """Makes pictures ready for models."""
        from limner.pictures.fitting import Fitting

        images = self.settings.images
        return Fitting(pictures=self.pictures, mode=images.fit, tile=images.tile)

    @part
    def handles(self) -> Handles:
        """Finds pictures by their handles."""
        from limner.tools.handles import Handles

        return Handles(pictures=self.pictures, known=self._session_handles)

    @part
    def picture_info(self) -> PictureInfoReader:
        """Says where a picture comes from."""
        from limner.tools.picture_info import PictureInfoReader

        return PictureInfoReader(pictures=self.pictures, money=self.money, imaging=self.imaging)

    @part
    def gallery(self) -> Gallery:
        """The stored pictures as a person looks for them."""
        from limner.pictures.gallery import Gallery

        return Gallery(store=self.store)

    @part
    def thumbnails(self) -> Thumbnails:
        """Makes small pictures for lists."""
        from limner.pictures.thumbnails import Thumbnails

        return Thumbnails(self.home.thumbnails, blobs=self.blobs, imaging=self.imaging)

    @part
    def deleter(self) -> PictureDeleter:
        """Deletes the pictures that a person names."""
        from limner.pictures.deletion import PictureDeleter

        return PictureDeleter(
            store=self.store,
            blobs=self.blobs,
            thumbnails=self.thumbnails,
            generated=self.home.generated,
            clock=self.clock,
        )

    @part
    def garbage(self) -> GarbageCollector:
        """Removes the pictures that nothing refers to."""
        from limner.pictures.gc import GarbageCollector

        return GarbageCollector(
            store=self.store, blobs=self.blobs, incoming=self._incoming, clock=self.clock
        )

    @part
    def repairer(self) -> HomeRepairer:
        """Checks the database and the stored pictures, and repairs them."""
        from limner.pictures.repair import HomeRepairer

        return HomeRepairer(
            home=self.home, store=self.store, blobs=self.blobs, imaging=self.imaging
        )

    # --- drawing and looking ---

    @part
    def specs(self) -> dict[str, ProviderSpec]:
        """Every provider by name."""
        from limner.providers.specs import all_specs

        return all_specs(embedded=self.settings.images.embedded)

    @part
    def source_loader(self) -> SourceLoader:
        """Loads the pictures that pictures are drawn from."""
        from limner.tools.sources import SourceLoader

        return SourceLoader(pictures=self.pictures, handles=self.handles)

    @part
    def planner(self) -> Planner:
        """Decides who draws a picture, what it costs and where it goes."""
        from limner.tools.planning import Planner

        return Planner(
            source_loader=lambda: self.source_loader,
            specs=lambda: self.specs,
            key_of=self.keys.get,
            approval=self._approval,
            targets=self._targets,
        )

    @part
    def generator(self) -> ImageGenerator:
        """Draws pictures."""
        from limner.tools.generation import ImageGenerator
        from limner.tools.output_file import OutputWriter

        generated = self.home.generated
        return ImageGenerator(
            planner=self.planner,
            connect=self._connect,
            slot=self._slots.get,
            output=OutputWriter(
                pictures=self.pictures,
                generated=generated,
                clock=self.clock,
                metadata=self.settings.images.metadata,
            ),
            incoming=self._incoming,
            money=self.money,
            in_flight=self._in_flight,
            session_id=self.session_id,
            clock=self.clock,
        )

    @part
    def _targets(self) -> OutputTargets:
        """Checks output paths."""
        from limner.tools.output_target import OutputTargets

        return OutputTargets(
            pictures=lambda: self.pictures,
            approval=self._approval,
            generated=self.home.generated,
        )

    @part
    def transformer(self) -> PictureTransformer:
        """Makes new pictures from stored ones."""
        from limner.tools.transformation import PictureTransformer

        generator = self.generator
        return PictureTransformer(
            sources=self.source_loader,
            targets=self._targets,
            output=generator.output,
            in_flight=self._in_flight,
        )

    @part
    def renderer(self) -> SourceRenderer:
        """Renders sources as pictures."""
        from limner.tools.rendering import SourceRenderer

        return SourceRenderer(
            compile=self._compile,
            resolve=self._resolve,
            paint=self._paint,
            generator=self.generator,
        )

    @part
    def eyes(self) -> Eyes:
        """Measures pictures, and answers from what it measured."""
        from limner.eyes.model import Eyes

        async def find_origin(handle: str) -> Mapping[str, object] | None:
            family = await self.pictures.family(handle)
            return None if family is None else family.record.lineage

        async def keep_text(handle: str, rows: Sequence[str]) -> None:
            # The answer is the same if it cannot be found by its text later.
            with suppress(StorageError):
                await self.gallery.keep_text(handle, rows)

        return Eyes(self.imaging, find_origin=find_origin, keep_text=keep_text)

    @part
    def models(self) -> Registry:
        """The models that talk and look."""
        from limner.models.registry import Registry

        roles = self.settings.model_roles
        return Registry(
            key_of=self.keys.get,
            env=self._variables,
            roles={"vision": roles.vision, "default": roles.default},
            own=self.settings.models,
            embedded=self.settings.images.embedded,
            today=lambda: self.clock().date(),
        )

    @part
    def inspector(self) -> Inspector:
        """Answers questions about pictures."""
        from limner.imaging.formats import accepted_formats
        from limner.tools.answer_cache import AnswerCache
        from limner.tools.inspection import TOOL, Inspector
        from limner.tools.picture_loader import PictureLoader, max_input_bytes

        images = self.settings.images
        return Inspector(
            registry=self.models,
            connect=partial(self._model, kind=TOOL),
            loader=PictureLoader(
                pictures=self.pictures,
                handles=self.handles,
                fitting=self.fitting,
                accept=accepted_formats(images.accept),
                auto_resize=images.auto_resize,
                max_bytes=max_input_bytes(images.max_megapixels),
            ),
            money=self.money,
            approval=self._approval,
            cache=AnswerCache(store=self.store, clock=self.clock),
            caches=images.cache_answers,
            in_flight=self._in_flight,
            block_images=images.block_images,
            timeout_s=self.settings.tools.timeout_s,
            session_id=self.session_id,
        )

    @part
    def checker(self) -> PictureChecker:
        """Checks pictures against references and criteria."""
        from limner.tools.picture_checker import PictureChecker

        generator = self.generator
        return PictureChecker(
            sources=self.source_loader,
            targets=self._targets,
            output=generator.output,
            imaging=self.imaging,
            eyes=self.eyes,
            inspector=self.inspector,
            in_flight=self._in_flight,
        )

    @part
    def drawing_defaults(self) -> DrawingDefaults:
        """Who draws if a call does not say."""
        from limner.tools.drawing_arguments import DrawingDefaults

        images = self.settings.images
        return DrawingDefaults(provider=images.provider, fallback=images.fallback)

    @part
    def tool_parts(self) -> ToolParts:
        """What the built-in tools work with."""
        from limner.tools.built_in import ToolParts

        return ToolParts(
            generator=self.generator,
            inspector=self.inspector,
            renderer=self.renderer,
            transformer=self.transformer,
            checker=lambda: self.checker,
            defaults=self.drawing_defaults,
            pictures=self.pictures,
            handles=self.handles,
            batches=lambda: self.batches,
        )

    @part
    def _row_registry(self) -> ToolRegistry:
        """The tools that a row of a batch can call."""
        from limner.tools.built_in import built_in_tools
        from limner.tools.registry import ToolRegistry

        return ToolRegistry(
            [tool for tool in built_in_tools(self.tool_parts) if tool.name != "image_batch"],
            concurrency=self.settings.images.concurrency,
            timeout_s=self.settings.tools.timeout_s,
        )

    @part
    def batches(self) -> Batches:
        """Runs batches of tool calls."""
        from limner.batches.cheap_lane import CheapLane, LaneCalls
        from limner.batches.queue import BatchQueue
        from limner.batches.runner import BatchRunner, RowCalls
        from limner.storage.reach import Reach
        from limner.tools.batch_calls import BatchCalls
        from limner.tools.batches import Batches
        from limner.tools.lane_calls import RemoteRowCalls

        queue = BatchQueue(store=self.store, clock=self.clock)
        calls = BatchCalls(
            registry=self._row_registry,
            generator=self.generator,
            money=self.money,
            reach=lambda: Reach.for_person(home=self.home),
            key_of=self._provider_key,
        )
        runner = BatchRunner(
            queue=queue,
            money=self.money,
            calls=RowCalls(run=calls.run, recover=calls.recover, key_hash=calls.key_hash),
            concurrency=self.settings.images.concurrency,
        )
        remote = RemoteRowCalls(
            calls=calls,
            generator=self.generator,
            inspector=self.inspector,
            money=self.money,
            defaults=self.tool_parts.defaults,
        )
        lane = CheapLane(
            queue=queue,
            money=self.money,
            calls=LaneCalls(
                prepare=remote.prepare,
                connect=remote.connect,
                accept=remote.accept,
                recover=calls.recover,
            ),
            status=runner.status,
        )
        return Batches(
            queue=queue,
            runner=runner,
            lane=lane,
            calls=calls,
            remote=remote,
            approval=self._approval,
            running=self._running_batches,
        )

    @part
    def sheets(self) -> ContactSheetMaker:
        """Puts pictures on contact sheets."""
        from limner.tools.contact_sheet import ContactSheetMaker

        return ContactSheetMaker(
            generator=self.generator,
            imaging=self.imaging,
            defaults=self.drawing_defaults,
            in_flight=self._in_flight,
        )

    # --- conversations ---

    @part
    def ingress(self) -> Ingress:
        """Takes in the pictures of a conversation."""
        from limner.agent.ingress import Ingress

        return Ingress(pictures=self.pictures)

    @part
    def quarantine(self) -> Quarantine:
        """Remembers the pictures that a model's service refused."""
        from limner.agent.quarantine import Quarantine

        return Quarantine(store=self.store, clock=self.clock)

    @part
    def prompts(self) -> PromptBuilder:
        """Builds what a model is sent."""
        from limner.agent.prompt_builder import PromptBuilder

        images = self.settings.images
        return PromptBuilder(
            store=self.store,
            # In a conversation a model that wants to see more asks `inspect_image` for a region.
            fitting=replace(self.fitting, tile="off"),
            block_images=images.block_images,
            auto_resize=images.auto_resize,
        )

    @part
    def sessions(self) -> Sessions:
        """The stored conversations."""
        from limner.agent.sessions import Sessions

        return Sessions(store=self.store, clock=self.clock)

    @part
    def personalities(self) -> Personalities:
        """Who a model can be."""
        from limner.agent.personality import Personalities

        return Personalities(self.home.personalities)

    @part
    def conversations(self) -> Conversations:
        """Starts and opens conversations."""
        from limner.agent.compaction import Compactor
        from limner.agent.conversation import Conversations
        from limner.agent.loop import TurnParts
        from limner.agent.model_call import TOOL, ModelCaller
        from limner.agent.turn_config import TurnConfigBuilder

        agent = self.settings.agent
        caller = ModelCaller(
            prompts=self.prompts,
            quarantine=self.quarantine,
            money=self.money,
            approval=self._approval,
            connect=partial(self._model, kind=TOOL),
            in_flight=self._in_flight,
        )
        return Conversations(
            sessions=self.sessions,
            turn_configs=TurnConfigBuilder(
                registry=self.models,
                personalities=self.personalities,
                approval=self._approval,
                home=self.home,
                personality=agent.personality,
                sandbox=agent.sandbox,
                max_requests=agent.max_requests,
                max_calls=agent.max_calls,
            ),
            parts=TurnParts(
                model_caller=caller,
                compactor=Compactor(model_caller=caller, prompts=self.prompts, at=agent.compact_at),
                money=self.money,
                drawn_here=self.pictures.drawn_here,
                ingress=self.ingress,
            ),
        )

    @part
    def importer(self) -> SessionImporter:
        """Makes sessions of rollout files."""
        from limner.agent.session_import import SessionImporter

        return SessionImporter(sessions=self.sessions, ingress=self.ingress)

    @part
    def exporter(self) -> SessionExporter:
        """Writes sessions as rollout files."""
        from limner.agent.session_export import SessionExporter

        return SessionExporter(pictures=self.pictures)

    # --- the whole ---

    def scoped(self, name: str, *, budget_usd: Decimal | float | str | None) -> Components:
        """The same components, but the calls made through them count for a scope as well.

        Raises:
            InputInvalid: this is a scope, the name is blank, or the budget is not an amount.
        """
        from copy import copy

        if self._is_scope or not name.strip():
            what = "A scope has no scopes." if self._is_scope else "A scope needs a name."
            raise InputInvalid(what, field="scope")
        money = self.money.scoped(name, cap_nano=_nano(budget_usd))
        # Both share these, so they must exist before the copy.
        for shared in _SHARED:
            getattr(self, shared)
        child = copy(self)
        for own in _PAYING:
            vars(child).pop(own, None)
        vars(child)["money"] = money
        child._is_scope = True
        return child

    def warm(self) -> None:
        """Do now what the first request in this event loop would wait for: read certificates."""
        self._http.client()

    async def aclose(self) -> None:
        """Wait for calls in flight, then stop the workers and close connections and database.

        A scope leaves all of this to the components that it is a part of.
        """
        if self._is_scope:
            return
        try:
            if self._running_batches:  # of this program or one of its scopes
                await self.batches.aclose()
            await self._in_flight.aclose()
        finally:
            async with AsyncExitStack() as last:
                for name in ("store", "sessions", "_http", "imaging"):
                    if name in vars(self):
                        last.push_async_callback(_close_quietly, vars(self)[name])

    def _connect(self, choice: Choice) -> Provider:
        from limner.providers.base import Connection
        from limner.providers.specs import ILLUSTRATOR

        spec = choice.spec
        if spec is ILLUSTRATOR:
            from limner.providers.illustrator import Illustrator

            # Without a connection, which loads the HTTP library and the trusted certificates.
            return Illustrator(self._illustrate)
        base_url = self._variables.get(spec.base_url_env) if spec.base_url_env else ""
        found = {name: self._variables.get(name) for name in spec.variables}
        return spec.build(
            Connection(
                http=self._http.client(),
                base_url=(base_url.strip() or spec.base_url).rstrip("/"),
                key=choice.key,
                illustrate=self._illustrate,
                timeout_s=self.settings.services.timeout_s,
                variables={name: value for name, value in found.items() if value},
            )
        )

    def _provider_key(self, provider: str) -> str | None:
        """The key of a provider that draws or answers; None if it needs none, or has none."""
        if (spec := self.specs.get(provider)) is not None:
            return None if spec.key_env is None else self.keys.get(spec.key_env)
        models = (model for model in self.models.known() if model.provider == provider)
        return next((self.models.key(model) for model in models), None)

    def _model(self, model: KnownModel, *, kind: str) -> Model:
        from limner.models.registry import EYES, OFFLINE

        if model.name == EYES:
            from limner.eyes.model import EyesModel

            return EyesModel(self.eyes)
        if model.name == OFFLINE:
            from limner.models import offline

            return offline.OfflineModel()
        from limner.models.remote import RemoteModel

        key = self.models.key(model) or ""
        return RemoteModel(
            model,
            http=self._http.client(),
            key=key,
            kind=kind,
            request_timeout_s=self.settings.services.timeout_s,
        )

    async def _session_handles(self, session_id: str | None) -> list[str]:
        named = session_id or self.session_id
        rows = await self.store.read(lambda tx: tx.all("session_pictures", id=named))
        return [row["handle"] for row in rows]

    async def _compile(
        self, source: str, kind: SourceFormat | None, size: Size | None
    ) -> CompiledSource:
        from limner.rendering.sources import compile_source

        return await compile_source(source, kind=kind, size=size, imaging=self.imaging)

    async def _illustrate(
        self, request: ImageRequest
    ) -> tuple[bytes, Mapping[str, object], Mapping[str, object] | None]:
        if request.sources:
            from limner.tools.drawing_edit import DrawingEditor

            editor = DrawingEditor(
                pictures=self.pictures, imaging=self.imaging, compile=self._compile
            )
            return await editor.edit(request)
        loop = asyncio.get_running_loop()

        def lay_out(
            document: Document, size: tuple[int, int], largest_text: float
        ) -> RenderedDocument:
            from limner.rendering.sources import lay_out as in_worker

            job = in_worker(document, size, largest_text, imaging=self.imaging)
            return asyncio.run_coroutine_threadsafe(job, loop).result()

        drawing = await asyncio.to_thread(
            illustrator.illustrate,
            prompt=request.prompt,
            svg=request.svg,
            width=request.width,
            height=request.height,
            seed=request.seed,
            lay_out=lay_out,
        )
        png = await self.imaging.render_svg(
            drawing.svg,
            width=request.width,
            height=request.height,
            assets=drawing.assets,
            squares=drawing.squares,
        )
        return png, drawing.facts, drawing.kept and msgspec.to_builtins(drawing.kept)

    async def _paint(self, source: CompiledSource) -> bytes:
        from limner.pictures.request import ImageRequest

        request = ImageRequest(
            prompt="", model="", svg=source.svg, width=source.width, height=source.height
        )
        return (await self._illustrate(request))[0]

    async def _resolve(self, source: CompiledSource) -> bytes:
        width, height = source.width, source.height
        drawing = await asyncio.to_thread(
            illustrator.illustrate,
            prompt="",
            svg=source.svg,
            seed=None,
            width=width,
            height=height,
        )
        return await self.imaging.resolve_svg(
            drawing.svg, assets=drawing.assets, width=width, height=height
        )


def _caps(settings: Settings, budget_usd: Decimal | float | str | None) -> Caps:
    budget = settings.budget
    return Caps(
        call_nano=_nano(budget.call_usd),
        session_nano=_nano(budget.session_usd),
        program_nano=_nano(budget_usd),
        day_nano=_nano(budget.day_usd),
    )


def _nano(usd: Decimal | float | str | None) -> int | None:
    return None if usd is None else usd_to_nano(usd)
