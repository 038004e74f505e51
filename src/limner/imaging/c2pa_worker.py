"""A picture on stdin -> its C2PA manifest on stdout: the isolated process that checks manifests.

Started by `process` as ``python -P -m limner.imaging.c2pa_worker LIMITS``. It loads the native
library, enters the sandbox and then runs the loop of `worker`.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from io import BytesIO
from typing import Any

import msgspec

from limner.errors import CorruptImage
from limner.imaging.limits import WorkerLimits
from limner.imaging.provenance import Ingredient, Manifest, State
from limner.imaging.sandbox import C2PA
from limner.imaging.worker import JobReply, JobTable, serve
from limner.json_shapes import as_list, as_object

MAX_CHARS = 200
MAX_PROBLEMS = 20
MAX_INGREDIENTS = 50

# A manifest may name an address to fetch more from. An untrusted file must not cause a request.
_SETTINGS = {"verify": {"remote_manifest_fetch": False, "ocsp_fetch": False}}
_STATES: Mapping[str, State] = {"Trusted": "trusted", "Valid": "valid"}
# Without a list of trusted signers no signer is trusted; `state` already says so.
_EXPECTED_PROBLEM = "signingCredential.untrusted"


def main() -> None:
    """Run jobs until stdin closes."""
    serve(C2PA, load=load_library, prepare=prepare)


def load_library(limits: WorkerLimits) -> None:  # noqa: ARG001 - every worker has this signature
    """Load the native library."""
    import_module("c2pa")
    # The library calls back into Python. ctypes looks for memory for that once, and opens files.
    ctypes.CFUNCTYPE(None)(lambda: None)


def prepare(limits: WorkerLimits) -> JobTable:  # noqa: ARG001 - every worker has this signature
    """Make the reader."""
    reader = ManifestReader()

    def read_manifest(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> JobReply:  # noqa: ARG001 - every job has this signature
        return {}, json.dumps(msgspec.to_builtins(reader.read(payload, mime=job["mime"]))).encode()

    return {"read_manifest": read_manifest}


class ManifestReader:
    """Reads manifests with the native library."""

    def __init__(self) -> None:
        # Imported by name: it comes with an extra, and has no types.
        self._c2pa: Any = import_module("c2pa")
        self._context = self._c2pa.Context.from_dict(_SETTINGS)

    def read(self, data: bytes, *, mime: str) -> Manifest:
        """Read the manifest of a picture, and check its signature.

        Raises:
            CorruptImage: there is no manifest, or it cannot be parsed.
        """
        try:
            with self._c2pa.Reader(mime, BytesIO(data), context=self._context) as reader:
                report = json.loads(reader.json())
        except (self._c2pa.C2paError, ValueError) as error:
            raise CorruptImage(f"the C2PA manifest cannot be read: {error}") from None
        return parse_report(report)


def parse_report(report: Mapping[str, Any]) -> Manifest:
    """The active manifest in the library's report; any part of the report may be missing."""
    active = as_object(as_object(report.get("manifests")).get(str(report.get("active_manifest"))))
    signature = as_object(active.get("signature_info"))
    return Manifest(
        state=_STATES.get(str(report.get("validation_state")), "invalid"),
        claim_generator=_generator(active),
        signer=_text(signature.get("common_name")),
        issuer=_text(signature.get("issuer")),
        signed_at=_text(signature.get("time")),
        problems=_problems(report),
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


def _problems(report: Mapping[str, Any]) -> tuple[str, ...]:
    results = as_object(as_object(report.get("validation_results")).get("activeManifest"))
    codes = (_text(row.get("code")) for row in _objects(results.get("failure"), most=MAX_PROBLEMS))
    return tuple(dict.fromkeys(code for code in codes if code and code != _EXPECTED_PROBLEM))


def _objects(rows: object, *, most: int) -> Iterator[Mapping[str, Any]]:
    """The objects that say something, among the first ``most`` values of a JSON list."""
    return filter(None, map(as_object, as_list(rows)[:most]))


def _text(value: object) -> str | None:
    return " ".join(value[:MAX_CHARS].split()) or None if isinstance(value, str) else None


if __name__ == "__main__":
    main()
