"""Whose token it is."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm

from limner.frontends.mcp.tokens import (
    LOOK_AGAIN_S,
    TRUST_S,
    AccessToken,
    SharedSecret,
    SignedTokens,
)
from limner.frontends.server_token import ServerToken

SECRET = "a-secret-of-some-length"
ISSUER, RESOURCE = "https://issuer.example", "https://limner.example/mcp"


class Issuer:
    """Signs tokens, and publishes its keys in a file."""

    def __init__(self, folder: Path) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.file = folder / "jwks.json"
        self.publish(first=self.key)

    def publish(self, **keys: Any) -> None:
        found = [
            {**ECAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": name, "use": "sig"}
            for name, key in keys.items()
        ]
        self.file.write_text(json.dumps({"keys": found}))

    def sign(
        self,
        key: Any = None,
        *,
        kid: str = "first",
        alg: str = "ES256",
        kind: str | None = None,
        **more: Any,
    ) -> str:
        claims = {
            "iss": ISSUER,
            "aud": RESOURCE,
            "sub": "ada",
            "client_id": "studio",
            "scope": "draw look",
            "exp": int(time.time()) + 60,
            **more,
        }
        told = {name: value for name, value in claims.items() if value is not None}
        headers = {"kid": kid} if kind is None else {"kid": kid, "typ": kind}
        return jwt.encode(told, key or self.key, algorithm=alg, headers=headers)


@pytest.fixture
def issuer(tmp_path: Path) -> Issuer:
    return Issuer(tmp_path)


@pytest.fixture
def tokens(issuer: Issuer) -> SignedTokens:
    return SignedTokens(issuer=ISSUER, resource=RESOURCE, keys=str(issuer.file))


async def test_a_shared_secret_is_the_only_one() -> None:
    secret = SharedSecret(ServerToken(value=SECRET))
    assert await secret.verify_token(SECRET) == AccessToken(client_id="limner")
    for other in ("", SECRET[:-1], f"{SECRET}x", "ü"):
        assert await secret.verify_token(other) is None


async def test_a_token_that_the_issuer_signed_for_us_is_whose_it_says(
    issuer: Issuer, tokens: SignedTokens
) -> None:
    assert await tokens.verify_token(issuer.sign()) == AccessToken(
        client_id="studio", scopes=("draw", "look"), subject="ada"
    )


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "https://other.example/mcp"},
        {"aud": None},
        {"iss": "https://evil.example"},
        {"iss": None},
        {"exp": 1},
        {"exp": None},
        {"nbf": 2**40},
    ],
    ids=str,
)
async def test_a_token_for_another_place_or_time_is_nobodys(
    issuer: Issuer, tokens: SignedTokens, claims: dict[str, Any]
) -> None:
    assert await tokens.verify_token(issuer.sign(**claims)) is None


async def test_a_signature_of_somebody_else_is_nobodys(
    issuer: Issuer, tokens: SignedTokens
) -> None:
    stranger = ec.generate_private_key(ec.SECP256R1())
    assert await tokens.verify_token(issuer.sign(stranger)) is None
    assert await tokens.verify_token(issuer.sign(stranger, kid="second")) is None


async def test_what_is_public_cannot_be_made_into_a_secret(
    issuer: Issuer, tokens: SignedTokens
) -> None:
    """The oldest trick: the public key as the key of a symmetric signature, or no signature."""
    public = json.loads(issuer.file.read_text())["keys"][0]["x"]
    assert await tokens.verify_token(issuer.sign(public, alg="HS256")) is None
    unsigned = jwt.encode({"iss": ISSUER}, "", algorithm="none", headers={"kid": "first"})
    assert await tokens.verify_token(unsigned) is None
    another = rsa.generate_private_key(65537, 2048)
    assert await tokens.verify_token(issuer.sign(another, alg="RS256")) is None


@pytest.mark.parametrize(
    "told",
    [
        {"typ": "ID"},
        {"typ": "Refresh"},
        {"nonce": "n"},
        {"at_hash": "h"},
        {"events": {}},
        {"token_use": "id"},
        {"kind": "logout+jwt"},
        {"kind": "secevent+jwt"},
    ],
    ids=str,
)
async def test_a_token_that_says_who_the_user_is_gives_no_access(
    issuer: Issuer, tokens: SignedTokens, told: dict[str, Any]
) -> None:
    assert await tokens.verify_token(issuer.sign(**told)) is None


@pytest.mark.parametrize(
    "told",
    [
        {"kind": "at+jwt"},
        {"kind": "AT+JWT", "nonce": "n"},
        {"kind": "application/at+jwt"},
        {"typ": "Bearer", "sid": "s", "auth_time": 1},
        {"token_use": "access"},
    ],
    ids=str,
)
async def test_the_access_tokens_of_known_issuers_are_accepted(
    issuer: Issuer, tokens: SignedTokens, told: dict[str, Any]
) -> None:
    assert await tokens.verify_token(issuer.sign(**told)) is not None


@pytest.mark.parametrize(
    ("told", "scopes"),
    [
        ({"scope": "draw look"}, ["draw", "look"]),
        ({"scope": None, "scp": "draw look"}, ["draw", "look"]),
        ({"scope": None, "scp": ["draw", "look"]}, ["draw", "look"]),
        ({"scope": None}, []),
        ({"scope": 5}, ["5"]),
    ],
    ids=str,
)
async def test_scopes_are_read_as_issuers_write_them(
    issuer: Issuer, tokens: SignedTokens, told: dict[str, Any], scopes: list[str]
) -> None:
    found = await tokens.verify_token(issuer.sign(**told))
    assert found is not None
    assert [*found.scopes] == scopes


@pytest.mark.parametrize("token", ["", "a", "a.b.c", "é", "." * 100, "x" * 10_000])
async def test_what_is_no_token_is_nobodys(tokens: SignedTokens, token: str) -> None:
    assert await tokens.verify_token(token) is None


@pytest.mark.parametrize("document", ["", "[]", "{}", '{"keys": [{"kty": "odd"}]}', "\x00"])
async def test_without_keys_every_token_is_nobodys(
    issuer: Issuer, tokens: SignedTokens, document: str
) -> None:
    issuer.file.write_text(document)
    assert await tokens.verify_token(issuer.sign()) is None


async def test_the_keys_of_an_issuer_come_and_go(issuer: Issuer) -> None:
    now_s = [0.0]
    tokens = SignedTokens(
        issuer=ISSUER, resource=RESOURCE, keys=str(issuer.file), clock=lambda: now_s[0]
    )
    second = ec.generate_private_key(ec.SECP256R1())
    first_token, second_token = issuer.sign(), issuer.sign(second, kid="second")
    seen = list[tuple[bool, bool]]()
    for moment_s, published in (
        (0.0, {"first": issuer.key}),
        (1.0, {"second": second}),
        (LOOK_AGAIN_S, {"first": issuer.key, "second": second}),
        (LOOK_AGAIN_S + TRUST_S, {"second": second}),
    ):
        now_s[0] = moment_s
        issuer.publish(**published)
        found = [await tokens.verify_token(token) for token in (first_token, second_token)]
        seen.append((found[0] is not None, found[1] is not None))
    assert seen == [(True, False), (True, False), (True, True), (False, True)]


async def test_a_missing_file_of_keys_lets_nobody_in(issuer: Issuer, tokens: SignedTokens) -> None:
    issuer.file.unlink()
    assert await tokens.verify_token(issuer.sign()) is None


async def test_a_token_that_comes_while_the_keys_are_read_waits_for_them(
    issuer: Issuer, tmp_path: Path
) -> None:
    pipe = tmp_path / "keys"
    os.mkfifo(pipe)  # reading it lasts until somebody writes
    tokens = SignedTokens(issuer=ISSUER, resource=RESOURCE, keys=str(pipe))
    both = [asyncio.ensure_future(tokens.verify_token(issuer.sign())) for _ in range(2)]
    await asyncio.sleep(0)
    await asyncio.to_thread(pipe.write_bytes, issuer.file.read_bytes())
    assert [found is not None for found in await asyncio.gather(*both)] == [True, True]


async def test_keys_that_cannot_be_read_again_are_trusted_only_for_a_while(issuer: Issuer) -> None:
    now_s = [0.0]
    tokens = SignedTokens(
        issuer=ISSUER, resource=RESOURCE, keys=str(issuer.file), clock=lambda: now_s[0]
    )
    document, token = issuer.file.read_bytes(), issuer.sign()
    seen = [await tokens.verify_token(token) is not None]
    issuer.file.unlink()
    for moment_s in (TRUST_S - 1, TRUST_S, 2 * TRUST_S - 1):
        now_s[0] = moment_s
        seen.append(await tokens.verify_token(token) is not None)
    issuer.file.write_bytes(document)
    now_s[0] += LOOK_AGAIN_S
    seen.append(await tokens.verify_token(token) is not None)
    assert seen == [True, True, False, False, True]
