"""A request -> whether it comes from the page of this studio, or from a program with its token.

The address that the user opens has a secret that is exchanged once for a cookie. The cookie is
signed with a key of the home, so that a page goes on after a restart of the server. A program sends
the token of the server instead, as to every other server of limner.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from limner.errors import OutputExists
from limner.frontends.http_listener import refusal_of_names
from limner.frontends.server_token import ServerToken
from limner.storage.files import write_new
from limner.storage.home import Home
from limner.storage.os_errors import disk_errors

COOKIE_S = 30 * 24 * 60 * 60
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_KEY_BYTES = 32


class StudioAccess:
    """Who may use one server.

    Args:
        hosts: the values of the header Host that name the server.
        port: cookies of one host are shared by all its ports, so the name of ours has the port.
        token: what programs send.
        key: signs the cookies.
        is_secure: a proxy in front of the server speaks TLS.
    """

    def __init__(
        self,
        *,
        hosts: frozenset[str],
        port: int,
        token: ServerToken,
        key: bytes,
        is_secure: bool = False,
    ) -> None:
        self._hosts, self._token, self._key = hosts, token, key
        self._cookie, self._is_secure = f"limner-studio-{port}", is_secure
        self._invitation: str | None = None

    def invite(self) -> str:
        """A new secret for the address of the page; one that was made before ends."""
        self._invitation = secrets.token_urlsafe(32)
        return self._invitation

    def accept(self, invitation: str) -> str | None:
        """Exchange the secret for the header Set-Cookie; None if it is wrong, or was used."""
        expected = self._invitation
        if expected is None or not hmac.compare_digest(invitation.encode(), expected.encode()):
            return None
        self._invitation = None
        until = int(time.time()) + COOKIE_S
        value = f"{until}.{self._sign(until)}"
        secure = "; Secure" if self._is_secure else ""
        return (
            f"{self._cookie}={value}; Max-Age={COOKIE_S}; Path=/; HttpOnly; SameSite=Strict{secure}"
        )

    def refusal_of_names(self, headers: Headers) -> HTTPStatus | None:
        """Why a request to another name, or of another page, is refused; else None."""
        origins = headers.getlist("origin")
        if len(headers.getlist("host")) != 1 or len(origins) > 1:
            return HTTPStatus.BAD_REQUEST
        origin = origins[0] if origins else None
        return refusal_of_names(self._hosts, host=headers["host"], origin=origin)

    def refusal(self, method: str, headers: Headers) -> HTTPStatus | None:
        """Why a request without a valid cookie or token is refused; else None."""
        given = headers.getlist("authorization")
        if given:
            return None if self._token.authorizes(given) else HTTPStatus.UNAUTHORIZED
        if not self.has_cookie(headers):
            return HTTPStatus.UNAUTHORIZED
        # Pages of other ports of this machine are "same-site" and send the cookie too.
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return HTTPStatus.FORBIDDEN
        if method not in SAFE_METHODS and "origin" not in headers:
            return HTTPStatus.FORBIDDEN
        return None

    def has_cookie(self, headers: Headers) -> bool:
        """Whether a request has a cookie that this home signed, and that has not ended."""
        # Not `http.cookies`, which drops all cookies if another server wrote one that is not valid.
        found = cookie_parser(headers.get("cookie", "")).get(self._cookie, "")
        until, _, signature = found.partition(".")
        if not (until.isascii() and until.isdecimal() and len(until) <= 12):
            return False
        is_ours = hmac.compare_digest(signature.encode(), self._sign(int(until)).encode())
        return is_ours and int(until) > time.time()

    def _sign(self, until: int) -> str:
        message = f"{self._cookie} {until}".encode()
        return hmac.new(self._key, message, hashlib.sha256).hexdigest()


def cookie_key(home: Home) -> bytes:
    """The key that signs the cookies of a home; the first server makes it.

    Raises:
        StorageError: it cannot be read or written.
    """
    file = Path(home.tokens.resolve(), "studio-cookies")
    with suppress(OutputExists):
        write_new(file, secrets.token_bytes(_KEY_BYTES), mode=0o600)
    with disk_errors(doing="read", path=file):
        key = file.read_bytes()
    if len(key) == _KEY_BYTES:
        return key
    # A damaged file only ends the cookies.
    write_new(file, key := secrets.token_bytes(_KEY_BYTES), overwrite=True, mode=0o600)
    return key
