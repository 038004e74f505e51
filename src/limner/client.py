"""`Limner`: what a program calls; each call goes to the part that does it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack, overload

import msgspec
from msgspec.structs import replace

from limner.agent.audio import read_file
from limner.agent.gc import FreedSpace
from limner.agent.session_export import ExportedSession
from limner.agent.session_import import ImportedSession
from limner.catalogue.vision import vision_model
from limner.components import Components
from limner.content import Picture
from limner.imaging.fit import Region
from limner.money.ledger import JobRow
from limner.pictures.fitting import FittedImage
from limner.pictures.request import Progress
from limner.storage.reach import Reach
from limner.tools.arguments import check
from limner.tools.base import Question, Tool, ToolContext, ask_nobody, tell_nobody
from limner.tools.function_tools import (
    FunctionTool,
    ToolOptions,
    function_tool,
    kept_in,
    plugin_tools,
)
from limner.tools.image_edit import SCHEMA as EDIT_SCHEMA
from limner.tools.image_edit import TOOL as EDIT
from limner.tools.image_edit import image_edit, read_edit
from limner.tools.image_generate import SCHEMA as GENERATE_SCHEMA
from limner.tools.image_generate import TOOL as GENERATE
from limner.tools.image_generate import image_generate, read_order
from limner.tools.image_recall import TOOL as RECALL
from limner.tools.image_recall import image_recall
from limner.tools.inspect_image import SCHEMA as INSPECT_SCHEMA
from limner.tools.inspect_image import inspect_image, read_inquiry
from limner.tools.inspection import TOOL as INSPECT
from limner.tools.inspection import Inspection
from limner.tools.output_file import GeneratedImage
from limner.tools.picture_set import PictureSet, draw_all
from limner.tools.planning import Order, Plan
from limner.tools.recovery import recover
from limner.tools.registry import ToolRegistry
from limner.wires.items import Shown

# How the arguments of each drawing tool become an order.
_ORDERS = {
    GENERATE: (GENERATE_SCHEMA, read_order),
    EDIT: (EDIT_SCHEMA, read_edit),
}

_TAKEN = (GENERATE, EDIT, INSPECT, RECALL)


class Limner(Components):
    """Pictures for a program: makes them, looks at them, keeps them, counts what they cost.

    Use it as ``async with limner.Limner() as lim`` so that its helpers are stopped at the end; the
    same object may be used from several event loops. Building one touches neither disk nor
    network.

    Args:
        settings: how it behaves; read from files and environment when left out.
        budget_usd: a cap on everything this object spends.
        env: where keys and base addresses come from.
        cwd: what relative paths are relative to.
        clock: the time, for prices that change and models that retire.
        observe: gets one redacted line for each HTTP request and answer.
    """

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
        drawn = await self.draw(
            GENERATE, {"prompt": prompt, **arguments}, progress=progress, ask=ask
        )
        return drawn.images[0]

    async def edit(
        self,
        image: str | Path,
        prompt: str,
        *,
        progress: Callable[[Progress], None] = tell_nobody,
        ask: Callable[[Question], Awaitable[bool]] = ask_nobody,
        **arguments: Any,
    ) -> GeneratedImage:
        """Change a picture, or draw from pictures; takes the arguments of the tool `image_edit`.

        Raises:
            LimnerError: with code, retryable, billed and cost.
        """
        given = {"image": str(image), "prompt": prompt, **arguments}
        return (await self.draw(EDIT, given, progress=progress, ask=ask)).images[0]

    async def draw(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        progress: Callable[[Progress], None] = tell_nobody,
        ask: Callable[[Question], Awaitable[bool]] = ask_nobody,
        **more: Any,
    ) -> PictureSet:
        """What one of the drawing tools does with these arguments, called by a person.

        ``more`` are fields of the order that no tool has an argument for.

        Raises:
            LimnerError: nothing was drawn.
        """
        order = replace(self._order(tool, arguments), **more)
        return await draw_all(order, self.drawing, self.person(progress=progress, ask=ask))

    async def quote(self, prompt: str, **arguments: Any) -> Plan:
        """What `generate` would do with the same arguments, and what it would cost, for free."""
        return await self.plan(GENERATE, {"prompt": prompt, **arguments})

    async def plan(self, tool: str, arguments: Mapping[str, Any], **more: Any) -> Plan:
        """What `draw` would do with the same arguments, and what it would cost, for free."""
        order = replace(self._order(tool, arguments), **more)
        return await self.drawing.planner.plan(order, self.person(), today=self.clock().date())

    async def recover(
        self, job: JobRow, *, progress: Callable[[Progress], None] = tell_nobody
    ) -> GeneratedImage | None:
        """Bring in the picture of an unfinished job, or None where its service cannot be asked."""
        return await recover(job, self.drawing, progress=progress)

    async def inspect(
        self,
        path: str | Path,
        question: str,
        *,
        paths: Sequence[str | Path] = (),
        region: Region | None = None,
        schema: Mapping[str, Any] | None = None,
        model: str | None = None,
        progress: Callable[[Progress], None] = tell_nobody,
        ask: Callable[[Question], Awaitable[bool]] = ask_nobody,
    ) -> Inspection:
        """Ask a vision model about picture files.

        Args:
            path: the picture.
            question: what to find out.
            paths: more pictures, looked at together with the first.
            region: only this part, in pixels of the original.
            schema: a JSON schema that the answer has to follow.
            model: who is asked, as ``provider/id``; by default what the settings say.
            progress: gets the answer as it comes in.
            ask: decides where the approval policy wants a person's word.

        Raises:
            LimnerError: with code, retryable, billed and cost.
        """
        given: dict[str, Any] = {
            "path": str(path),
            "question": question,
            "paths": [str(other) for other in paths],
            "region": None if region is None else msgspec.to_builtins(region),
            "schema": schema,
        }
        arguments = {name: value for name, value in given.items() if value is not None}
        check(INSPECT_SCHEMA, arguments)
        inquiry = read_inquiry(arguments, model=model)
        return await self.looking.look(inquiry, self.person(progress=progress, ask=ask))

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

    async def shown(self, image: str | Path | bytes) -> Shown:
        """A picture that a person shows to a model: a file, or the bytes of one.

        Raises:
            LimnerError: as `fit`.
        """
        if isinstance(image, bytes):
            with self.pictures.sink() as sink:
                await asyncio.to_thread(sink.write, image)
                return await self.pictures.take(sink, lineage={"from": "user"}), None
        path = self._person_reach.resolve_read(image, cwd=self.cwd)
        return await self.pictures.take_file(path), path

    async def heard(self, path: str | Path) -> str:
        """A sound in a file that a person plays to a model, as a data URL.

        Raises:
            InputInvalid: it is too large, or no sound of a known kind.
            ReachDenied: the path is below the floor.
            StorageError: there is no such file, or it cannot be read.
        """
        file = self._person_reach.resolve_read(path, cwd=self.cwd)
        return await asyncio.to_thread(read_file, file)

    async def import_session(
        self, path: str | Path, *, progress: Callable[[ImportedSession], None] = lambda _: None
    ) -> ImportedSession:
        """Make a session of a Codex rollout file, or of one that `export_session` wrote.

        Raises:
            InputInvalid: it is no rollout, or was imported before.
            MissingExtra: it is compressed, and ``limner[zstd]`` is not installed.
            ReachDenied: the path is below the floor.
            StorageError: it cannot be read, or what it holds cannot be kept.
        """
        file = self._person_reach.resolve_read(path, cwd=self.cwd)
        return await self.importing.rollout(file, progress=progress)

    async def export_session(
        self, session_id: str, path: str | Path, *, inline: bool = False, overwrite: bool = False
    ) -> ExportedSession:
        """Write a session as a rollout file, its pictures beside it or ``inline``.

        Raises:
            InputInvalid: there is no such session.
            OutputExists: the name is taken.
            ReachDenied: the path is below the floor.
            StorageError: the file cannot be written.
        """
        file = self._person_reach.resolve_write(path, cwd=self.cwd)
        session = await self.sessions.open(session_id)
        return await self.exporting.rollout(session, file, inline=inline, overwrite=overwrite)

    async def delete_session(self, session_id: str) -> FreedSpace:
        """Forget a session, and the pictures that only it referred to.

        Raises:
            InputInvalid: there is no such session.
        """
        session = await self.sessions.open(session_id)
        named = await self.sessions.delete(session.id)
        return await self.garbage.collect(among=named, grace_s=0)

    def tools(self) -> list[Tool]:
        """The tools a model can call, those of installed packages last."""
        images = self.settings.images
        own = [
            make(self.drawing, default_provider=images.provider, fallback=images.fallback)
            for make in (image_generate, image_edit)
        ] + [inspect_image(self.looking)]
        return own + self._plugins

    def conversation_tools(self) -> list[Tool]:
        """The tools for a model whose conversation is kept here: it can look at pictures again."""

        return [*self.tools(), image_recall(self.pictures, handles=self.handles)]

    def conversation_registry(self, more: Iterable[Tool] = ()) -> ToolRegistry:
        """As `registry`, for a model whose conversation is kept here."""
        return self._registry(self.conversation_tools(), more)

    def registry(self, more: Iterable[Tool] = ()) -> ToolRegistry:
        """The tools and ``more``, ready to be called in parallel; their pictures are kept here."""
        return self._registry(self.tools(), more)

    def _registry(self, own: Iterable[Tool], more: Iterable[Tool]) -> ToolRegistry:
        tools = [*own, *(kept_in(lambda: self.pictures, tool) for tool in more)]
        return ToolRegistry(tools, timeout_s=self.settings.tools.timeout_s)

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

    @cached_property
    def _plugins(self) -> list[Tool]:
        # Loaded once, so that one that is broken is told once.
        return plugin_tools(taken=_TAKEN, pictures=lambda: self.pictures)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _order(self, tool: str, arguments: Mapping[str, Any]) -> Order:
        schema, read = _ORDERS[tool]
        given = {name: value for name, value in arguments.items() if value is not None}
        check(schema, given)
        images = self.settings.images
        return read(given, default_provider=images.provider, fallback=images.fallback)


def create_image_tools(lim: Limner | None = None) -> list[Tool]:
    """The picture tools as a list, for a registry of your own."""
    return (Limner() if lim is None else lim).tools()


@overload
def tool(function: Callable[..., Any], /, **options: Unpack[ToolOptions]) -> FunctionTool: ...


@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[..., Any]], FunctionTool]: ...


def tool(
    function: Callable[..., Any] | None = None, /, **options: Unpack[ToolOptions]
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Make a tool of a typed function, as ``@limner.tool`` or with the options of `function_tool`.

    What a model reads of it comes from the signature and the docstring. It may return words, a
    picture (a `Path`, bytes, a Pillow image), a list of those, or anything that is JSON.

    Its pictures are kept by the `Limner` whose registry it is in; in a registry of your own, by one
    with the settings of this program.

    Raises:
        TypeError: a parameter has no type, or there is no word on what the function does.
        ValueError: services take no tool of that name.
    """

    def decorate(function: Callable[..., Any]) -> FunctionTool:
        return function_tool(function, pictures=lambda: _of_this_program().pictures, **options)

    return decorate if function is None else decorate(function)


@cache
def _of_this_program() -> Limner:
    return Limner()
