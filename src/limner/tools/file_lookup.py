"""A path as people, shells and screenshots write it -> the file that is meant, within reach.

macOS names its screenshots with a narrow space before AM and PM, stores accents apart from their
letters, and likes curly quotes; a terminal puts backslashes before spaces. None of these survive
being copied by a model.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from limner.errors import InputInvalid, ReachDenied
from limner.tools.base import ToolContext

NARROW_SPACE = "\u202f"
CURLY_QUOTE = "\u2019"
_ESCAPED = r"\\([ \t'\"()\[\]{}&;$!*?<>|`#~\\])"
_BEFORE_AM_PM = r"(?i) (?=(?:AM|PM)\.)"
_URL = r"[A-Za-z][A-Za-z0-9+.-]+://"
_VARIABLE = r"(?:^|/)(?:\$(?:\w+|\{[^}]*\})|%\w+%)"
_DRIVE = r"[A-Za-z]:[\\/]"
_QUOTES = "'\"`"
_MAX_PATH_BYTES, _MAX_NAME_BYTES = 4_095, 255
_OUTPUT_HINT = "Pictures are written to files: give the path of one."
_SHOWN_CHARS = 80


def find_file(text: str, context: ToolContext) -> Path:
    """The file that a path names, as it is written or nearly so.

    A relative path is looked for in the working folder, then in the other folders of the context.
    If no variant of it exists, the result is the path itself.

    Raises:
        ReachDenied: the path is out of reach.
        InputInvalid: it is not a path, as `plain_path` says.
    """
    literal = context.reach.resolve_read(text, cwd=context.cwd)
    if os.path.lexists(literal):
        return literal
    meant = plain_path(text, field="path")
    for folder in (context.cwd, *context.more_folders):
        for variant in (meant, *variants(meant)):
            with suppress(ReachDenied):
                path = context.reach.resolve_read(variant, cwd=folder)
                if os.path.lexists(path):
                    return path
    return context.reach.resolve_read(meant, cwd=context.cwd)


def plain_path(text: str, *, field: str) -> str:
    """The path in a text: without blanks and quotes around it, and without ``@`` or ``file://``.

    Raises:
        InputInvalid: it is a web address, a path of another system or longer than any path, or it
            has a variable in it.
    """
    path = text.strip()
    if len(path) > 1 and path[0] == path[-1] and path[0] in _QUOTES:
        path = path[1:-1].strip()
    path = path.removeprefix("@") if len(path) > 1 else path
    if path.lower().startswith("file:"):
        path = _path_of_url(path)
    names = path.encode(errors="replace").split(b"/")
    if len(path) > _MAX_PATH_BYTES or max(map(len, names)) > _MAX_NAME_BYTES:
        # It is not shown: it may be the text of a picture.
        raise InputInvalid("the path is too long", field=field, hint="Give the path of a file.")
    shown = repr(path[:_SHOWN_CHARS])
    if re.match(_URL, path) or path.lower().startswith("data:"):
        is_input = field == "path"
        hint = "Download it first, and give the path of the file." if is_input else _OUTPUT_HINT
        raise InputInvalid(f"{shown} is an address, not a path", field=field, hint=hint)
    if re.search(_VARIABLE, path):
        hint = "Variables in a path are not replaced: write the folder itself."
        raise InputInvalid(f"{shown} has a variable in it", field=field, hint=hint)
    if os.sep == "/" and re.match(_DRIVE, path):
        hint = "Give a path of this machine, with slashes."
        raise InputInvalid(f"{shown} is a path of Windows", field=field, hint=hint)
    return path


def _path_of_url(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    from urllib.request import url2pathname  # noqa: PLC0415 - loads an HTTP client

    return url2pathname(parts.path) if parts.netloc in ("", "localhost") else url


def variants(text: str) -> Iterator[str]:
    """The other ways to write a path, most likely first, each once."""
    seen = {text}
    unescaped = re.sub(_ESCAPED, r"\1", text)
    for base in (text, unescaped):
        decomposed = unicodedata.normalize("NFD", base)
        for variant in (
            base,
            re.sub(_BEFORE_AM_PM, NARROW_SPACE, base),
            decomposed,
            base.replace("'", CURLY_QUOTE),
            decomposed.replace("'", CURLY_QUOTE),
        ):
            if variant not in seen:
                seen.add(variant)
                yield variant
