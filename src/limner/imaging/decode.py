"""Untrusted bytes -> a format and an opened picture, or a refusal that says what to do.

Runs inside a worker only. The first bytes choose the decoder; the decoder of a format that is not
accepted is never loaded.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import cast

from PIL import UnidentifiedImageError

from limner.errors import CorruptImage, UnrecognizedImage
from limner.imaging.decoders import Decoder, OpenedPicture, check_page
from limner.imaging.formats import BY_NAME, HEAD_BYTES, Format, sniff
from limner.imaging.limits import WorkerLimits
from limner.imaging.orientation import check_pixels

# The package that each extra installs.
_PACKAGES = {"heic": "pillow_heif", "pdf": "pypdfium2"}


def load_decoders(limits: WorkerLimits) -> None:
    """Load the decoder of every accepted format, since a sandboxed worker should load no code."""
    for name in limits.accept:
        _decoder(BY_NAME[name])


def open_picture(
    data: bytes, *, limits: WorkerLimits, page: int = 1, large: bool = False
) -> tuple[Format, OpenedPicture]:
    """Open a picture, or that page of it, with the one decoder that its first bytes name.

    A caller that reads a ``large`` picture in parts says so; to any other one it is refused.

    Raises:
        UnrecognizedImage: its format is not accepted here.
        ImageTooLarge: its header claims more pixels than allowed; no pixel was decoded.
        CorruptImage: its header is damaged, or the page or the palette is missing.
        UnsafeSvg: it is an SVG document with something that is not allowed.
    """
    form = sniff(data[:HEAD_BYTES])
    if form is None or form.name not in limits.accept:
        raise _refusal(data, form, limits)
    decoder = _decoder(form)
    if decoder is None:
        message = f"this is {form.label}, and the package that decodes it is not installed"
        raise UnrecognizedImage(message, hint=_install(form))
    try:
        opened = decoder(data, page=page, limits=limits)
    except UnidentifiedImageError:
        message = f"this begins like {form.label}, but its header is damaged or of a rare kind"
        raise CorruptImage(message) from None
    if opened.reader is not None and not large:
        check_pixels(
            opened.size,
            max_pixels=limits.max_pixels,
            hint="only `fit`, `inspect` and previews accept more: fit the picture first",
        )
    check_page(page, opened.pages)
    # Pillow notices this only when it converts the picture, and then fails an assertion.
    if opened.image.mode == "P" and opened.image.palette is None:
        raise CorruptImage("the picture has no palette")
    return form, opened


@cache
def _decoder(form: Format) -> Decoder | None:
    """The function that opens a format; None if its extra is not installed."""
    assert form.decoder is not None
    module, _, name = form.decoder.partition(":")
    try:
        found = import_module(f"limner.imaging.decoders.{module}")
    except ImportError:
        if form.extra is None:
            raise
        return None
    return cast("Decoder", getattr(found, name))


def _refusal(data: bytes, form: Format | None, limits: WorkerLimits) -> UnrecognizedImage:
    titles = [BY_NAME[name].title for name in limits.accept]
    hint = f"use a {', '.join(titles[:-1])} or {titles[-1]} file"
    if not data:
        return UnrecognizedImage("the file is empty", hint=hint)
    if form is None:
        return UnrecognizedImage("the first bytes match no known image format", hint=hint)
    if form.decoder is not None:
        names = ",".join((*limits.accept, form.name))
        hint = f"{hint}, or set images.accept (LIMNER_IMAGES_ACCEPT={names})"
        if not _is_installed(form):
            hint = f"{hint} and run: {_install(form)}"
    return UnrecognizedImage(f"this is {form.label}, which is not accepted here", hint=hint)


def _is_installed(form: Format) -> bool:
    return form.extra is None or find_spec(_PACKAGES[form.extra]) is not None


def _install(form: Format) -> str:
    return f"pip install 'limner[{form.extra}]'"
