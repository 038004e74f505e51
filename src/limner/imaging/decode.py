"""Untrusted bytes -> a format and an opened picture, or a refusal that says what to do.

Runs inside a worker only. The first bytes choose the reader; one that is not accepted is not even
loaded.
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

# The package that each extra installs.
_PACKAGES = {"heic": "pillow_heif", "pdf": "pypdfium2"}


def prepare(limits: WorkerLimits) -> None:
    """Load every reader that is accepted, so that none is loaded once the worker is locked down."""
    for name in limits.accept:
        _reader(BY_NAME[name])


def open_picture(
    data: bytes, *, limits: WorkerLimits, page: int = 1
) -> tuple[Format, OpenedPicture]:
    """Open a picture, or that page of it, with the one decoder that its first bytes name.

    Raises:
        UnrecognizedImage: it is of no format that is accepted here.
        ImageTooLarge: its header claims more pixels than are accepted; none were touched.
        CorruptImage: its header is damaged, or it has no such page, or no palette for its colours.
        UnsafeSvg: it is a drawing that asks for more than drawing.
    """
    form = sniff(data[:HEAD_BYTES])
    if form is None or form.name not in limits.accept:
        raise _refusal(data, form, limits)
    reader = _reader(form)
    if reader is None:
        message = f"this is {form.label}, and the package that reads it is not installed"
        raise UnrecognizedImage(message, hint=_install(form))
    try:
        opened = reader(data, page=page, limits=limits)
    except UnidentifiedImageError:
        message = f"this begins like {form.label}, but its header is damaged or of a rare kind"
        raise CorruptImage(message) from None
    check_page(page, opened.pages)
    # Pillow notices only when it converts such a picture, and then by an assertion.
    if opened.image.mode == "P" and opened.image.palette is None:
        raise CorruptImage("the picture has no palette")
    return form, opened


@cache
def _reader(form: Format) -> Decoder | None:
    """The function that reads a format; None where its extra is not installed."""
    assert form.reader is not None
    module, _, name = form.reader.partition(":")
    try:
        found = import_module(f"limner.imaging.decoders.{module}")
    except ImportError:
        if form.extra is None:
            raise
        return None
    return cast("Decoder", getattr(found, name))


def _is_installed(form: Format) -> bool:
    return form.extra is None or find_spec(_PACKAGES[form.extra]) is not None


def _refusal(data: bytes, form: Format | None, limits: WorkerLimits) -> UnrecognizedImage:
    titles = [BY_NAME[name].title for name in limits.accept]
    hint = f"use a {', '.join(titles[:-1])} or {titles[-1]} file"
    if not data:
        return UnrecognizedImage("the file is empty", hint=hint)
    if form is None:
        return UnrecognizedImage("the first bytes match no known image format", hint=hint)
    if form.reader is not None:
        names = ",".join((*limits.accept, form.name))
        hint = f"{hint}, or set images.accept (LIMNER_IMAGES_ACCEPT={names})"
        if not _is_installed(form):
            hint = f"{hint} and run: {_install(form)}"
    return UnrecognizedImage(f"this is {form.label}, which is not accepted here", hint=hint)


def _install(form: Format) -> str:
    return f"pip install 'limner[{form.extra}]'"
