"""Jobs on stdin -> answers on stdout: the isolated process that meets untrusted bytes.

Started by `process` as ``python -P -m limner.imaging.worker LIMITS``. It says when it is ready,
answers one job after the other, and ends when its stdin closes, so it never outlives its host.
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

from limner.errors import CorruptImage, ImageError, ImageTooLarge
from limner.imaging import pipe, pixels
from limner.imaging.decode import prepare
from limner.imaging.evidence.measure import legible, measure
from limner.imaging.fit import FitRequest, Region
from limner.imaging.fit.engine import Engine
from limner.imaging.limits import WorkerLimits
from limner.imaging.pixel_cache import PixelCache
from limner.imaging.pixels import mask, mask_of_region
from limner.imaging.sandbox import allow_cpu, lock_down, share_one_heap, wait_for
from limner.imaging.svg import Asset
from limner.imaging.svg.renderer import render

_MAX_MESSAGE_CHARS = 300

# What decoders raise on purpose, with a sentence. All else is an accident with damaged numbers.
_SPOKEN = (EOFError, OSError, RuntimeError, SyntaxError, ValueError)
# Names in the decoder's code, and numbers that only it can read: "decoder error -2".
_UNSPOKEN = re.compile(r"[A-Za-z][._][A-Za-z]|-\d+$")

# A second thread for encoders. It is begun before the lock-down, which allows no new ones.
_aside = ThreadPoolExecutor(1)

_fresh = PixelCache()

Answer = tuple[dict[str, Any], bytes]
Jobs = dict[str, Callable[[dict[str, Any], bytes, WorkerLimits], Answer]]


def main() -> None:
    """Serve until stdin closes."""
    serve(_ready)


def serve(get_ready: Callable[[WorkerLimits], Jobs]) -> None:
    """Get ready with all rights, give them up, then do jobs until stdin closes."""
    limits = WorkerLimits(**json.loads(sys.argv[1]))
    jobs, answers = _claim_pipes()
    table = get_ready(limits)
    lock_down(limits)
    pipe.send(answers, {"ready": True})
    while _serve_one(jobs, answers, table, limits):
        pass


def _ready(limits: WorkerLimits) -> Jobs:
    share_one_heap()
    _aside.submit(int).result()
    prepare(limits)
    return _JOBS


def _serve_one(jobs: IO[bytes], answers: IO[bytes], table: Jobs, limits: WorkerLimits) -> bool:
    """Do the next job, keeping nothing of it but fresh pixels; False once there are no more."""
    wait_for(jobs, at_rest=_fresh.forget)
    try:
        header, payload = pipe.receive(jobs, max_payload_bytes=sys.maxsize)
    except EOFError:
        return False
    except MemoryError:
        # The rest of the job is still in the pipe: nothing after it can be understood.
        sys.exit(pipe.EXIT_OUT_OF_MEMORY)
    allow_cpu(limits.cpu_s)
    pipe.send(answers, *_answer(json.loads(header), payload, table, limits))
    return True


def _answer(job: dict[str, Any], payload: bytes, table: Jobs, limits: WorkerLimits) -> Answer:
    """Do one job; whatever goes wrong becomes an answer that names the error's class."""
    if job["op"] != "fit":
        _fresh.forget()  # two decoded pictures at once may be too many
    try:
        return table[job["op"]](job, payload, limits)
    except ImageError as error:
        return _failure(error)
    except MemoryError:
        mebibytes = limits.memory_bytes >> 20
        return _failure(ImageTooLarge(f"the picture needs more than {mebibytes} MiB of memory"))
    except BaseException as error:  # a panic in Rust is not an Exception
        reason = _reason(error)
        what = "the picture does not decode"
        return _failure(CorruptImage(f"{what}: {reason}" if reason else what))


def _reason(error: BaseException) -> str:
    """What a decoder says is wrong, where it says it to people and not to its programmer."""
    text = " ".join(str(error).split()) if isinstance(error, _SPOKEN) else ""
    return "" if _UNSPOKEN.search(text) else text


def _verify(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> Answer:  # noqa: ARG001 - the shape of every job
    facts = pixels.verify(payload, limits=limits, keep=_fresh.keep)
    return {"value": msgspec.to_builtins(facts)}, b""


def _convert(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> Answer:
    cover = tuple(job["cover"]) if job["cover"] else None
    return {}, pixels.convert(payload, limits=limits, to=job["to"], cover=cover)


def _preview(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> Answer:
    thumbnail = pixels.preview(payload, limits=limits, columns=job["columns"], rows=job["rows"])
    return {"value": {"width": thumbnail.width, "height": thumbnail.height}}, thumbnail.rgb


def _render_svg(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> Answer:
    order = json.loads(payload)
    assets = {name: Asset(**asset) for name, asset in order["assets"].items()}
    png = render(
        order["document"], width=job["width"], height=job["height"], assets=assets, limits=limits
    )
    return {}, png


def _fit(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> Answer:
    asked: dict[str, Any] = job["request"]
    asked["formats"] = tuple(asked["formats"])
    asked["region"] = Region(**asked["region"]) if asked["region"] else None
    engine = Engine(aside=_aside, limits=limits)
    fitted, data = engine.fit(payload, FitRequest(**asked), opened=_fresh.take(payload))
    return {"value": msgspec.to_builtins(fitted)}, data


def _mask(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> Answer:
    size, way = tuple(job["size"]), job["way"]
    if job["region"] is None:
        return {}, mask(payload, limits=limits, size=size, way=way)
    region = Region(**job["region"])
    return {}, mask_of_region(region, of=tuple(job["of"]), size=size, way=way)


def _measure(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> Answer:  # noqa: ARG001 - the shape of every job
    return {}, json.dumps(msgspec.to_builtins(measure(payload, limits=limits))).encode()


def _legible(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> Answer:  # noqa: ARG001 - the shape of every job
    page = msgspec.structs.asdict(legible(payload, limits=limits))
    rgb = page.pop("rgb")
    return {"value": page}, rgb


_JOBS: Jobs = {
    "verify": _verify,
    "convert": _convert,
    "preview": _preview,
    "render_svg": _render_svg,
    "fit": _fit,
    "mask": _mask,
    "measure": _measure,
    "legible": _legible,
}


def _failure(error: ImageError) -> Answer:
    # A message may quote the document, which may hold a name of a million letters.
    message = error.message[:_MAX_MESSAGE_CHARS]
    return {"error": type(error).__name__, "message": message, "hint": error.hint}, b""


def _claim_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Keep the answer pipe to ourselves: what a library prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return sys.stdin.buffer, answers


if __name__ == "__main__":
    main()
