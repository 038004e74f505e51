"""Text that may contain secrets -> text without them, for messages, debug lines and errors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

# Keys are ASCII, so the mark cannot be part of a key.
MARK = "•••"
# Users set a dummy key for servers without keys; hiding "x" or "none" would spoil the message.
MIN_SECRET_CHARS = 6

# Compiled at the first use, because that takes as long as loading a module.
_KEY_SHAPES = r"""(?xi)
      (?<![A-Za-z0-9])(?:sk-|r8_|xai-|hf_|ghp_|AIza)[A-Za-z0-9_*.-]{4,}
    | (?P<scheme>\bAuthorization['"]?\s*[:=]\s*['"]?(?:(?:Bearer|Basic|Token)\s+)?)[^\s"',;]+
    | (?P<bearer>\bBearer\s+)(?=\S*[\d._~+/=-])[^\s"',;]{8,}
    | (?P<name>\b(?:[\w-]{0,32}(?:key|token|secret)|password|sig|signature)
        (?:=|%3D|\\?"\s*:\s*\\?"))[^\s&"'\\;,]+
    """
# Longer than any word or hash, shorter than the smallest useful picture.
_BASE64 = r"(?:data:[\w.+/;=-]{1,100},)?(?:[A-Za-z0-9+/_-]|\\/){160,}={0,2}"


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Replace the given secrets, everything that looks like a key, and base64 data by a mark.

    A secret is found in its plain form, and also if all or part of it is JSON-escaped or
    percent-encoded. A secret of fewer than six characters is ignored.
    """
    return re.sub(_KEY_SHAPES, _mark, re.sub(_BASE64, MARK, redact_known(text, secrets)))


def redact_known(text: str, secrets: Iterable[str]) -> str:
    """Replace only the given secrets: for a text that the user has to get as it is."""
    known = _pattern(
        tuple(sorted({secret for secret in secrets if len(secret) >= MIN_SECRET_CHARS}))
    )
    return text if known is None else known.sub(MARK, text)


def _mark(match: re.Match[str]) -> str:
    return (match["scheme"] or match["bearer"] or match["name"] or "") + MARK


@lru_cache(maxsize=16)
def _pattern(secrets: tuple[str, ...]) -> re.Pattern[str] | None:
    if not secrets:
        return None
    # The longest first: if one key begins with another, the rest of it must not remain.
    longest_first = sorted(secrets, key=len, reverse=True)
    return re.compile("|".join("".join(map(_any_spelling, secret)) for secret in longest_first))


def _any_spelling(character: str) -> str:
    """A pattern for one character: plain, JSON-escaped or percent-encoded."""
    percent = "".join(f"%(?:25){{0,3}}(?i:{byte:02x})" for byte in _utf8(character))
    units = _utf16_units(character)
    escape = "".join(rf"\\{{1,8}}u(?i:{unit:04x})" for unit in units)
    return rf"(?:\\{{0,8}}{re.escape(character)}|{escape}|{percent})"


def _utf8(character: str) -> bytes:
    return character.encode("utf-8", "surrogatepass")


def _utf16_units(character: str) -> list[int]:
    raw = character.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(raw[at : at + 2], "big") for at in range(0, len(raw), 2)]
