"""Pictures that a person selected -> a contact sheet, an archive to save, or nothing."""

from __future__ import annotations

import asyncio
import re
import time
from io import BytesIO
from typing import Annotated
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import msgspec
from msgspec import Meta

from limner.errors import InputInvalid
from limner.frontends.studio.api.pictures import PictureSummary, file_suffix, summary_of
from limner.frontends.studio.endpoints import Endpoint, FileAnswer, PictureHandle, StudioParts
from limner.frontends.studio.runs import Report, RunResult, StudioRun
from limner.tools.contact_sheet import MAX_PICTURES, SheetArguments

MAX_ARCHIVE_BYTES = 512 * 1024 * 1024
_NAME_CHARS = 48
_NO_NAME = re.compile(r"[^\w]+")


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Some pictures, in the order in which they were selected."""

    handles: Annotated[tuple[PictureHandle, ...], Meta(min_length=1, max_length=MAX_PICTURES)]


class DeletedPictures(msgspec.Struct, frozen=True, kw_only=True):
    """What was deleted: pictures with their other forms, and the space they used."""

    pictures: int
    bytes: int


async def start_sheet(studio: StudioParts, request: Selection) -> StudioRun:
    """Put the pictures on one numbered sheet; it is free."""
    lim = studio.lim
    arguments = SheetArguments(images=request.handles)

    async def work(report: Report) -> RunResult:
        sheet = await lim.sheets.make(arguments, lim.person(progress=report))
        return RunResult(pictures=(sheet.image.handle,))

    return studio.runs.start("sheet", f"Contact sheet of {len(request.handles)}", work)


async def export_pictures(studio: StudioParts, request: Selection) -> FileAnswer:
    """The pictures as they were received, and what is known about each, in one ZIP file."""
    lim = studio.lim
    found = await lim.gallery.find(request.handles)
    if sum(one.picture.size_bytes for one in found) > MAX_ARCHIVE_BYTES:
        raise InputInvalid(
            f"These pictures have more than {MAX_ARCHIVE_BYTES // 1024**2} MB. Select fewer."
        )
    data = BytesIO()
    with ZipFile(data, "w", ZIP_STORED) as archive:
        listed: list[dict[str, object]] = []
        for number, one in enumerate(found, start=1):
            about = summary_of(one)
            name = f"{number:03} {_file_name(about)}{file_suffix(about.mime)}"
            info = ZipInfo(name, time.gmtime(one.created_ms / 1000)[:6])
            content = await lim.pictures.original(one.picture)
            await asyncio.to_thread(archive.writestr, info, content)
            listed.append({"file": name, **msgspec.to_builtins(about)})
        archive.writestr("pictures.json", msgspec.json.format(msgspec.json.encode(listed)))
    return FileAnswer(data=data.getvalue(), mime="application/zip", name="limner-pictures.zip")


async def delete_pictures(studio: StudioParts, request: Selection) -> DeletedPictures:
    """Delete pictures. What they cost stays in the ledger, and files in the user's folders stay."""
    freed = await studio.lim.deleter.delete(request.handles)
    return DeletedPictures(pictures=freed.pictures, bytes=freed.size_bytes)


def _file_name(about: PictureSummary) -> str:
    words = _NO_NAME.sub(" ", about.title).strip()[:_NAME_CHARS].strip()
    return words or about.handle[:12]


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/api/sheets",
        summary="Put pictures on one numbered contact sheet, which is stored.",
        request=Selection,
        answer=StudioRun,
        handler=start_sheet,
    ),
    Endpoint(
        method="POST",
        path="/api/exports",
        summary="Get pictures and what is known about them as a ZIP file.",
        request=Selection,
        answer=FileAnswer,
        handler=export_pictures,
    ),
    Endpoint(
        method="POST",
        path="/api/deletions",
        summary="Delete pictures. What they cost stays known.",
        request=Selection,
        answer=DeletedPictures,
        handler=delete_pictures,
    ),
)
