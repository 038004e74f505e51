"""Text that may contain secrets -> text without them, for messages, debug lines and errors."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

# Keys are ASCII, so the mark cannot be part of a key.
MARK = "•••"
# Users set a dummy key for servers without keys; hiding "x" or "none" would spoil the message.
MIN_SECRET_CHARS = 6

# In a result, a dummy key such as "ollama" or "lm-studio" is more likely a word than the key.
_DUMMY_KEY = r"[a-z-]{0,15}|.{0,7}"

# Request and response headers that contain no secret. Every other header counts as one.
HARMLESS_HEADERS = frozenset(
    {
        *("accept", "accept-encoding", "accept-ranges", "age", "anthropic-beta"),
        *("anthropic-version", "cache-control", "cf-ray", "connection", "content-disposition"),
        *("content-encoding", "content-length", "content-range", "content-type", "date"),
        *("etag", "expires", "host", "keep-alive", "last-modified", "openai-processing-ms"),
        *("openai-version", "prefer", "request-id", "retry-after", "retry-after-ms", "server"),
        *("strict-transport-security", "transfer-encoding", "user-agent", "vary", "via"),
        *("x-content-type-options", "x-ratelimit-limit-requests", "x-ratelimit-limit-tokens"),
        *("x-ratelimit-remaining-requests", "x-ratelimit-remaining-tokens"),
        *("x-ratelimit-reset-requests", "x-ratelimit-reset-tokens", "x-request-id"),
        *("x-should-retry",),
    }
)

# Compiled at the first use, because that takes as long as loading a module.
_KEY_SHAPES = r"""(?xi)
      (?<![A-Za-z0-9])(?:sk-|r8_|xai-|hf_|ghp_|AIza)[A-Za-z0-9_*.-]{4,}
    | (?P<scheme>\bAuthorization['"]?\s*[:=]\s*['"]?(?:(?:Bearer|Basic|Token)\s+)?)[^\s"',;]+
    | (?P<bearer>\bBearer\s+)(?=\S*[\d._~+/=-])[^\s"',;]{8,}
    | (?P<name>\b(?:[\w-]{0,32}(?:key|token|secret)|password|sig|signature)
        (?:=|%3D|\\?"\s*:\s*\\?"))[^\s&"'\\;,]+
    """
# The user and the password of a URL; a password may contain an unescaped @.
_USERINFO = r"(?i)\b([a-z][a-z0-9+.-]{0,30}://)[^\s/?#\"'<>]{1,500}@"
# Longer than any word or hash, shorter than the smallest useful picture.
_BASE64 = r"(?:data:[\w.+/;=-]{1,100},)?(?:[A-Za-z0-9+/_-]|\\/){160,}={0,2}"


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Replace the given secrets, everything that looks like a key, and base64 data by a mark.

    A secret is found in its plain form, and also if all or part of it is JSON-escaped or
    percent-encoded. A secret of fewer than six characters is ignored. URLs lose their user and
    their password.
    """
    text = drop_userinfo(_hide(text, [one for one in secrets if len(one) >= MIN_SECRET_CHARS]))
    return re.sub(_KEY_SHAPES, _mark, re.sub(_BASE64, MARK, text))


def mask_secrets(text: str, secrets: Iterable[str]) -> str:
    """Replace the given secrets in a result, and nothing that only looks like one.

    A result is text that the user wants as it is, such as a revised prompt.
    """
    # The whole search is slow, and results may be megabytes. No encoder escapes letters and digits.
    found = [one for one in secrets if _core(one) in text and re.fullmatch(_DUMMY_KEY, one) is None]
    return _hide(text, found) if found else text


def drop_userinfo(text: str) -> str:
    """Remove the user and the password from every URL in a text."""
    return re.sub(_USERINFO, r"\1", text) if "://" in text else text


def header_secrets(headers: Mapping[str, str]) -> tuple[str, ...]:
    """The secrets in the headers of a request: all values that are not known to be harmless."""
    values = (value for name, value in headers.items() if name.lower() not in HARMLESS_HEADERS)
    return tuple(secret for value in values for secret in _credentials(value))


def basic_authorization(user: str, password: str) -> str:
    """The value of an ``Authorization`` header."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def _credentials(value: str) -> Iterator[str]:
    """The last word of a header, and for a user with a password also the decoded forms."""
    scheme, _, last = value.strip().rpartition(" ")
    yield last
    if scheme.lower() == "basic":
        try:
            pair = base64.b64decode(last, validate=True).decode()
        except ValueError:
            return
        yield pair
        # Without a password the user is the key.
        yield pair.partition(":")[2] or pair.partition(":")[0]


@lru_cache(maxsize=64)
def _core(secret: str) -> str:
    """The longest run of letters and digits."""
    return max(re.findall(r"[A-Za-z0-9]+", secret), key=len, default=secret)


def _hide(text: str, secrets: list[str]) -> str:
    known = _pattern(tuple(sorted(set(secrets))))
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
