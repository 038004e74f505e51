"""A picture on stdin -> what its C2PA manifest claims on stdout: the isolated process that checks.

Started by `process` as ``python -P -m limner.imaging.notary LIMITS``. It loads the native library,
gives up its rights and then works as every `worker` does.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from limner.imaging.limits import WorkerLimits
from limner.imaging.provenance.claims import Claims
from limner.imaging.worker import Answer, Jobs, serve


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
