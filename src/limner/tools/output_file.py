"""Delivered bytes and a receipt -> a verified picture, a settled price, a file: in that order.

Nothing that was paid for is lost here: the bytes are on disk under the job's name before they are
checked, the picture and its price are recorded in one transaction, and the file appears after that.
The blob store keeps what the provider sent, byte for byte; the file is a copy in the requested
format.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from limner.catalogue.images import Size
from limner.content import Picture
from limner.errors import (
    NANO_PER_USD,
    BadProviderImage,
    CostSource,
    ImageError,
    NotFound,
    OutputExists,
    ReachDenied,
    StorageError,
)
from limner.imaging.provenance import has_manifest
from limner.money.paid_call import PaidCall
from limner.pictures.labels import Label, is_copy, labelled
from limner.pictures.request import DrawingOptions, ImageRequest, Receipt
from limner.pictures.take import Pictures, content_handle
from limner.pictures.xmp import SourceType
from limner.providers.specs import ILLUSTRATOR
from limner.storage.files import write_new, write_numbered
from limner.storage.incoming_files import IncomingFile
from limner.storage.os_errors import disk_errors
from limner.storage.temp_file import Source, Spliced
from limner.tools.planning import Plan

PNG = "image/png"
SUFFIXES = {PNG: ".png", "image/jpeg": ".jpg", "image/webp": ".webp"}


class OutputBytes(msgspec.Struct, frozen=True, kw_only=True):
    """A picture, and the bytes to write to its file."""

    picture: Picture
    source: Source
    is_svg: bool = False

    @property
    def suffix(self) -> str:
        """The suffix of the file."""
        return ".svg" if self.is_svg else SUFFIXES[self.picture.mime]

    @property
    def size_bytes(self) -> int:
        """The size of the file; with a label it is larger than the picture."""
        match self.source:
            case bytes():
                return len(self.source)
            case Spliced():
                return self.picture.size_bytes + len(self.source.inserted)
            case _:
                return self.picture.size_bytes


Write = Callable[[OutputBytes], Path]
"""Writes a file, and returns its path."""


class GeneratedImage(msgspec.Struct, frozen=True, kw_only=True):
    """A picture that is drawn, paid for and saved. ``image`` is the picture in the file, as PNG if
    the file is SVG.

    It is ``untrusted`` if it was drawn from a picture from outside, whose text may be in it.
    """

    path: Path
    image: Picture
    cost_nano: int
    cost_source: CostSource
    provider: str
    model: str
    prompt_used: str
    extras: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])
    untrusted: bool = False

    @property
    def dimensions(self) -> Size:
        """Width and height of the picture in the file, measured from its bytes."""
        return Size(self.image.width, self.image.height)

    @property
    def cost_usd(self) -> float:
        """What it cost in dollars."""
        return self.cost_nano / NANO_PER_USD


class OutputWriter(msgspec.Struct, frozen=True, kw_only=True):
    """Stores delivered pictures and writes their files.

    Pictures without a requested path go to the folder ``generated``. With ``metadata``, a file
    names its model and its prompt, and says that no camera took the picture.
    """

    pictures: Pictures
    generated: Path
    clock: Callable[[], datetime]
    metadata: bool

    async def save(
        self, plan: Plan, receipt: Receipt, file: IncomingFile, *, call: PaidCall, write: Write
    ) -> GeneratedImage:
        """Sync and note the bytes, verify and store them, settle the price, write the picture.

        Raises:
            BadProviderImage: the bytes are not a picture.
            LimnerError: it failed on the way; ``kept_at`` is where the bytes are.
        """
        await call.deliver(receipt.cost_nano, receipt.cost_source)
        request, service = plan.request, plan.choice.spec.name
        scene = receipt.scene or plan.scene
        try:
            master = await self.pictures.verify(file)
        except ImageError as error:
            raise BadProviderImage(
                f"{service} responded, but not with a picture: {error.message}",
                extras={"provider": service},
            ) from error
        await call.settle(
            master.handle,
            stored_at=self.pictures.location(master),
            also=lambda tx: self.pictures.record(
                tx, master, lineage=_lineage(plan, receipt, scene)
            ),
        )
        size = (request.width, request.height)
        image = await self.pictures.convert(
            master,
            to=plan.output_format,
            cover=size if plan.choice.model.fit_to_size else None,
        )
        delivered = file.path if image is master else None

        def write_output() -> Path:
            return write(
                self.output_bytes(
                    image, service, request, plan.document, scene, delivered=delivered
                )
            )

        path = await asyncio.to_thread(_then_discard, file, write_output)
        await call.record_path(path)
        extras: dict[str, Any] = dict(receipt.extras)
        if plan.choice.notice is not None:
            extras["notice"] = plan.choice.notice
        if (master.width, master.height) != (image.width, image.height):
            extras["drawn_size"] = str(Size(master.width, master.height))
        return GeneratedImage(
            path=path,
            image=image,
            cost_nano=call.cost_nano,
            cost_source=call.cost_source,
            provider=service,
            model=request.model,
            prompt_used=receipt.prompt_used,
            extras=extras,
            untrusted=plan.untrusted,
        )

    def output_bytes(
        self,
        picture: Picture,
        service: str,
        request: ImageRequest,
        document: bytes | None = None,
        scene: Mapping[str, object] | None = None,
        *,
        delivered: Path | None = None,
    ) -> OutputBytes:
        """The bytes to write to the file of a picture, or of the SVG that it was drawn from.

        A picture gets a label, unless there is a C2PA manifest, which signs every byte. Its stored
        bytes are checked, because the disk, a bucket or another program may have damaged them. The
        file of a call that is still running needs no check: the bytes were hashed as they arrived,
        and the worker has just decoded what this file contains.

        Args:
            picture: the picture.
            service: who drew it.
            request: what the service was asked for.
            document: the SVG to write in its place.
            scene: what later edits need.
            delivered: the file into which this call received the picture, if it did.

        Raises:
            StorageError: the bytes of the picture are gone or damaged.
        """
        if document is not None:
            return OutputBytes(picture=picture, source=document, is_svg=True)
        path = self.pictures.checked_path(picture) if delivered is None else delivered
        if not self.metadata or _has_manifest(path):
            return OutputBytes(picture=picture, source=path)
        source_type: SourceType = "trainedAlgorithmicMedia"
        if service == ILLUSTRATOR.name:
            source_type = "algorithmicMedia"
        elif request.sources:
            source_type = "compositeWithTrainedAlgorithmicMedia"
        label = Label(
            prompt=request.prompt,
            model=f"{service}/{request.model}",
            handle=picture.handle,
            source_type=source_type,
            scene="" if scene is None else msgspec.json.encode(scene).decode(),
        )
        with disk_errors(doing="read", path=path):
            return OutputBytes(picture=picture, source=labelled(path, label, picture.mime))

    async def derived_bytes(self, picture: Picture) -> OutputBytes:
        """The bytes to write to the file of a picture that was made from another.

        If a provider drew that one, the file still says so.

        Raises:
            StorageError: the bytes of the picture are gone or damaged.
        """
        family = await self.pictures.family(picture.handle)
        origin: Mapping[str, object] = {} if family is None else family.master.lineage
        path = await asyncio.to_thread(self.pictures.checked_path, picture)
        if not self.metadata or "provider" not in origin:
            return OutputBytes(picture=picture, source=path)
        service, prompt, model = (str(origin.get(key)) for key in ("provider", "prompt", "model"))
        is_illustrated = service == ILLUSTRATOR.name
        label = Label(
            prompt=prompt,
            model=f"{service}/{model}",
            handle=picture.handle,
            source_type="algorithmicMedia" if is_illustrated else "trainedAlgorithmicMedia",
        )
        return OutputBytes(picture=picture, source=labelled(path, label, picture.mime))

    def write(
        self,
        target: Path | None,
        output: OutputBytes,
        *,
        overwrite: bool = False,
        replaces: str | None = None,
    ) -> Path:
        """Write the file at its target, or under a new name in a folder.

        If ``replaces`` is given, only that picture is overwritten: another program may have changed
        the file since it was checked.
        """
        if target is not None and replaces is not None and _handle_in(target) != replaces:
            overwrite = False
        stem = str(int(self.clock().timestamp() * 1000))
        if target is None:
            return write_numbered(self.generated, stem, output.suffix, output.source)
        if not target.is_dir():
            return write_new(target, output.source, overwrite=overwrite)
        # `write_numbered` follows symlinks. A folder that the caller chose may have become one.
        for number in count():
            name = f"{stem}-{number}{output.suffix}" if number else f"{stem}{output.suffix}"
            with suppress(OutputExists):
                return write_new(target / name, output.source)
        raise AssertionError("there is always another number")

    def write_or_rename(self, target: Path | None, output: OutputBytes) -> Path:
        """Write the file at its target, or under a generated name if that fails."""
        try:
            return self.write(target, output)
        except OutputExists:
            # A crash after writing the file and before recording its path leaves the same file.
            if target is not None and _contains(target, output.picture):
                return target
        except (ReachDenied, StorageError):
            pass
        return self.write(None, output)

    def find_or_write(self, target: Path | None, output: OutputBytes, *, since_ms: int) -> Path:
        """The file of a picture: found if a crash kept its path from being recorded, or written."""
        if target is None:
            for file in self.generated.glob(f"*{output.suffix}"):
                written_ms = file.stem.partition("-")[0]
                is_late_enough = written_ms.isdecimal() and int(written_ms) >= since_ms
                if is_late_enough and _contains(file, output.picture):
                    return file
        return self.write_or_rename(target, output)


def _then_discard(file: IncomingFile, write: Callable[[], Path]) -> Path:
    """Write the file of a picture that is recorded; then its job needs no file of its own."""
    path = write()
    file.discard()
    return path


def _lineage(plan: Plan, receipt: Receipt, scene: Mapping[str, object] | None) -> dict[str, Any]:
    """What is recorded about the origin of a picture: enough to order it again."""
    request = plan.request
    usual = DrawingOptions()
    lineage: dict[str, Any] = {
        "provider": plan.choice.spec.name,
        "model": request.model,
        "prompt": request.prompt,
        # A model without seeds did not get the one that limner chose.
        "seed": request.seed if plan.choice.model.seeds else None,
        "parents": plan.parents,
    }
    for name in DrawingOptions.__struct_fields__:
        if name != "seed" and (value := getattr(request, name)) != getattr(usual, name):
            lineage[name] = value
    # The mask of a region has the handle of the picture.
    if request.mask is not None and request.mask.handle not in plan.parents:
        lineage["mask"] = request.mask.handle
    if receipt.prompt_used != request.prompt:
        lineage["revised_prompt"] = receipt.prompt_used
    if scene is not None:
        lineage["scene"] = scene
    if plan.is_marked or plan.parents:
        lineage["untrusted"] = plan.is_marked
    return lineage


def _handle_in(path: Path) -> str | None:
    try:
        return content_handle(path)
    except NotFound:
        return None


def _has_manifest(path: Path) -> bool:
    # Only the heads of chunks are read: a buffer would read much more.
    with disk_errors(doing="read", path=path), path.open("rb", buffering=0) as file:
        return has_manifest(file)


def _contains(path: Path, picture: Picture) -> bool:
    """Whether a file contains a picture, with or without a label: the setting may have changed."""
    try:
        with path.open("rb") as file:
            return is_copy(file, picture)
    except OSError:
        return False
