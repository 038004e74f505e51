"""Poured bytes and a receipt -> a verified picture, a settled price, a file: in that order.

Nothing that was paid for is lost here: the bytes are safe in the blob store before the ledger is
settled, and the ledger is settled before the file appears.
"""

from __future__ import annotations

import asyncio
import filecmp
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from limner.catalogue.images import Size
from limner.content import Picture
from limner.errors import (
    NANO_PER_USD,
    BadProviderImage,
    CostSource,
    ImageError,
    LimnerError,
    OutputExists,
    ReachDenied,
    StorageError,
)
from limner.money.spending import Spending
from limner.pictures.order import Receipt
from limner.pictures.take import Pictures
from limner.storage.blobs import BlobWriter
from limner.storage.files import write_new, write_numbered
from limner.tools.ordering import Plan

Write = Callable[[Path], Path]
"""Copies the file of a picture to where it is wanted, and tells where that is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedImage:
    """A picture that is drawn, paid for and saved. ``image`` is the picture in the file."""

    path: Path
    image: Picture
    cost_nano: int
    cost_source: CostSource
    provider: str
    model: str
    prompt_used: str
    extras: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def dimensions(self) -> Size:
        """Width and height of the picture in the file, measured from its bytes."""
        return Size(self.image.width, self.image.height)

    @property
    def cost_usd(self) -> float:
        """What it cost in dollars."""
        return self.cost_nano / NANO_PER_USD


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """Brings pictures to the ground. ``generated`` is for those without a place of their own."""

    pictures: Pictures
    generated: Path
    clock: Callable[[], datetime]

    async def land(
        self, plan: Plan, receipt: Receipt, sink: BlobWriter, *, spending: Spending, write: Write
    ) -> GeneratedImage:
        """Verify and store the bytes, settle the price, write the file.

        Raises:
            BadProviderImage: the bytes are not a picture.
            LimnerError: the file could not be written; ``kept_at`` says where the picture is.
        """
        spending.price(receipt.cost_nano, receipt.cost_source)
        request, service = plan.request, plan.choice.spec.name
        lineage = {"provider": service, "model": request.model, "prompt": request.prompt}
        try:
            master = await self.pictures.take(sink, lineage=lineage | {"seed": request.seed})
        except ImageError as error:
            raise BadProviderImage(
                f"{service} answered, but not with a picture: {error.message}",
                extras={"provider": service},
            ) from error
        asked = (request.width, request.height)
        try:
            await spending.settle(master.handle)
            image = await self.pictures.png(
                master, cover=asked if plan.choice.model.fit_to_size else None
            )
            path = await asyncio.to_thread(write, self.pictures.path(image))
        except LimnerError as error:
            error.extras["kept_at"] = str(self.pictures.path(master))
            raise
        await spending.place(path)
        extras: dict[str, Any] = dict(receipt.extras)
        if plan.choice.notice is not None:
            extras["notice"] = plan.choice.notice
        if (master.width, master.height) != (image.width, image.height):
            extras["drawn_size"] = str(Size(master.width, master.height))
        return GeneratedImage(
            path=path,
            image=image,
            cost_nano=spending.cost_nano,
            cost_source=spending.cost_source,
            provider=service,
            model=request.model,
            prompt_used=receipt.prompt_used,
            extras=extras,
        )

    def write(self, target: Path | None, source: Path, *, overwrite: bool = False) -> Path:
        """Write the file where it was asked for, or under a name of its own."""
        if target is not None:
            return write_new(target, source, overwrite=overwrite)
        stem = str(int(self.clock().timestamp() * 1000))
        return write_numbered(self.generated, stem, ".png", source)

    def write_somewhere(self, target: Path | None, source: Path) -> Path:
        """Where it was meant to go, or under a name of its own where that is not to be had."""
        try:
            return self.write(target, source)
        except OutputExists:
            # A crash between writing a file and noting so leaves exactly what is wanted there.
            if target is not None and _is_copy(target, source):
                return target
        except (ReachDenied, StorageError):
            pass
        return self.write(None, source)

    def written(self, target: Path | None, source: Path, *, since_ms: int) -> Path:
        """The file of a picture; one that was written but never noted is found, not doubled."""
        if target is None:
            for file in self.generated.glob("*.png"):
                written_ms = file.stem.partition("-")[0]
                is_late_enough = written_ms.isdecimal() and int(written_ms) >= since_ms
                if is_late_enough and _is_copy(file, source):
                    return file
        return self.write_somewhere(target, source)


def _is_copy(file: Path, source: Path) -> bool:
    try:
        return filecmp.cmp(file, source, shallow=False)
    except OSError:
        return False
