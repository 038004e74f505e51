"""Raw pixels on stdin -> the text in them on stdout: the isolated process that runs OCR.

Started by `process` as ``python -P -m limner.imaging.ocr_worker LIMITS``. It loads the models,
enters the sandbox and then runs the loop of `worker`. It only gets pixels, never a file, and opens
no file after that.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from limner.imaging.evidence.ocr import TextRecognizer, load_libraries
from limner.imaging.evidence.record import OcrPage
from limner.imaging.limits import WorkerLimits
from limner.imaging.sandbox import OCR
from limner.imaging.worker import JobReply, JobTable, serve


def main() -> None:
    """Run jobs until stdin closes."""
    serve(OCR, load=load_libraries, prepare=prepare)


def prepare(limits: WorkerLimits) -> JobTable:  # noqa: ARG001 - every worker has this signature
    """Load the models."""
    recognizer = TextRecognizer()

    def ocr(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> JobReply:  # noqa: ARG001 - every job has this signature
        del job["op"]
        reading = recognizer.read(OcrPage(**job, rgb=payload))
        return {}, json.dumps(msgspec.to_builtins(reading)).encode()

    return {"ocr": ocr}


if __name__ == "__main__":
    main()
