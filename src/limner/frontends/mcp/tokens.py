"""A bearer token -> whose it is, or nobody's: a secret of our own, or one an issuer has signed."""

from __future__ import annotations

import hmac
import json
import logging
import math
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import anyio.to_thread
import jwt
from mcp.server.auth.provider import AccessToken

from limner.errors import UserError
from limner.net.http import Http, HttpError

logger = logging.getLogger("limner")

MIN_SECRET_CHARS = 16
MAX_KEYS_BYTES = 1 << 20
# A key that nobody has heard of is looked for this often; one that was withdrawn is trusted no
# longer than this.
LOOK_AGAIN_S = 60.0
TRUST_S = 3600.0
# Signatures that whoever checks them cannot make.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]


class SharedSecret:
    """Accepts one token.

    Raises:
        UserError: it is too short to be one.
    """

    def __init__(self, secret: str) -> None:
        if len(secret) < MIN_SECRET_CHARS:
            raise UserError(
                f"the token has fewer than {MIN_SECRET_CHARS} characters",
                hint="Make one: python3 -c 'import secrets; print(secrets.token_urlsafe())'",
            )
        self._secret = secret.encode()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Whose token it is; None for any other."""
        if not hmac.compare_digest(token.encode(), self._secret):
            return None
        return AccessToken(token=token, client_id="limner", scopes=[])


class SignedTokens:
    """Accepts tokens that an issuer signed for this server (JWT, keys as a JWKS document).

    Args:
        issuer: who signs, word for word as in the tokens.
        resource: what the tokens must be for: the address of this server.
        keys: a file, or an https address.
        clock: seconds that only grow.
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
        self._read_s = -math.inf

    async def verify_token(self, token: str) -> AccessToken | None:
        """Whose token it is; None where it is not valid here and now."""
        try:
            key = await self._key(jwt.get_unverified_header(token).get("kid"))
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
        return AccessToken(
            token=token,
            client_id=str(claims.get("client_id") or claims.get("azp") or claims.get("sub") or ""),
            scopes=str(claims.get("scope", "")).split(),
            expires_at=int(claims["exp"]),
            resource=self._resource,
            subject=claims.get("sub"),
            claims={"iss": self._issuer},
        )

    async def _key(self, name: str | None) -> jwt.PyJWK | None:
        age_s = self._clock() - self._read_s
        if age_s >= (TRUST_S if name in self._keys else LOOK_AGAIN_S):
            self._read_s = self._clock()
            try:
                self._keys = _read_keys(await self._load())
            except (OSError, HttpError, jwt.PyJWTError, ValueError) as error:
                logger.warning("The keys of %s cannot be read: %s", self._issuer, error)
        return self._keys.get(name)


def _source(keys: str) -> Callable[[], Awaitable[bytes]]:
    if not keys.startswith("https://"):
        path = Path(keys).expanduser()
        return lambda: anyio.to_thread.run_sync(path.read_bytes)

    async def fetch() -> bytes:
        http = Http()
        try:
            async with http.client().stream("GET", keys) as answer:
                answer.raise_for_status()
                found = bytearray()
                async for piece in answer.aiter_bytes():
                    found += piece
                    if len(found) > MAX_KEYS_BYTES:
                        raise ValueError("the document of keys is too long")
                return bytes(found)
        finally:
            await http.aclose()

    return fetch


def _read_keys(document: bytes) -> dict[str | None, jwt.PyJWK]:
    read: Any = json.loads(document)
    if not isinstance(read, dict):
        raise ValueError("it is no document of keys")
    found = jwt.PyJWKSet.from_dict(cast("dict[str, Any]", read))
    return {key.key_id: key for key in found.keys}
