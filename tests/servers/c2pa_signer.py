"""A picture -> the same with a C2PA manifest, signed by a certificate that is made here."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from functools import cache

import c2pa
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

GENERATOR = "painting-service 2.5"
SIGNER = "Painting Service"
ISSUER = "Painters Ltd"
AI_MADE = "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia"


def signed(
    picture: bytes,
    mime: str = "image/png",
    *,
    made_from: bytes | None = None,
    told_at: str | None = None,
) -> bytes:
    """The picture with a manifest in it, or with the address where one is to be fetched."""
    name, _, version = GENERATOR.partition(" ")
    actions = [{"action": "c2pa.created", "digitalSourceType": AI_MADE}]
    claim = {
        "claim_generator_info": [{"name": name, "version": version}],
        "format": mime,
        "assertions": [{"label": "c2pa.actions", "data": {"actions": actions}}],
    }
    out = io.BytesIO()
    with c2pa.Builder(claim) as builder:
        if made_from is not None:
            part = {"title": "sketch.png", "relationship": "componentOf"}
            builder.add_ingredient(part, "image/png", io.BytesIO(made_from))
        if told_at is not None:
            builder.set_no_embed()
            builder.set_remote_url(told_at)
        builder.sign(_signer(), mime, io.BytesIO(picture), out)
    return out.getvalue()


@cache
def _signer() -> c2pa.Signer:
    authority, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ours = x509.BasicConstraints(ca=False, path_length=None)
    theirs = x509.BasicConstraints(ca=True, path_length=None)
    use = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.EMAIL_PROTECTION])
    known_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
    leaf = (
        _certificate(_name(SIGNER, ISSUER), key.public_key())
        .add_extension(ours, critical=True)
        .add_extension(_usage(signs="digital_signature"), critical=True)
        .add_extension(use, critical=False)
        .add_extension(known_by, critical=False)
        .sign(authority, hashes.SHA256())
    )
    root = (
        _certificate(_name("Test Authority", "Nobody"), authority.public_key())
        .add_extension(theirs, critical=True)
        .add_extension(_usage(signs="key_cert_sign"), critical=True)
        .sign(authority, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    chain = leaf.public_bytes(Encoding.PEM) + root.public_bytes(Encoding.PEM)
    return c2pa.Signer.from_info(c2pa.C2paSignerInfo("es256", chain, private, None))


def _certificate(
    subject: x509.Name, public_key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(_name("Test Authority", "Nobody"))
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
    )


def _name(person: str, organisation: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation),
            x509.NameAttribute(NameOID.COMMON_NAME, person),
        ]
    )


def _usage(*, signs: str) -> x509.KeyUsage:
    uses = [
        "digital_signature",
        "content_commitment",
        "key_encipherment",
        "data_encipherment",
        "key_agreement",
        "key_cert_sign",
        "crl_sign",
        "encipher_only",
        "decipher_only",
    ]
    return x509.KeyUsage(**{use: use == signs for use in uses})
