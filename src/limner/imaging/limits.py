"""The limits of a worker: which formats it opens, how much one picture may use, what holds."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import msgspec
from msgspec.structs import replace

from limner.imaging.formats import ALWAYS_ACCEPTED


class WorkerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one worker process and of every job it runs.

    ``accept`` names the formats that are opened, as `formats.accepted_formats` returns them.

    ``memory_bytes`` is address space. The default lets every picture within ``max_pixels`` decode;
    WebP needs the most. To convert a picture that is tens of millions of pixels high may need
    more, since Pillow keeps a pointer to each row. ``memory_bytes`` is enforced on Linux and
    ``cpu_s`` on POSIX; on other systems the pixel cap and the timeout protect the host. ``cpu_s``
    is below ``timeout_s`` so that a busy machine does not fail a normal job. It also stops a worker
    whose host was killed during a job.

    A TIFF, PNG or JPEG with more than ``max_pixels`` and at most ``max_large_pixels`` is read in
    parts, for a fit or a preview; its file has at most ``max_file_bytes``.

    A worker ends after ``max_jobs`` jobs, because libraries leak.

    ``max_svg_expanded`` and ``max_svg_depth`` count the document after every ``use`` and
    ``url(#id)`` is followed. The renderer overflows its stack at about 200 levels.
    """

    accept: Sequence[str] = ALWAYS_ACCEPTED
    max_pixels: int = 100_000_000
    max_large_pixels: int = 0
    max_file_bytes: int = 64 << 20
    memory_bytes: int = 2 << 30
    cpu_s: int = 20
    timeout_s: float = 30.0
    max_jobs: int = 200
    max_answer_bytes: int = 512 << 20
    max_svg_bytes: int = 4 << 20
    max_svg_elements: int = 50_000
    max_svg_expanded: int = 200_000
    max_svg_depth: int = 100
    max_svg_edge: int = 4096


class Protections(msgspec.Struct, frozen=True, kw_only=True):
    """What the system enforces on a worker, as the worker says before its first job.

    ``landlock_abi`` is the version of Landlock, and 0 if it does not hold.
    """

    landlock_abi: int = 0
    seccomp: bool = False
    memory_limit: bool = False


DEFAULT_LIMITS = WorkerLimits()

# A worker holds the whole file beside the part that it decodes.
_LARGE_FILE_BYTES = 1 << 30


def limits_for(max_megapixels: int) -> WorkerLimits:
    """The limits for the setting `images.max_megapixels`: time grows with it, memory does not."""
    pixels = max_megapixels * 1_000_000
    default = DEFAULT_LIMITS
    if pixels <= default.max_pixels:
        return replace(default, max_pixels=pixels)
    times = pixels / default.max_pixels
    return replace(
        default,
        max_large_pixels=pixels,
        max_file_bytes=_LARGE_FILE_BYTES,
        cpu_s=ceil(default.cpu_s * times),
        timeout_s=default.timeout_s * times,
    )


# OCR runs two models over raw pixels, on several processors at once.
OCR_LIMITS = WorkerLimits(memory_bytes=4 << 30, cpu_s=300, timeout_s=180.0, max_jobs=10_000)
