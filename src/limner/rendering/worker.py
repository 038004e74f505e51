"""Jobs on stdin -> replies on stdout: the worker of `imaging`, which also compiles sources.

Started by `imaging.process` as ``python -P -m limner.rendering.worker LIMITS``. One process does
both, so that a picture from a source needs one process start.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from limner.errors import InputInvalid
from limner.imaging import worker
from limner.imaging.decode import load_decoders
from limner.imaging.limits import WorkerLimits
from limner.imaging.sandbox import DECODER
from limner.rendering.sources import FORMATS, CompiledSource


def main() -> None:
    """Run jobs until stdin closes."""
    worker.serve(DECODER, load=load_decoders, prepare=prepare)


def prepare(limits: WorkerLimits) -> worker.JobTable:
    """Prepare what the worker of `imaging` needs; compilers are loaded on first use."""
    return {**worker.prepare(limits), "compile": compile_job, "lay_out": lay_out_job}


def compile_job(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> worker.JobReply:
    """Compile a source in the format of the job."""
    source = payload.decode(errors="surrogatepass")
    size = tuple(job["size"]) if job["size"] else None
    try:
        drawn = FORMATS[job["format"]].compile(source, size, limits)
    except RecursionError:
        raise InputInvalid("the document nests too deep", field="source") from None
    compiled = CompiledSource(format=job["format"], **msgspec.structs.asdict(drawn))
    return {}, msgspec.json.encode(compiled)


def lay_out_job(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> worker.JobReply:  # noqa: ARG001 - every job has this signature
    """Draw a document that limner itself made from a prompt."""
    from limner.rendering.document import draw_document  # noqa: PLC0415 - loaded on first use
    from limner.rendering.elements import Document  # noqa: PLC0415 - loaded on first use

    document = msgspec.convert(json.loads(payload), type=Document)
    drawn = draw_document(document, tuple(job["size"]), largest_text=job["largest_text"])
    return {}, msgspec.json.encode(drawn)


if __name__ == "__main__":
    main()
