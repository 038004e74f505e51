"""Raw pixels on stdin -> the text in them on stdout: the isolated process that reads.

Started by `process` as ``python -P -m limner.imaging.ocr_worker LIMITS``. It loads the
models, gives up its rights and then works as every `worker` does.
No file format ever reaches it.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from limner.imaging.evidence.ocr import TextRecognizer
from limner.imaging.evidence.record import Legible
from limner.imaging.limits import WorkerLimits
from limner.imaging.worker import Answer, Jobs, serve


def main() -> None:
    """Serve until stdin closes."""
    serve(_ready)


def _ready(limits: WorkerLimits) -> Jobs:  # noqa: ARG001 - the shape every worker has
    reader = TextRecognizer()

    def read_text(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> Answer:  # noqa: ARG001 - the shape of every job
        del job["op"]
        lines = reader.read(Legible(**job, rgb=payload))
        return {}, json.dumps([msgspec.to_builtins(line) for line in lines]).encode()

    return {"read_text": read_text}


if __name__ == "__main__":
    main()
