"""Jobs on stdin -> replies on stdout: the isolated process that decodes untrusted bytes.

Started by `process` as ``python -P -m limner.imaging.worker LIMITS``, or as a program that adds
jobs to it. It sends a message when it is ready, runs one job after the other, and ends when its
stdin closes, so it never outlives its host.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

import msgspec

from limner.errors import CorruptImage, ImageError, ImageTooLarge, InputInvalid, LimnerError
from limner.imaging import pipe, pixels
from limner.imaging.decode import load_decoders
from limner.imaging.facts import SheetRequest
from limner.imaging.fit import FitRequest, Region
from limner.imaging.fit.engine import Engine
from limner.imaging.limits import WorkerLimits
from limner.imaging.pixel_cache import PixelCache
from limner.imaging.sandbox import (
    DECODER,
    SandboxPolicy,
    enter_sandbox,
    limit_cpu,
    restrict_files,
    share_one_heap,
    wait_for_job,
)
from limner.imaging.svg import Asset

_MAX_MESSAGE_CHARS = 300

# Errors that decoders raise on purpose, with a message. Other errors are accidents of bad data.
_DELIBERATE_ERRORS = (EOFError, OSError, RuntimeError, SyntaxError, ValueError)
# A message for programmers: names in the decoder's code, or a status as in "decoder error -2".
_INTERNAL_DETAIL = re.compile(r"[A-Za-z][._][A-Za-z]|-\d+$")

# A second thread for encoders. It starts before the limits of the sandbox, which allow none.
_encoder_thread = ThreadPoolExecutor(1)

_pixel_cache = PixelCache()

JobReply = tuple[dict[str, Any], bytes]
JobTable = dict[str, Callable[[dict[str, Any], bytes, WorkerLimits], JobReply]]


def main() -> None:
    """Run jobs until stdin closes."""
    serve(DECODER, load=load_decoders, prepare=prepare)


def serve(
    policy: SandboxPolicy | None,
    *,
    load: Callable[[WorkerLimits], None],
    prepare: Callable[[WorkerLimits], JobTable],
) -> None:
    """Lock this process down by its policy, then run jobs until stdin closes.

    ``load`` imports libraries and starts no thread; ``prepare`` starts threads and reads models.
    Every worker has a policy; without one, a benchmark measures what the sandbox costs.
    """
    limits = WorkerLimits(**json.loads(sys.argv[1]))
    jobs, replies = _claim_pipes()
    load(limits)
    landlock_abi = 0 if policy is None else restrict_files(policy)
    table = prepare(limits)
    protections = enter_sandbox(limits, policy, landlock_abi=landlock_abi)
    pipe.send(replies, msgspec.to_builtins(protections))
    while _serve_one(jobs, replies, table, limits):
        pass


def prepare(limits: WorkerLimits) -> JobTable:  # noqa: ARG001 - every worker has this signature
    """Start the second thread."""
    share_one_heap()
    _encoder_thread.submit(int).result()
    return JOBS


def _claim_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Keep stdout for replies: what a library prints goes to stderr."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return sys.stdin.buffer, replies


def _serve_one(jobs: IO[bytes], replies: IO[bytes], table: JobTable, limits: WorkerLimits) -> bool:
    """Run the next job; False if there are no more. Only the pixel cache survives a job."""
    wait_for_job(jobs, on_idle=_pixel_cache.clear)
    try:
        header, payload = pipe.receive(jobs, max_payload_bytes=sys.maxsize)
    except EOFError:
        return False
    except MemoryError:
        # The rest of the job is still in the pipe, so the next job could not be found.
        sys.exit(pipe.EXIT_OUT_OF_MEMORY)
    limit_cpu(limits.cpu_s)
    pipe.send(replies, *_run(json.loads(header), payload, table, limits))
    return True


def _run(job: dict[str, Any], payload: bytes, table: JobTable, limits: WorkerLimits) -> JobReply:
    """Run one job; an error becomes a reply that names the error's class."""
    if job["op"] != "fit":
        _pixel_cache.clear()  # memory may not hold two decoded pictures
    try:
        return table[job["op"]](job, payload, limits)
    except (ImageError, InputInvalid) as error:
        return _failure(error)
    except MemoryError:
        mebibytes = limits.memory_bytes >> 20
        subject = pipe.subject(job)
        return _failure(ImageTooLarge(f"{subject} needs more than {mebibytes} MiB of memory"))
    except BaseException as error:  # a panic in Rust is not an Exception
        reason = _reason(error)
        what = f"{pipe.subject(job)} does not decode"
        return _failure(CorruptImage(f"{what}: {reason}" if reason else what))


def _reason(error: BaseException) -> str:
    """The decoder's message, if it is meant for people and not for its programmers."""
    text = " ".join(str(error).split()) if isinstance(error, _DELIBERATE_ERRORS) else ""
    return "" if _INTERNAL_DETAIL.search(text) else text


def _failure(error: LimnerError) -> JobReply:
    # A message may quote the document, and a name in it may have a million letters.
    reply = {
        "error": type(error).__name__,
        "message": error.message[:_MAX_MESSAGE_CHARS],
        "hint": error.hint and error.hint[:_MAX_MESSAGE_CHARS],
        "field": error.field if isinstance(error, InputInvalid) else None,
    }
    return reply, b""


def _verify(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> JobReply:  # noqa: ARG001 - every job has this signature
    facts = pixels.verify(payload, limits=limits, keep=_pixel_cache.keep)
    return {"value": msgspec.to_builtins(facts)}, b""


def _convert(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> JobReply:
    cover = tuple(job["cover"]) if job["cover"] else None
    return {}, pixels.convert(payload, limits=limits, to=job["to"], cover=cover)


def _preview(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> JobReply:
    thumbnail = pixels.preview(payload, limits=limits, columns=job["columns"], rows=job["rows"])
    return {"value": {"width": thumbnail.width, "height": thumbnail.height}}, thumbnail.rgb


def _render_svg(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> JobReply:
    from limner.imaging.svg.renderer import render  # noqa: PLC0415 - few workers need it

    document, assets = _drawing(payload)
    width, height = size = job["width"], job["height"]
    squares = job.get("squares")
    if squares:
        scale = min(1.0, squares / min(size))
        width, height = (max(round(side * scale), 1) for side in size)
    png = render(document, width=width, height=height, assets=assets, limits=limits)
    return {}, pixels.enlarge_squares(png, size) if squares else png


def _resolve_svg(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> JobReply:
    from limner.imaging.svg.renderer import resolve  # noqa: PLC0415 - few workers need it

    document, assets = _drawing(payload)
    size = {"width": job["width"], "height": job["height"]}
    return {}, resolve(document, **size, assets=assets, limits=limits).encode()


def _drawing(payload: bytes) -> tuple[str, dict[str, Asset]]:
    drawing = json.loads(payload)
    return drawing["document"], msgspec.convert(drawing["assets"], dict[str, Asset])


def _fit(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> JobReply:
    fields: dict[str, Any] = job["request"]
    fields["formats"] = tuple(fields["formats"])
    fields["region"] = Region(**fields["region"]) if fields["region"] else None
    engine = Engine(thread=_encoder_thread, limits=limits)
    fitted, data = engine.fit(payload, FitRequest(**fields), opened=_pixel_cache.take(payload))
    return {"value": msgspec.to_builtins(fitted)}, data


def _transform(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> JobReply:
    from limner.imaging.transform.request import (  # noqa: PLC0415 - few workers need it
        TransformRequest,
    )
    from limner.imaging.transform.steps import transform  # noqa: PLC0415 - few workers need it

    request = msgspec.convert(job["request"], TransformRequest)
    made, data = transform(payload, request, limits=limits)
    return {"value": msgspec.to_builtins(made)}, data


def _compare(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> JobReply:
    from limner.imaging.comparison.areas import compare  # noqa: PLC0415 - few workers need it

    before, after = pipe.split(payload)
    ignore = [Region(**part) for part in job["ignore"]]
    found = compare(before, after, ignore, limits=limits)
    return {}, json.dumps(msgspec.to_builtins(found)).encode()


def _sheet(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> JobReply:
    from limner.imaging.sheet import compose  # noqa: PLC0415 - few workers need it

    request = msgspec.convert(job["request"], SheetRequest)
    document, *pictures = pipe.split(payload)
    return {}, compose(request, document.decode(), pictures, limits=limits)


def _mask(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> JobReply:
    size, way = tuple(job["size"]), job["way"]
    if job["region"] is None:
        return {}, pixels.mask(payload, limits=limits, size=size, way=way)
    region = Region(**job["region"])
    return {}, pixels.mask_of_region(region, of=tuple(job["of"]), size=size, way=way)


def _measure(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> JobReply:  # noqa: ARG001 - every job has this signature
    from limner.imaging.evidence.measure import measure  # noqa: PLC0415 - few workers need it

    return {}, json.dumps(msgspec.to_builtins(measure(payload, limits=limits))).encode()


def _ocr_page(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> JobReply:  # noqa: ARG001 - every job has this signature
    from limner.imaging.evidence.measure import (  # noqa: PLC0415 - few workers need it
        make_ocr_page,
    )

    page = msgspec.structs.asdict(make_ocr_page(payload, limits=limits))
    rgb = page.pop("rgb")
    return {"value": page}, rgb


JOBS: JobTable = {
    "verify": _verify,
    "convert": _convert,
    "preview": _preview,
    "render_svg": _render_svg,
    "resolve_svg": _resolve_svg,
    "fit": _fit,
    "transform": _transform,
    "compare": _compare,
    "sheet": _sheet,
    "mask": _mask,
    "measure": _measure,
    "ocr_page": _ocr_page,
}


if __name__ == "__main__":
    main()
