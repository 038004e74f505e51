"""A bearer token -> the client it belongs to, or None: a shared secret, or a signed token."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, cast

import jwt
import msgspec

from limner.frontends.server_token import ServerToken
from limner.net.http import Http, HttpError

logger = logging.getLogger("limner.frontends.mcp")

MAX_KEYS_BYTES = 1 << 20
# Keys are trusted for TRUST_S, so a revoked key is accepted for at most that long. If a token names
# a key that is unknown or no longer trusted, they are read again, at most every LOOK_AGAIN_S.
LOOK_AGAIN_S = 60.0
TRUST_S = 3600.0
# An issuer signs ID tokens with the same keys. They say who a user is, and give no access. The type
# of RFC 9068 tells an access token from all others; without it these claims do.
_ACCESS_TYPES = {"at+jwt", "application/at+jwt"}
_IDENTITY_CLAIMS = {"nonce", "at_hash", "c_hash", "s_hash", "events"}
# Only asymmetric signatures: the verifying key cannot sign.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]


class AccessToken(msgspec.Struct, frozen=True, kw_only=True):
    """What a valid token says: the program, the user it acts for, and what they may do."""

    client_id: str
    subject: str = ""
    scopes: tuple[str, ...] = ()


class Verifier(Protocol):
    """Checks tokens."""

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what the token says; None if it is not valid."""
        ...


class SharedSecret:
    """Accepts the token of the server."""

    def __init__(self, token: ServerToken) -> None:
        self._token = token

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the client of the token; None for another token."""
        if not self._token.matches(token):
            return None
        return AccessToken(client_id="limner")


class SignedTokens:
    """Accepts tokens that an issuer signed for this server (JWT, keys as a JWKS document).

    Args:
        issuer: the issuer, exactly as in the tokens.
        resource: the audience of the tokens: the address of this server.
        keys: the path or https URL of the JWKS document.
        clock: a monotonic clock, in seconds.
    """

    def __init__(
        self,
        *,
        issuer: str,
        resource: str,
        keys: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._issuer, self._resource, self._clock = issuer, resource, clock
        self._load = _source(keys)
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._tried_s = self._read_s = -math.inf
        self._reading = asyncio.Lock()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the client of the token; None if the token is not valid."""
        try:
            header = jwt.get_unverified_header(token)
            key = await self._key(header.get("kid"))
            if key is None:
                return None
            claims = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                audience=self._resource,
                issuer=self._issuer,
                options={"require": ["exp", "iss", "aud"]},
            )
        except (jwt.PyJWTError, ValueError):
            return None
        if not _gives_access(header, claims):
            return None
        return AccessToken(
            client_id=str(claims.get("client_id") or claims.get("azp") or claims.get("sub") or ""),
            subject=str(claims.get("sub") or ""),
            scopes=_scopes(claims),
        )

    async def _key(self, name: str | None) -> jwt.PyJWK | None:
        if (key := self._trusted_key(name)) is not None:
            return key
        async with self._reading:
            # Another request may have read the keys while this one waited.
            is_due = self._clock() - self._tried_s >= LOOK_AGAIN_S
            if is_due and self._trusted_key(name) is None:
                await self._read()
        return self._trusted_key(name)

    def _trusted_key(self, name: str | None) -> jwt.PyJWK | None:
        return self._keys.get(name) if self._clock() - self._read_s < TRUST_S else None

    async def _read(self) -> None:
        self._tried_s = self._clock()
        try:
            self._keys = _read_keys(await self._load())
        except (OSError, HttpError, jwt.PyJWTError, ValueError) as error:
            logger.warning("Cannot read the keys of %s: %s", self._issuer, error)
        else:
            self._read_s = self._tried_s


def _gives_access(header: Mapping[str, Any], claims: Mapping[str, Any]) -> bool:
    """Whether this is an access token, as far as it says."""
    kind = str(header.get("typ", "JWT")).lower()
    if kind in _ACCESS_TYPES:
        return True
    return (
        kind == "jwt"
        and not _IDENTITY_CLAIMS & claims.keys()
        and str(claims.get("typ", "Bearer")).lower() == "bearer"  # Keycloak
        and str(claims.get("token_use", "access")).lower() == "access"  # Cognito
    )


def _scopes(claims: Mapping[str, Any]) -> tuple[str, ...]:
    """The claim `scope`, a text with spaces, or the `scp` of some issuers, a text or a list."""
    given = claims.get("scope") or claims.get("scp") or ""
    if isinstance(given, list):
        return tuple(str(scope) for scope in cast("list[object]", given))
    return tuple(str(given).split())


def _source(keys: str) -> Callable[[], Awaitable[bytes]]:
    if not keys.startswith("https://"):
        path = Path(keys).expanduser()
        return lambda: asyncio.to_thread(path.read_bytes)

    async def fetch() -> bytes:
        http = Http()
        try:
            async with http.client().stream("GET", keys) as response:
                response.raise_for_status()
                found = bytearray()
                async for piece in response.aiter_bytes():
                    found += piece
                    if len(found) > MAX_KEYS_BYTES:
                        raise ValueError("the JWKS document is too long")
                return bytes(found)
        finally:
            await http.aclose()

    return fetch


def _read_keys(document: bytes) -> dict[str | None, jwt.PyJWK]:
    data: Any = json.loads(document)
    if not isinstance(data, dict):
        raise ValueError("it is not a JWKS document")
    found = jwt.PyJWKSet.from_dict(cast("dict[str, Any]", data))
    return {key.key_id: key for key in found.keys}
