"""A message as a user types, pastes or drops it -> the picture files that it names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from limner.errors import InputInvalid, ReachDenied
from limner.tools.base import ToolContext
from limner.tools.file_lookup import find_file, plain_path

# A suffix is cheap to check. The bytes decide later whether it is a picture.
SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".jfif", ".gif", ".webp", ".avif", ".bmp"}
    | {".heic", ".heif", ".ico", ".pdf", ".svg", ".tif", ".tiff"}
)

_TOKEN = re.compile(
    r"""(?<!\S)(?:
        '(?P<single>[^'\n]+)'
      | "(?P<double>[^"\n]+)"
      | (?P<bare>(?:\\.|[^\s\\])+)
    )""",
    re.VERBOSE,
)
_AROUND = "`'\"“”‘’()[]<>,.;:!?…"  # noqa: RUF001 - quotes of several languages


def find_pictures(message: str, context: ToolContext) -> list[Path]:
    """The picture files that a message names, each once, in order."""
    alone = find_picture(message, context)
    if alone is not None:
        return [alone]
    found = (find_picture(token, context) for token in _tokens(message))
    return list(dict.fromkeys(path for path in found if path is not None))


def is_only_pictures(message: str, context: ToolContext) -> bool:
    """Whether a message is paths of pictures and nothing else."""
    if find_picture(message, context) is not None:
        return True
    tokens = [match[0] for match in _TOKEN.finditer(message)]
    return bool(tokens) and all(find_picture(token, context) is not None for token in tokens)


def find_picture(text: str, context: ToolContext) -> Path | None:
    """The picture file of a path: plain, quoted, escaped or a file URL."""
    try:
        name = plain_path(text, field="path")
        if os.path.splitext(name)[1].lower() not in SUFFIXES:  # noqa: PTH122 - any text, not a path
            return None
        path = find_file(text, context)
        return path if path.is_file() else None
    except (InputInvalid, ReachDenied, OSError, ValueError):
        return None


def _tokens(message: str) -> Iterator[str]:
    """The pieces of a message that may be paths, each also without its punctuation."""
    for match in _TOKEN.finditer(message):
        if match["bare"] is None:
            yield match["single"] or match["double"]
            continue
        yield match["bare"]
        if (bare := match["bare"].strip(_AROUND)) != match["bare"]:
            yield bare
