"""`Limner`: the calls of a program -> the parts that do the work."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import cache, cached_property, partial
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    ParamSpec,
    Self,
    TypeVar,
    Unpack,
    cast,
    get_origin,
    overload,
)

import msgspec
from msgspec.structs import replace

from limner.components import Components, part, utc_now
from limner.content import Picture
from limner.dollars import usd_to_nano
from limner.errors import ImageError
from limner.pictures.request import Progress
from limner.settings import BudgetSettings, Settings
from limner.storage.reach import Reach
from limner.tools.base import (
    ApprovalPolicy,
    Question,
    Tool,
    ToolContext,
    answer_no,
    ignore_progress,
)

if TYPE_CHECKING:
    from limner.agent.session_export import ExportedSession
    from limner.agent.session_import import ImportedSession
    from limner.batches.records import BatchStatus
    from limner.eyes.evidence import Evidence
    from limner.imaging.fit import Region
    from limner.money.records import JobRow, Spend
    from limner.pictures.fitting import FittedImage
    from limner.pictures.gc import FreedSpace
    from limner.tools.contact_sheet import ContactSheet
    from limner.tools.drawing_arguments import (
        CallerOptions,
        DrawingArguments,
        Order,
    )
    from limner.tools.function_tools import FunctionTool, ToolOptions
    from limner.tools.image_input import ImageInput
    from limner.tools.inspection import Inspection
    from limner.tools.options import (
        CheckOptions,
        EditOptions,
        GenerateOptions,
        InspectOptions,
        RenderOptions,
        SheetOptions,
        TransformOptions,
    )
    from limner.tools.output_file import GeneratedImage
    from limner.tools.picture_check import PictureCheck
    from limner.tools.picture_info import PictureInfo
    from limner.tools.picture_set import PictureSet
    from limner.tools.planning import Plan
    from limner.tools.registry import ToolRegistry
    from limner.tools.transformation import TransformedImage
    from limner.wires.items import PictureWithPath

S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")
_HOOKS = ("progress", "ask")


def _forward(of: cached_property[T]) -> cached_property[T]:
    """A part of the components as an attribute of `Limner`."""
    get = attrgetter(f"components.{of.func.__name__}")
    return cast("cached_property[T]", property(get, doc=of.func.__doc__))


class StoredPicture:
    """A picture that limner stores. Making one reads nothing; the calls do."""

    def __init__(self, lim: Limner, handle: str) -> None:
        self._lim = lim
        self.handle = handle

    def __repr__(self) -> str:
        return f"StoredPicture({self.handle!r})"

    @property
    def path(self) -> Path:
        """The file with its bytes, to copy from; it must not be changed.

        If the pictures of this home are in a bucket, it is a copy, and this call may fetch it.
        """
        return self._lim.components.blobs.local_path(self.handle)

    async def bytes(self) -> bytes:
        """Its bytes, as they were received.

        Raises:
            NotFound: no picture with this handle is stored here.
            StorageError: they cannot be read.
        """
        lim = self._lim
        return await lim.pictures.original(await lim.pictures.recall(self.handle))

    async def fit(
        self, *, model: str | None = None, region: Region | None = None, page: int = 1
    ) -> FittedImage:
        """It as a model should get it; as `Limner.fit`.

        Raises:
            LimnerError: as `Limner.fit`.
        """
        return await self._lim.fit(self.handle, model=model, region=region, page=page)

    async def info(self) -> PictureInfo:
        """What is known about it: its type and size, where it comes from, what was paid for it.

        Raises:
            NotFound: no picture with this handle is stored here.
            StorageError: its bytes cannot be read.
        """
        return await self._lim.picture_info.show(self.handle, self._lim.person())


class Limner:
    """Pictures for a program: draws them, looks at them, stores them, counts what they cost.

    Use it as ``async with limner.Limner() as lim`` so that its workers are stopped at the end. One
    object may be used from several event loops. Building one touches neither disk nor network.

    Args:
        settings: how it behaves; read from files and environment when left out.
        budget_usd: a cap on everything this object spends, its agents and scopes included.
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
        self.components = parts = Components(
            settings, budget_usd=budget_usd, env=env, cwd=cwd, clock=clock, observe=observe
        )
        self.cwd, self.clock = parts.cwd, parts.clock
        self.settings, self.home, self.session_id = parts.settings, parts.home, parts.session_id

    def __repr__(self) -> str:
        return f"<Limner home={str(self.home.folder)!r} cwd={str(self.cwd)!r}>"

    # For the front ends; a program has no use for them, nor for the parts below.
    _internal = frozenset(
        {"components", "conversation_registry", "conversation_tools", "person"}
        | {"read_audio", "take_with_path"}
        | {"draw", "plan", "recover"}
        | {"delivered_file", "job_state", "close_job", "adopt_budget"}
    )

    def __dir__(self) -> list[str]:
        parts = {name for name in vars(type(self)) if isinstance(vars(Components).get(name), part)}
        return sorted({*super().__dir__(), *vars(self)} - parts - self._internal)

    batches = _forward(Components.batches)
    checker = _forward(Components.checker)
    conversations = _forward(Components.conversations)
    deleter = _forward(Components.deleter)
    exporter = _forward(Components.exporter)
    eyes = _forward(Components.eyes)
    fitting = _forward(Components.fitting)
    gallery = _forward(Components.gallery)
    garbage = _forward(Components.garbage)
    generator = _forward(Components.generator)
    handles = _forward(Components.handles)
    imaging = _forward(Components.imaging)
    importer = _forward(Components.importer)
    ingress = _forward(Components.ingress)
    inspector = _forward(Components.inspector)
    keys = _forward(Components.keys)
    models = _forward(Components.models)
    money = _forward(Components.money)
    personalities = _forward(Components.personalities)
    picture_info = _forward(Components.picture_info)
    pictures = _forward(Components.pictures)
    planner = _forward(Components.planner)
    prompts = _forward(Components.prompts)
    quarantine = _forward(Components.quarantine)
    renderer = _forward(Components.renderer)
    repairer = _forward(Components.repairer)
    sessions = _forward(Components.sessions)
    sheets = _forward(Components.sheets)
    specs = _forward(Components.specs)
    store = _forward(Components.store)
    thumbnails = _forward(Components.thumbnails)
    transformer = _forward(Components.transformer)

    @overload
    async def generate(
        self, prompt: str, *, n: None = None, **options: Unpack[GenerateOptions]
    ) -> GeneratedImage: ...

    @overload
    async def generate(
        self, prompt: str, *, n: int, **options: Unpack[GenerateOptions]
    ) -> list[GeneratedImage]: ...

    async def generate(
        self, prompt: str, *, n: int | None = None, **options: Unpack[GenerateOptions]
    ) -> GeneratedImage | list[GeneratedImage]:
        """Draw a picture, or with ``n`` (1 to 10) a list of pictures; ``n=1`` is a list of one.

        Takes the arguments of the tool `image_generate`. If some pictures of a list fail, the list
        is shorter, and ``extras["failed"]`` of the first says why.

        Raises:
            LimnerError: nothing was drawn; it has code, retryable, billed and cost.
            TypeError: there is no such option.
        """
        from limner.tools.built_in.image_generate import GenerateArguments

        given = {"prompt": prompt, "n": n, **options}
        return await self._draw("generate", GenerateArguments, given)

    @overload
    async def edit(
        self, image: ImageInput, prompt: str, *, n: None = None, **options: Unpack[EditOptions]
    ) -> GeneratedImage: ...

    @overload
    async def edit(
        self, image: ImageInput, prompt: str, *, n: int, **options: Unpack[EditOptions]
    ) -> list[GeneratedImage]: ...

    async def edit(
        self,
        image: ImageInput,
        prompt: str,
        *,
        n: int | None = None,
        **options: Unpack[EditOptions],
    ) -> GeneratedImage | list[GeneratedImage]:
        """Change a picture, or draw from pictures; with ``n`` (1 to 10) a list of pictures.

        Takes the arguments of the tool `image_edit`, and answers as `generate`.

        Raises:
            LimnerError: nothing was drawn; it has code, retryable, billed and cost.
            TypeError: there is no such option.
        """
        from limner.tools.built_in.image_edit import EditArguments

        given = {"image": image, "prompt": prompt, "n": n, **options}
        return await self._draw("edit", EditArguments, given)

    async def draw(
        self,
        arguments: DrawingArguments,
        options: CallerOptions | None = None,
        *,
        progress: Callable[[Progress], None] = ignore_progress,
        ask: Callable[[Question], Awaitable[bool]] = answer_no,
        approval: ApprovalPolicy | None = None,
    ) -> PictureSet:
        """What `generate` and `edit` do, with the failures of a set beside its pictures.

        Raises:
            LimnerError: nothing was drawn.
        """
        from limner.tools.picture_set import draw_all

        order = self._order(arguments, options)
        person = replace(self.person(progress=progress, ask=ask), approval=approval)
        return await draw_all(order, self.generator, person)

    async def quote(
        self, prompt: str, *, n: int | None = None, **options: Unpack[GenerateOptions]
    ) -> Plan:
        """What `generate` would do with the same arguments, and what that costs.

        Nothing is sent, written or paid.

        Raises:
            LimnerError: `generate` would raise it before paying.
            TypeError: there is no such option.
        """
        from limner.tools.built_in.image_generate import GenerateArguments
        from limner.tools.drawing_arguments import CallerOptions

        given = {"prompt": prompt, "n": n, **options}
        _refuse_unknown("quote", given, GenerateArguments, CallerOptions)
        return await self.plan(_read(GenerateArguments, given), _read(CallerOptions, given))

    async def plan(self, arguments: DrawingArguments, options: CallerOptions | None = None) -> Plan:
        """What `draw` would do with the same arguments, and what that costs."""
        order = self._order(arguments, options)
        return await self.planner.plan(order, self.person(), today=self.clock().date())

    async def recover(
        self, job: JobRow, *, progress: Callable[[Progress], None] = ignore_progress
    ) -> GeneratedImage | None:
        """Bring in the picture of an unfinished job, from the bytes that are here or its service.

        Returns None if there are no bytes and the service cannot be asked.
        """
        from limner.tools.recovery import recover

        return await recover(job, self.generator, progress=progress)

    def delivered_file(self, job: JobRow) -> Path | None:
        """The file with the bytes that were delivered for an unfinished job, if it is here."""
        from limner.tools.recovery import delivered_file

        return delivered_file(job, self.generator)

    def job_state(self, job: JobRow) -> str:
        """Where an unfinished job stands, in a few words."""
        if job.in_flight:
            return "waiting"
        if job.picture is not None:
            return "paid, not written"
        return "open" if self.delivered_file(job) is None else "bytes are here"

    async def close_job(self, job: JobRow, *, cost_usd: Decimal | str | None = None) -> None:
        """Close a job whose outcome cannot be determined, and delete the bytes that are here.

        ``cost_usd`` is what the provider charged. Without it, the quoted price stays counted.

        Raises:
            UserError: the job is in flight, its picture is stored, or its price is known already.
            InputInvalid: the cost is not an amount.
        """
        from limner.tools.recovery import close_job

        cost_nano = None if cost_usd is None else usd_to_nano(cost_usd, field="cost_usd")
        await close_job(job, self.generator, cost_nano=cost_nano)

    def adopt_budget(self, budget: BudgetSettings) -> None:
        """Use other caps from now on: the user changed the settings while this program runs."""
        self.settings = replace(self.settings, budget=budget)
        self.components.adopt_budget(budget)

    async def render(
        self, source: str | Mapping[str, object], **options: Unpack[RenderOptions]
    ) -> GeneratedImage:
        """Draw a chart, a diagram, a page or an SVG document, exactly as it is written.

        ``source`` is a text, or the JSON of a document as a dictionary. Takes the arguments of the
        tool `image_render`. ``extras["notes"]`` of the result says what the author of the document
        should know, as a character that no font has.

        Raises:
            LimnerError: the source is wrong, or it cannot be saved.
            TypeError: there is no such option.
        """
        from limner.tools.rendering import RenderArguments

        text = source if isinstance(source, str) else msgspec.json.encode(source).decode()
        given = {"source": text, **options}
        _refuse_unknown("render", given, RenderArguments)
        return await self.renderer.render(
            _read(RenderArguments, given), self.person(**_hooks(given))
        )

    async def transform(
        self, image: ImageInput, **options: Unpack[TransformOptions]
    ) -> TransformedImage:
        """Crop, scale, turn, mark, blur, cut out or compress a picture, free of charge.

        Takes the arguments of the tool `image_transform`.

        Raises:
            LimnerError: the picture cannot be read, changed or saved.
            TypeError: there is no such option.
        """
        from limner.tools.transformation import TransformArguments

        given = {"image": image, **options}
        _refuse_unknown("transform", given, TransformArguments)
        named = await self._with_names(TransformArguments, given)
        return await self.transformer.transform(
            _read(TransformArguments, named), self.person(**_hooks(given))
        )

    async def check(self, image: ImageInput, **options: Unpack[CheckOptions]) -> PictureCheck:
        """Check a picture against a reference and criteria in words.

        Takes the arguments of the tool `image_check`. The result is true if everything passed.

        Raises:
            LimnerError: a picture cannot be read, or the sheet cannot be written.
            TypeError: there is no such option.
        """
        from limner.tools.picture_check import CheckArguments

        given = {"image": image, **options}
        _refuse_unknown("check", given, CheckArguments)
        named = await self._with_names(CheckArguments, given)
        return await self.checker.check(_read(CheckArguments, named), self.person(**_hooks(given)))

    async def sheet(
        self, images: Sequence[ImageInput] = (), **options: Unpack[SheetOptions]
    ) -> ContactSheet:
        """Put pictures on one numbered sheet; ``prompts`` are drawn first.

        Each prompt is drawn by each of ``models`` with each of ``seeds``. A picture that fails
        has its error in the result.

        Raises:
            LimnerError: nothing was drawn, or all pictures together cost more than the budget.
            TypeError: there is no such option.
        """
        from limner.tools.contact_sheet import SheetArguments

        given = {"images": images, **options}
        _refuse_unknown("sheet", given, SheetArguments)
        named = await self._with_names(SheetArguments, given)
        return await self.sheets.make(_read(SheetArguments, named), self.person(**_hooks(given)))

    async def inspect(
        self, path: ImageInput, question: str, **options: Unpack[InspectOptions]
    ) -> Inspection:
        """Ask a vision model about pictures; takes the arguments of `inspect_image`.

        Raises:
            LimnerError: with code, retryable, billed and cost.
            TypeError: there is no such option.
        """
        from limner.tools.inspection import InspectRequest

        given = {"path": path, "question": question, **options}
        _refuse_unknown("inspect", given, InspectRequest)
        person = self.person(**_hooks(given))
        request = _read(InspectRequest, await self._with_names(InspectRequest, given))
        return await self.inspector.inspect(request, person)

    async def batch(
        self,
        rows: str | Path | Sequence[Mapping[str, object]],
        *,
        budget_usd: Decimal | float | str | None = None,
        rate: Sequence[str] = (),
        lane: Literal["now", "cheap"] | None = None,
        out: str | Path | None = None,
        on_status: Callable[[BatchStatus], None] = lambda _: None,
        ask: Callable[[Question], Awaitable[bool]] = answer_no,
    ) -> BatchStatus:
        """Run many calls of tools; each row is paid for at most once, however often this is called.

        A row has a ``key``, the name of a ``tool`` (default: `image_generate`) and the arguments of
        the tool. Rows fail alone. The call again runs what is left.

        Args:
            rows: the path of a manifest (JSONL, CSV, Parquet), or the rows themselves.
            budget_usd: the most that all rows may cost; the default is the sum of their quotes.
            rate: requests a minute to providers, each as ``openai=50/min``.
            lane: ``cheap`` for the vendors' batch APIs: half the price, within 24 hours. If the
                call is cancelled, the vendors go on, and the next call collects the results.
            out: where to write the rows and their results at the end: a name that ends with
                .jsonl, .csv, .parquet or .tar (WebDataset), or a folder for the pictures.
            on_status: gets the state of the batch every second.
            ask: decides about the price, if there is no budget and the settings say so.

        Raises:
            InputInvalid: a row or a rate is wrong; nothing was sent.
            ApprovalDenied: the price needs approval, and did not get it.
            StorageError: ``out`` cannot be written; nothing was sent.
        """
        from limner.batches.export import check_export
        from limner.tools.batches import budget_of, manifest_of

        to = None if out is None else self._person_reach.resolve_write(out, cwd=self.cwd)
        check_export(to)

        resolve = partial(self._person_reach.resolve_read, cwd=self.cwd)
        budget_nano = budget_of(budget_usd)
        batch = await self.batches.open(
            await asyncio.to_thread(manifest_of, rows, resolve=resolve),
            self.person(ask=ask),
            budget_nano=budget_nano,
            rates=rate,
            lane=lane,
            approved=budget_nano is not None,
        )
        status = await self.batches.run(batch, on_status=on_status)
        if to is not None:
            await self.batches.export(batch.id, to)
        return status

    async def run_rows(
        self,
        rows: Sequence[Mapping[str, object]],
        *,
        batch: str,
        budget_usd: Decimal | float | str,
        rate: Sequence[str] = (),
    ) -> list[dict[str, object]]:
        """Run some rows of a batch, for an engine that calls once for each block of a table.

        The rows are added to the batch of this name, and only they run. A row that the batch has
        already, because the engine calls again after a crash, is not paid for again. Rows fail
        alone.

        Args:
            rows: the rows, as `batch` takes them.
            batch: the name of the batch, the same for all blocks: letters, digits, - and _.
            budget_usd: the most that all rows of the batch may cost together.
            rate: requests a minute to providers, each as ``openai=50/min``.

        Returns:
            For each row ``key``, ``state``, ``handle``, ``path``, ``result`` (JSON text),
            ``cost_usd`` and ``error``; what a row has not is None.

        Raises:
            InputInvalid: a row has no key, or the name or a rate is wrong; nothing was sent.
            UserError: the batch was cancelled.
        """
        found = await self.batches.run_rows(
            rows,
            self.person(),
            name=batch,
            budget_nano=usd_to_nano(budget_usd, field="budget_usd"),
            rates=rate,
        )
        return [row.as_columns() for row in found]

    async def evidence(self, image: ImageInput) -> Evidence:
        """Everything that limner measures and reads in a picture, without asking a model.

        Raises:
            LimnerError: as `fit`.
        """
        picture = await self.take(image)
        return await self.eyes.gather(await self.pictures.original(picture))

    async def fit(
        self,
        image: ImageInput,
        *,
        model: str | None = None,
        region: Region | None = None,
        page: int = 1,
    ) -> FittedImage:
        """A picture as a model should get it, and what sending it costs.

        Raises:
            InputInvalid: there is no such model.
            ImageError: the file is not a picture, or the region lies outside it.
            ReachDenied: the path is protected.
            NotFound: there is no such file or picture.
            StorageError: the file cannot be read.
        """
        facts = None if model is None else self.models.vision_facts(model)
        picture = await self.take(image)
        return await self.fitting.fit(picture, model=facts, region=region, page=page)

    async def take(self, image: ImageInput) -> Picture:
        """Store a picture; a file is not changed.

        Raises:
            LimnerError: as `fit`.
        """
        return (await self.take_with_path(image))[0]

    async def take_with_path(self, image: ImageInput) -> PictureWithPath:
        """A stored picture, and the file that it comes from if the caller gave a path.

        Raises:
            LimnerError: as `fit`.
        """
        from limner.tools.file_lookup import find_file

        found = await self._resolve(image)
        if isinstance(found, str):
            known = await self.handles.find(found, session_id=None)
            if known is None:
                path = find_file(found, self.person())
                return await self.pictures.take_file(path), path
            found = known
        return found, None

    def picture(self, handle: str | Picture | GeneratedImage) -> StoredPicture:
        """A stored picture: its bytes, its file, its fit for a model, its facts.

        Raises:
            InputInvalid: it is not a handle.
        """
        return StoredPicture(self, handle_of(handle))

    async def spend(self, *, limit: int = 50, after: int | None = None) -> Spend:
        """What was spent: by this object or scope, by session, by model, by day, and in total.

        Args:
            limit: how many days and sessions at most.
            after: only sessions after those of another page, by its ``next_session``.
        """
        own = await self.money.sums_here()
        return replace(await self.money.spend(lines=limit, after=after), own=own)

    async def read_audio(self, path: str | Path) -> str:
        """A sound file that a person plays to a model, as a data URL.

        Raises:
            InputInvalid: it is too large, or not a sound of a known kind.
            ReachDenied: the path is protected.
            StorageError: the file does not exist, or cannot be read.
        """
        from limner.agent.audio import read_file

        file = self._person_reach.resolve_read(path, cwd=self.cwd)
        return await asyncio.to_thread(read_file, file)

    async def import_session(
        self, path: str | Path, *, progress: Callable[[ImportedSession], None] = lambda _: None
    ) -> ImportedSession:
        """Make a session of a Codex rollout file, or of one that `export_session` wrote.

        Raises:
            InputInvalid: it is not a rollout, or was imported before.
            MissingExtra: it is compressed, and ``limner[zstd]`` is not installed.
            ReachDenied: the path is protected.
            StorageError: it cannot be read, or its content cannot be stored.
        """
        file = self._person_reach.resolve_read(path, cwd=self.cwd)
        return await self.importer.rollout(file, progress=progress)

    async def export_session(
        self, session_id: str, path: str | Path, *, overwrite: bool = False
    ) -> ExportedSession:
        """Write a session as a rollout file, its pictures inside it, as Codex reads them.

        Raises:
            InputInvalid: there is no such session.
            OutputExists: the file exists.
            ReachDenied: the path is protected.
            StorageError: the file cannot be written.
        """
        file = self._person_reach.resolve_write(path, cwd=self.cwd)
        session = await self.sessions.open(session_id)
        return await self.exporter.rollout(session, file, overwrite=overwrite)

    async def delete_session(self, session_id: str) -> FreedSpace:
        """Delete a session, and the pictures that only it referred to.

        Raises:
            InputInvalid: there is no such session.
        """
        session = await self.sessions.open(session_id)
        named = await self.sessions.delete(session.id)
        return await self.garbage.collect(among=named, grace_s=0)

    def tools(self) -> list[Tool]:
        """The tools a model can call, those of installed packages last."""
        return self._tools(in_conversation=False)

    def conversation_tools(self) -> list[Tool]:
        """The tools for a model whose conversation is stored here; it can recall pictures."""
        return self._tools(in_conversation=True)

    def _tools(self, *, in_conversation: bool) -> list[Tool]:
        from limner.tools.built_in import built_in_tools

        parts = self.components.tool_parts
        return [*built_in_tools(parts, in_conversation=in_conversation), *self._plugins]

    def conversation_registry(self, more: Iterable[Tool] = ()) -> ToolRegistry:
        """As `registry`, for a model whose conversation is stored here."""
        return self._registry(self.conversation_tools(), more)

    def registry(self, more: Iterable[Tool] = ()) -> ToolRegistry:
        """The tools and ``more``, which run in parallel; their pictures are stored here."""
        return self._registry(self.tools(), more)

    def _registry(self, own: Iterable[Tool], more: Iterable[Tool]) -> ToolRegistry:
        from limner.tools.function_tools import kept_in
        from limner.tools.registry import ToolRegistry

        tools = [*own, *(kept_in(lambda: self.pictures, tool) for tool in more)]
        return ToolRegistry(tools, timeout_s=self.settings.tools.timeout_s)

    def person(
        self,
        *,
        progress: Callable[[Progress], None] = ignore_progress,
        ask: Callable[[Question], Awaitable[bool]] = answer_no,
    ) -> ToolContext:
        """The context of a call that a person makes: only protected paths are out of reach."""
        return ToolContext(
            cwd=self.cwd,
            reach=self._person_reach,
            progress=progress,
            ask=ask,
        )

    def context(
        self,
        *,
        progress: Callable[[Progress], None] = ignore_progress,
        ask: Callable[[Question], Awaitable[bool]] = answer_no,
    ) -> ToolContext:
        """The context of calls that a model makes: what it may reach, and the session that pays.

        A model may write the generated folder, the working folder and the temp folder of this
        `Limner`, and read these and the user's home.
        """
        return ToolContext(
            session_id=self.session_id,
            cwd=self.cwd,
            reach=Reach.for_model(home=self.home, cwd=self.cwd),
            progress=progress,
            ask=ask,
        )

    @cached_property
    def _person_reach(self) -> Reach:
        # Built once: finding the protected paths reads some two hundred folder entries.
        return Reach.for_person(home=self.home)

    @cached_property
    def _plugins(self) -> list[Tool]:
        from limner.tools.built_in import declarations
        from limner.tools.function_tools import plugin_tools

        # Loaded once, so that one that is broken is logged once.
        return plugin_tools(taken=declarations(), pictures=lambda: self.pictures)

    def scope(self, name: str, *, budget_usd: Decimal | float | str | None = None) -> Self:
        """A `Limner` for a part of the program, such as one user of a service.

        It shares everything with this object, and needs no closing. What it and its agents spend
        counts for the scope, and within the budget of this object. The ledger knows the scope by
        its name: a program that starts again goes on where the budget was.

        Args:
            name: the name of the scope, the same for the same user.
            budget_usd: a cap on everything that was ever spent in the scope.

        Raises:
            InputInvalid: this is a scope, the name is blank, or the budget is not an amount.
        """
        from copy import copy

        child = copy(self)
        child.components = self.components.scoped(name, budget_usd=budget_usd)
        return child

    def warm(self) -> None:
        """Do now what the first request in this event loop would wait for: read certificates."""
        self.components.warm()

    async def aclose(self) -> None:
        """Wait for calls in flight, then stop the workers and close connections and database."""
        await self.components.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.components.aclose()

    async def _draw(
        self, function: str, kind: type[DrawingArguments], given: Mapping[str, Any]
    ) -> GeneratedImage | list[GeneratedImage]:
        from limner.tools.drawing_arguments import CallerOptions
        from limner.tools.generation_tool import failures_value

        _refuse_unknown(function, given, kind, CallerOptions)
        arguments = _read(kind, await self._with_names(kind, given))
        drawn = await self.draw(arguments, _read(CallerOptions, given), **_hooks(given))
        first, *others = drawn.images
        if drawn.failures:
            first = replace(first, extras={**first.extras, "failed": failures_value(drawn)})
        return first if given["n"] is None else [first, *others]

    async def _with_names(
        self, kind: type[msgspec.Struct], given: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The keywords of a call, with each picture as the path or the handle that tools take."""
        from limner.tools.declaration import arguments_of

        named = dict(_with_lists(kind, given))
        for name, argument in arguments_of(kind).items():
            if "image" not in argument.extra or named.get(name) is None:
                continue
            if get_origin(argument.plain) is tuple:
                named[name] = [await self._name(one) for one in named[name]]
            else:
                named[name] = await self._name(named[name])
        return named

    async def _name(self, image: ImageInput) -> str:
        found = await self._resolve(image)
        return found if isinstance(found, str) else found.handle

    async def _resolve(self, image: ImageInput) -> Picture | str:
        from limner.tools.image_input import describe_image, resolve_image

        try:
            return await resolve_image(image, pictures=self.pictures, source="user")
        except ImageError as error:
            error.message = f"{describe_image(image)}: {error.message}"
            error.args = (error.message,)
            raise

    def _order(self, arguments: DrawingArguments, options: CallerOptions | None) -> Order:
        from limner.tools.drawing_arguments import NO_OPTIONS, order_for

        return order_for(arguments, self.components.drawing_defaults, options or NO_OPTIONS)


def handle_of(picture: str | Picture | GeneratedImage) -> str:
    """The handle of a stored picture.

    Raises:
        InputInvalid: the text is not a handle.
    """
    from limner.storage.blobs import parse_handle
    from limner.tools.output_file import GeneratedImage
    from limner.wires.base import HANDLE_URL

    if isinstance(picture, GeneratedImage):
        picture = picture.image
    if isinstance(picture, Picture):
        return picture.handle
    return parse_handle(picture.strip().removeprefix(HANDLE_URL).lower())


def _refuse_unknown(function: str, given: Mapping[str, Any], *kinds: type[msgspec.Struct]) -> None:
    """Raise as Python does for a keyword that no Struct has a field for."""
    known = {*_HOOKS, *(name for kind in kinds for name in kind.__struct_fields__)}
    for name in given:
        if name not in known:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


def _read(kind: type[S], given: Mapping[str, Any]) -> S:
    """The keywords of a call that are fields of a Struct; None means "not given".

    Raises:
        InputInvalid: one is missing or wrong.
    """
    from limner.tools.declaration import read_arguments

    given = _with_lists(kind, given)
    own = {name: given[name] for name in kind.__struct_fields__ if given.get(name) is not None}
    plain = msgspec.to_builtins(
        own, builtin_types=(bytes, bytearray, memoryview), enc_hook=_as_json
    )
    return read_arguments(kind, plain)


def _with_lists(kind: type[msgspec.Struct], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keywords, with one name or picture as a list of one if the argument is a list."""
    from limner.tools.declaration import arguments_of
    from limner.tools.output_file import GeneratedImage

    single = (str, bytes, bytearray, memoryview, os.PathLike, Picture, GeneratedImage)
    lists = {
        name: [given[name]]
        for name, argument in arguments_of(kind).items()
        if get_origin(argument.plain) is tuple and isinstance(given.get(name), single)
    }
    return {**given, **lists}


def _hooks(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name in _HOOKS if given.get(name) is not None}


def _as_json(value: object) -> object:
    if isinstance(value, os.PathLike):
        return os.fspath(cast("os.PathLike[str]", value))
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    raise TypeError(f"{type(value).__name__} is not a type that an argument can have")


def create_image_tools(lim: Limner | None = None) -> list[Tool]:
    """The picture tools as a list, for your own registry."""
    return (Limner() if lim is None else lim).tools()


@overload
def tool(function: Callable[P, R], /, **options: Unpack[ToolOptions]) -> FunctionTool[P, R]: ...


@overload
def tool(
    **options: Unpack[ToolOptions],
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(
    function: Callable[P, R] | None = None, /, **options: Unpack[ToolOptions]
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a tool of a typed function, as ``@limner.tool`` or with the options of `function_tool`.

    A model reads the signature and the docstring. The function may return words, a picture (a
    `Path`, bytes, a Pillow image), a list of those, or anything that is JSON.

    The `Limner` whose registry it is in stores its pictures; in your own registry, one with the
    settings of this program.

    Raises:
        TypeError: a parameter has no type, or the function has no docstring.
        ValueError: model services do not accept the name.
    """

    from limner.tools.function_tools import function_tool

    def decorate(function: Callable[P, R]) -> FunctionTool[P, R]:
        return function_tool(function, pictures=lambda: _of_this_program().pictures, **options)

    return decorate if function is None else decorate(function)


@cache
def _of_this_program() -> Limner:
    return Limner()
