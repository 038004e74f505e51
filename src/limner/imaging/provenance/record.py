"""What the notary tells the host of a C2PA manifest, and whether there is a notary here."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal

import msgspec

INSTALL = "pip install 'limner[c2pa]'"

State = Literal["trusted", "valid", "invalid"]


class Ingredient(msgspec.Struct, frozen=True, kw_only=True):
    """Another file that the picture is said to be made of."""

    title: str | None
    mime: str | None
    relationship: str | None


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What the active manifest of a picture claims, and whether the claim holds.

    Attributes:
        state: ``valid`` says that the bytes are those that were signed, with the certificate of
            ``signer``; whether that is who they say needs a list of trusted signers, which would
            make it ``trusted``. What is ``invalid`` was changed after signing, or signed wrongly.
        claim_generator: the program that made the claim.
        signer: whose certificate signed it.
        issuer: the organisation in that certificate.
        signed_at: when, where a time-stamping service vouches for it.
        problems: the codes of C2PA for what is wrong.
        ingredients: what the picture is said to be made of.
    """

    state: State
    claim_generator: str | None
    signer: str | None
    issuer: str | None
    signed_at: str | None
    problems: tuple[str, ...]
    ingredients: tuple[Ingredient, ...]


def can_read() -> bool:
    """Whether what reads manifests is installed; it is not loaded to find out."""
    return find_spec("c2pa") is not None
