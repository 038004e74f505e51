"""Words as people type, paste and drop them -> the picture files that are named in them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from limner.errors import ReachDenied
from limner.tools.base import ToolContext
from limner.tools.file_lookup import find_file

# A name is a hint that is cheap to check; whether it is a picture, its bytes decide.
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
_AROUND = "`'\"“”‘’()[]<>,.;:!?…"  # noqa: RUF001 - the quotes that people write


def pictures_in(words: str, context: ToolContext) -> list[Path]:
    """The picture files that words name, each once, in their order."""
    alone = named_picture(words, context)
    if alone is not None:
        return [alone]
    found = (named_picture(token, context) for token in _tokens(words))
    return list(dict.fromkeys(path for path in found if path is not None))


def is_alone(words: str, context: ToolContext) -> bool:
    """Whether words are the paths of pictures, and nothing else."""
    if named_picture(words, context) is not None:
        return True
    tokens = [match[0] for match in _TOKEN.finditer(words)]
    return bool(tokens) and all(named_picture(token, context) is not None for token in tokens)


def named_picture(text: str, context: ToolContext) -> Path | None:
    """The picture file of a path as it is written, quoted, escaped or as a file URL."""
    name = _unquoted(text.strip())
    if name.startswith("file://"):
        name = _of_url(name)
    if os.path.splitext(name)[1].lower() not in SUFFIXES:  # noqa: PTH122 - any text, not a path
        return None
    try:
        path = find_file(name, context)
        return path if path.is_file() else None
    except (ReachDenied, OSError, ValueError):
        return None


def _tokens(words: str) -> Iterator[str]:
    """The pieces of words that may be paths, and each without the punctuation around it."""
    for match in _TOKEN.finditer(words):
        if match["bare"] is None:
            yield match["single"] or match["double"]
            continue
        yield match["bare"]
        if (bare := match["bare"].strip(_AROUND)) != match["bare"]:
            yield bare


def _unquoted(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if is_quoted else text


def _of_url(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return unquote(parts.path) if parts.netloc in ("", "localhost") else ""
