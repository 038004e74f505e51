"""A picture on stdin -> what its C2PA manifest claims on stdout: the isolated process that checks.

Started by `process` as ``python -P -m limner.imaging.c2pa_worker LIMITS``. It loads the
native library, gives up its rights and then works as every `worker` does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from io import BytesIO
from typing import Any

import msgspec

from limner.errors import CorruptImage
from limner.imaging.limits import WorkerLimits
from limner.imaging.provenance import Ingredient, Manifest, State
from limner.imaging.worker import Answer, Jobs, serve
from limner.json_shapes import as_list, as_object

MAX_CHARS = 200
MAX_PROBLEMS = 20
MAX_INGREDIENTS = 50

# A manifest may name an address to fetch more from: nothing is fetched for a stranger's file.
_SETTINGS = {"verify": {"remote_manifest_fetch": False, "ocsp_fetch": False}}
_STATES: Mapping[str, State] = {"Trusted": "trusted", "Valid": "valid"}
# No signer can be trusted without a list of those who are; `state` already says so.
_NO_PROBLEM = "signingCredential.untrusted"


class Claims:
    """Reads manifests; making this value loads the native library."""

    def __init__(self) -> None:
        # Loaded by name: it comes with an extra, and what it calls has no types of its own.
        self._c2pa: Any = import_module("c2pa")
        self._context = self._c2pa.Context.from_dict(_SETTINGS)

    def read(self, data: bytes, *, mime: str) -> Manifest:
        """What the manifest of a picture says, and whether that holds.

        Raises:
            CorruptImage: there is no manifest, or it cannot be understood.
        """
        try:
            with self._c2pa.Reader(mime, BytesIO(data), context=self._context) as reader:
                told = json.loads(reader.json())
        except (self._c2pa.C2paError, ValueError) as error:
            raise CorruptImage(f"the C2PA manifest cannot be read: {error}") from None
        return manifest_of(told)


def manifest_of(told: Mapping[str, Any]) -> Manifest:
    """What the library's report says of the active manifest, whatever is missing from it."""
    active = as_object(as_object(told.get("manifests")).get(str(told.get("active_manifest"))))
    signature = as_object(active.get("signature_info"))
    return Manifest(
        state=_STATES.get(str(told.get("validation_state")), "invalid"),
        claim_generator=_generator(active),
        signer=_text(signature.get("common_name")),
        issuer=_text(signature.get("issuer")),
        signed_at=_text(signature.get("time")),
        problems=_problems(told),
        ingredients=tuple(
            Ingredient(
                title=_text(part.get("title")),
                mime=_text(part.get("format")),
                relationship=_text(part.get("relationship")),
            )
            for part in _objects(active.get("ingredients"), most=MAX_INGREDIENTS)
        ),
    )


def _generator(active: Mapping[str, Any]) -> str | None:
    for info in _objects(active.get("claim_generator_info"), most=1):
        named = (_text(info.get("name")), _text(info.get("version")))
        return " ".join(filter(None, named)) or None
    return _text(active.get("claim_generator"))


def _problems(told: Mapping[str, Any]) -> tuple[str, ...]:
    results = as_object(as_object(told.get("validation_results")).get("activeManifest"))
    codes = (_text(row.get("code")) for row in _objects(results.get("failure"), most=MAX_PROBLEMS))
    return tuple(dict.fromkeys(code for code in codes if code and code != _NO_PROBLEM))


def _objects(rows: object, *, most: int) -> Iterator[Mapping[str, Any]]:
    """The objects that say something, among the first ``most`` values of a JSON list."""
    return filter(None, map(as_object, as_list(rows)[:most]))


def _text(value: object) -> str | None:
    return " ".join(value[:MAX_CHARS].split()) or None if isinstance(value, str) else None


def main() -> None:
    """Serve until stdin closes."""
    serve(_ready)


def _ready(limits: WorkerLimits) -> Jobs:  # noqa: ARG001 - the shape every worker has
    claims = Claims()

    def read_manifest(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> Answer:  # noqa: ARG001 - the shape of every job
        return {}, json.dumps(msgspec.to_builtins(claims.read(payload, mime=job["mime"]))).encode()

    return {"read_manifest": read_manifest}


if __name__ == "__main__":
    main()
