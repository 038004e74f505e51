"""Requests about stored pictures -> pages of the gallery, facts, thumbnails and files."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from limner.errors import NANO_PER_USD
from limner.frontends.studio.endpoints import (
    Endpoint,
    FileAnswer,
    NoArguments,
    PictureHandle,
    StudioParts,
)
from limner.imaging.fit import FitRequest
from limner.pictures import thumbnails
from limner.pictures.gallery import MAX_PAGE, GalleryFilter, GalleryPicture
from limner.pictures.take import MAX_PICTURE_BYTES
from limner.tools.output_file import SUFFIXES
from limner.tools.picture_info import PictureFacts, facts_of

# What every browser shows. Other types are shown as PNG.
SHOWN_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_AS_PNG = FitRequest(
    mode="sharp",
    max_width=8192,
    max_height=8192,
    max_bytes=MAX_PICTURE_BYTES,
    formats=("image/png",),
)
_MAX_TEXT = 500

SearchText = Annotated[str, Meta(max_length=_MAX_TEXT)]
Kind = Literal["drawn", "changed", "seen"]


class GalleryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which pictures to list."""

    q: Annotated[
        SearchText, Meta(description="Words of prompts, names of files and text in pictures.")
    ] = ""
    provider: SearchText = ""
    model: Annotated[SearchText, Meta(description="As provider/model.")] = ""
    session: SearchText = ""
    day: Annotated[SearchText, Meta(description="YYYY-MM-DD, in UTC.")] = ""
    min_usd: Annotated[float, Meta(ge=0, le=1e6)] = 0.0
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE)] = 60
    before: (
        Annotated[int, Meta(ge=1, le=2**62, description="Only pictures after this page's `next`.")]
        | None
    ) = None
    skip: Annotated[int, Meta(ge=0, le=10**9, description="How many to leave out first.")] = 0


class PictureSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A picture in a list. ``title`` is its prompt, or the name of its file."""

    id: int
    handle: str
    title: str
    kind: Kind
    mime: str
    width: int
    height: int
    bytes: int
    created_ms: int
    provider: str
    model: str
    session: str
    cost_usd: float


class PictureList(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the gallery; ``total`` counts all pictures, without filters."""

    pictures: list[PictureSummary]
    next: int | None
    total: int


class ModelCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many pictures a model drew."""

    name: str
    pictures: int


class GalleryChoices(msgspec.Struct, frozen=True, kw_only=True):
    """What the gallery can be filtered by."""

    models: list[ModelCount]


class PictureRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One picture."""

    handle: PictureHandle


class UploadRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of a picture, and the name of its file."""

    body: bytes
    name: SearchText = ""


class MaskRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of a mask, white in the parts of the picture that may change."""

    handle: PictureHandle
    body: bytes


class FileRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The file of a picture; with ``save`` the browser saves it as it was received."""

    handle: PictureHandle
    save: bool = False


async def list_pictures(studio: StudioParts, request: GalleryQuery) -> PictureList:
    """One page of the gallery."""
    wanted = GalleryFilter(
        words=request.q,
        provider=request.provider,
        model=request.model,
        session_id=request.session,
        day=request.day,
        cost_nano=round(request.min_usd * NANO_PER_USD),
    )
    page = await studio.lim.gallery.page(
        wanted, limit=request.limit, before=request.before, skip=request.skip
    )
    return PictureList(
        pictures=[*map(summary_of, page.pictures)], next=page.next_id, total=page.total
    )


async def add_picture(studio: StudioParts, request: UploadRequest) -> PictureRequest:
    """Take in a picture; a file that is known already is found again."""
    pictures = studio.lim.pictures
    with pictures.sink() as sink:
        sink.write(request.body)
        lineage = {"from": "user", "file": PurePath(request.name).name}
        taken = await pictures.take(sink, lineage=lineage)
    return PictureRequest(handle=taken.handle)


async def add_mask(studio: StudioParts, request: MaskRequest) -> PictureRequest:
    """Store a mask as a form of its picture, so that the gallery does not list it."""
    pictures = studio.lim.pictures
    picture = await pictures.recall(request.handle)
    with pictures.sink() as sink:
        sink.write(request.body)
        taken = await pictures.take(sink, lineage={"made": "mask"}, parent=picture)
    return PictureRequest(handle=taken.handle)


async def list_choices(studio: StudioParts, _: NoArguments) -> GalleryChoices:
    """What the gallery can be filtered by."""
    return GalleryChoices(
        models=[
            ModelCount(name=name, pictures=count)
            for name, count in await studio.lim.gallery.models()
        ]
    )


async def show_picture(studio: StudioParts, request: PictureRequest) -> PictureFacts:
    """Everything that is known about a picture."""
    return facts_of(await studio.lim.picture(request.handle).info())


async def show_thumbnail(studio: StudioParts, request: PictureRequest) -> FileAnswer:
    """A small picture, as WebP."""
    picture = await studio.lim.pictures.recall(request.handle)
    data = await studio.lim.thumbnails.get(picture)
    return FileAnswer(data=data, mime=thumbnails.MIME, is_fixed=True)


async def show_file(studio: StudioParts, request: FileRequest) -> FileAnswer:
    """The picture itself, of a type that browsers show; to save, as it was received."""
    picture = await studio.lim.pictures.recall(request.handle)
    if not request.save and picture.mime not in SHOWN_TYPES:
        fitted, data = await studio.lim.pictures.give(picture, _AS_PNG)
        return FileAnswer(data=data, mime=fitted.mime, is_fixed=True)
    name = f"{picture.handle[:12]}{file_suffix(picture.mime)}" if request.save else None
    data = await studio.lim.pictures.original(picture)
    return FileAnswer(data=data, mime=picture.mime, name=name, is_fixed=True)


def file_suffix(mime: str) -> str:
    """The suffix of a file of that type."""
    return SUFFIXES.get(mime, "." + mime.rpartition("/")[2].partition("+")[0])


def summary_of(one: GalleryPicture) -> PictureSummary:
    """A picture as lists show it."""
    picture, lineage = one.picture, one.lineage
    file = PurePath(str(lineage.get("file") or "")).name
    sheet = "Contact sheet" if lineage.get("made") == "sheet" else ""
    kind: Kind = "seen"
    if one.provider:
        kind = "drawn"
    elif lineage.get("made") in ("transform", "sheet"):
        kind = "changed"
    return PictureSummary(
        id=one.id,
        handle=picture.handle,
        title=str(lineage.get("prompt") or file or sheet)[:_MAX_TEXT],
        kind=kind,
        mime=picture.mime,
        width=picture.width,
        height=picture.height,
        bytes=picture.size_bytes,
        created_ms=one.created_ms,
        provider=one.provider,
        model=one.model,
        session=one.session_id,
        cost_usd=one.cost_nano / NANO_PER_USD,
    )


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/pictures",
        summary="List pictures, the newest first.",
        request=GalleryQuery,
        answer=PictureList,
        handler=list_pictures,
    ),
    Endpoint(
        method="POST",
        path="/api/pictures",
        summary="Take in a picture: the body is its bytes.",
        request=UploadRequest,
        answer=PictureRequest,
        handler=add_picture,
        takes_bytes=True,
    ),
    Endpoint(
        method="GET",
        path="/api/gallery",
        summary="List what the pictures can be filtered by.",
        request=NoArguments,
        answer=GalleryChoices,
        handler=list_choices,
    ),
    Endpoint(
        method="GET",
        path="/api/pictures/{handle}",
        summary="Say everything that is known about a picture.",
        request=PictureRequest,
        answer=PictureFacts,
        handler=show_picture,
    ),
    Endpoint(
        method="POST",
        path="/api/pictures/{handle}/masks",
        summary="Take in a mask for a picture: the body is its bytes, white where it may change.",
        request=MaskRequest,
        answer=PictureRequest,
        handler=add_mask,
        takes_bytes=True,
    ),
    Endpoint(
        method="GET",
        path="/api/pictures/{handle}/thumbnail",
        summary="Get a small picture, as WebP.",
        request=PictureRequest,
        answer=FileAnswer,
        handler=show_thumbnail,
    ),
    Endpoint(
        method="GET",
        path="/api/pictures/{handle}/file",
        summary="Get a picture to show, or to save as it was received.",
        request=FileRequest,
        answer=FileAnswer,
        handler=show_file,
    ),
)
