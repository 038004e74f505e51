"""Many hostile files -> one pool of workers, and a report of each result.

Run as a program it is the host that has to survive:
``python tests/imaging/hostile_host.py FOLDER --cases 20000``, or ``--case png:12`` to repeat one.
The account is one JSON object on stdout; files that were treated wrongly are left in the folder.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import os
import random
import re
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import msgspec
from hostile_files import HostileFile, hostile_file
from hostile_seeds import KINDS, scene
from imaging_samples import encoded, worker_pids

from limner.errors import ImageError, InputInvalid
from limner.imaging.facts import Facts
from limner.imaging.fit import FitRequest, Fitted, Region
from limner.imaging.limits import DEFAULT_LIMITS
from limner.imaging.pool import Imaging

LANES = 2
# A busy machine may be slow to kill a worker and to start another; a hang takes longer than this.
SLACK_S = 20.0
MOST_HOST_BYTES = 512 << 20
_MOST_MESSAGE_CHARS = 300
_CODE_TALKING = re.compile(
    r"Traceback|NoneType|File \"|object at 0x|has no attribute|not subscriptable"
    r"|<class|[a-z](Error|Exception)\b|[a-z]\.[A-Z_]|division by|index out of range"
    r"|requires a buffer|decode: .*-\d+$"
)
_GOOD = encoded(scene(97, 61), "PNG")
# Smaller than the picture, so that a worker has to decode it.
_SMALLER = FitRequest(max_width=50)


class Wrong(Exception):
    """A file was not treated as promised."""


@dataclasses.dataclass(kw_only=True)
class Account:
    """The results of all files; for each message, the first file that caused it."""

    outcomes: dict[str, dict[str, int]] = dataclasses.field(
        default_factory=dict[str, dict[str, int]]
    )
    messages: dict[str, str] = dataclasses.field(default_factory=dict[str, str])
    wrongs: list[str] = dataclasses.field(default_factory=list[str])
    slowest: list[tuple[float, str]] = dataclasses.field(default_factory=list[tuple[float, str]])
    ended_workers: int = 0
    worker_peak_bytes: int = 0
    host_peak_bytes: int = 0

    def count(self, kind: str, outcome: str) -> None:
        """Note how one file of a type ended."""
        counts = self.outcomes.setdefault(kind, {})
        counts[outcome] = counts.get(outcome, 0) + 1


class Campaign:
    """Sends files to a pool, a few at once, and checks every reply."""

    def __init__(self, pool: Imaging, *, folder: Path) -> None:
        self._pool, self._folder = pool, folder
        self._workers: set[int] = set()
        self._good: tuple[Fitted, bytes] | None = None
        self.account = Account()
        # A process may have lived before, and larger: what counts is how far it grows from here.
        self._before = (_children_peak_bytes(), _peak_bytes(os.getpid()))

    async def run(self, files: Iterator[HostileFile]) -> Account:
        """Examine every file."""
        self._good = await self._pool.fit(_GOOD, _SMALLER)
        self._workers = worker_pids()

        async def lane() -> None:
            for file in files:
                self.account.count(file.kind, await self._examine(file))
                self._note_memory(file)
                await self._note_workers(file)

        await asyncio.gather(*(lane() for _ in range(LANES)))
        return self.account

    async def _examine(self, file: HostileFile) -> str:
        """How one file ended."""
        try:
            return await self._answer(file)
        except Wrong as wrong:
            self._complain(file, str(wrong))
        except Exception as surprise:
            self._complain(file, f"neither an answer nor an ImageError: {surprise!r}")
        return "wrong"

    async def _answer(self, file: HostileFile) -> str:
        rng = random.Random(f"the question to {file.name}")
        started = time.monotonic()
        try:
            check = await _ask(self._pool, rng, file)
        except (ImageError, InputInvalid) as error:
            self._judge(file, error)
            return type(error).__name__
        finally:
            self._note_pace(file, time.monotonic() - started)
        try:
            return await check()
        except ImageError as error:
            raise Wrong(f"what came out does not decode: {error}") from None

    def _judge(self, file: HostileFile, error: ImageError | InputInvalid) -> None:
        pattern = re.sub(r"\d+|'[^']*'|b'[^']*'", "#", error.message)
        self.account.messages.setdefault(f"{type(error).__name__}: {pattern}", file.name)
        if not 0 < len(error.message) <= _MOST_MESSAGE_CHARS or "\n" in error.message:
            raise Wrong(f"an unreadable message: {error.message[:1000]!r}")
        if _CODE_TALKING.search(error.message):
            raise Wrong(f"a message about code, not about the picture: {error.message!r}")

    def _note_pace(self, file: HostileFile, seconds: float) -> None:
        self.account.slowest = sorted([*self.account.slowest, (seconds, file.name)])[-10:]
        if seconds > DEFAULT_LIMITS.timeout_s + SLACK_S:
            self._complain(file, f"it took {seconds:.1f} s")

    def _note_memory(self, file: HostileFile) -> None:
        """Report the file that first takes a process over its memory limit."""
        account = self.account
        children_before, host_before = self._before
        ended_bytes = _children_peak_bytes()
        worker_bytes = max(
            account.worker_peak_bytes,
            ended_bytes if ended_bytes > children_before else 0,
            *map(_peak_bytes, self._workers),
        )
        host_bytes = _peak_bytes(os.getpid()) - host_before
        if worker_bytes > DEFAULT_LIMITS.memory_bytes >= account.worker_peak_bytes:
            self._complain(file, f"a worker grew to {worker_bytes} bytes")
        if host_bytes > MOST_HOST_BYTES >= account.host_peak_bytes:
            self._complain(file, f"the host grew by {host_bytes} bytes")
        account.worker_peak_bytes, account.host_peak_bytes = worker_bytes, host_bytes

    async def _note_workers(self, file: HostileFile) -> None:
        """If a worker died, check that the next one works."""
        gone = {pid for pid in self._workers if not Path(f"/proc/{pid}").exists()}
        if gone or len(self._workers) < LANES:
            self._workers = worker_pids()
        self.account.ended_workers += len(gone)
        if gone and await self._pool.fit(_GOOD, _SMALLER) != self._good:
            self._complain(file, "after it, a good picture came out differently")

    def _complain(self, file: HostileFile, reason: str) -> None:
        path = self._folder / f"{file.kind}-{file.number}.{file.kind}"
        path.write_bytes(file.data)
        self.account.wrongs.append(f"{file.name} ({file.recipe}): {reason}; it is in {path}")


ANSWERED = "answered"
# A small picture is sent unchanged, after its header was parsed.
PASSED_ON = "passed on damaged"
# Checks a reply against what is promised, and returns its kind.
Check = Callable[[], Awaitable[str]]


async def _ask(pool: Imaging, rng: random.Random, file: HostileFile) -> Check:
    """Start one job for the file; the result is a function that checks the reply."""
    ways = [_fit] * 8 + [_verify] * 2 + [_convert, _preview, _measure]
    if file.kind == "svg":
        ways += [_render_svg] * 3
    return await rng.choice(ways)(pool, rng, file.data)


async def _fit(pool: Imaging, rng: random.Random, data: bytes) -> Check:
    request = _request(rng)
    fitted, sent = await pool.fit(data, request)

    async def check() -> str:
        _check_fitted(fitted, request)
        if fitted.untouched and sent != data:
            raise Wrong(f"untouched, but not the original: {fitted}")
        try:
            facts = await pool.verify(sent)
        except ImageError:
            if fitted.untouched:
                return PASSED_ON
            raise
        if (facts.mime, facts.width, facts.height) != (fitted.mime, fitted.width, fitted.height):
            raise Wrong(f"what came out is {facts}, not {fitted}")
        # An unchanged file is still animated; every other one is its first frame.
        if (facts.frames > 1) != (fitted.untouched and fitted.animated):
            raise Wrong(f"what came out has {facts.frames} frames: {fitted}")
        return ANSWERED

    return check


def _request(rng: random.Random) -> FitRequest:
    region = None
    if rng.random() < 0.3:
        left, top = rng.choice([0, 3, 40, -7, 10_000]), rng.choice([0, 5, 30, -2, 10_000])
        width, height = rng.choice([1, 20, 5_000, 2**31]), rng.choice([1, 20, 5_000, 2**31])
        region = Region(x=left, y=top, width=width, height=height)
    return FitRequest(
        mode=rng.choice(["seed", "fast"]),
        max_width=rng.choice([40, 200, 1568]),
        max_height=rng.choice([40, 200, 1568]),
        max_bytes=rng.choice([1_000, 20_000, 500 * 1024]),
        formats=rng.choice([FitRequest().formats, ("image/jpeg",), ("image/png", "image/webp")]),
        region=region,
        page=rng.choice([*[1] * 40, 2, 2, 3, 0, 2**40]),
    )


def _check_fitted(fitted: Fitted, request: FitRequest) -> None:
    part = fitted.part
    promises = [
        fitted.mime in request.formats,
        0 < fitted.width <= request.max_width,
        0 < fitted.height <= request.max_height,
        fitted.original_width * fitted.original_height <= DEFAULT_LIMITS.max_pixels,
        0 <= part.x < part.x + part.width <= fitted.original_width,
        0 <= part.y < part.y + part.height <= fitted.original_height,
    ]
    if not all(promises):
        raise Wrong(f"{fitted} is no answer to {request}: {promises}")


async def _verify(pool: Imaging, rng: random.Random, data: bytes) -> Check:
    facts = await pool.verify(data)

    async def check() -> str:
        pixels = facts.width * facts.height
        if not 0 < pixels <= DEFAULT_LIMITS.max_pixels or facts.frames < 1 or facts.pages < 1:
            raise Wrong(f"these facts cannot be true: {facts}")
        return ANSWERED

    return check


async def _convert(pool: Imaging, rng: random.Random, data: bytes) -> Check:
    cover = rng.choice([None, (64, 48)])
    png = await pool.convert(data, cover=cover)
    return lambda: _check_png(pool, png, size=cover)


async def _render_svg(pool: Imaging, rng: random.Random, data: bytes) -> Check:
    document = data.decode("utf-8", "replace")
    png = await pool.render_svg(document, width=64, height=48, assets={})
    return lambda: _check_png(pool, png, size=(64, 48))


async def _check_png(pool: Imaging, png: bytes, *, size: tuple[int, int] | None) -> str:
    facts = await pool.verify(png)
    width, height = size or (facts.width, facts.height)
    if facts != Facts(mime="image/png", width=width, height=height, frames=1):
        raise Wrong(f"not the PNG that was asked for: {facts}")
    return ANSWERED


async def _preview(pool: Imaging, rng: random.Random, data: bytes) -> Check:
    thumbnail = await pool.preview(data, columns=40, rows=30)

    async def check() -> str:
        width, height = thumbnail.width, thumbnail.height
        if not (0 < width <= 40 and 0 < height <= 30 and len(thumbnail.rgb) == 3 * width * height):
            raise Wrong(f"not a thumbnail: {width}x{height}, {len(thumbnail.rgb)} bytes")
        return ANSWERED

    return check


async def _measure(pool: Imaging, rng: random.Random, data: bytes) -> Check:
    found = await pool.measure(data)

    async def check() -> str:
        percents = [found.transparent_percent, found.brightness_percent]
        percents += [colour.percent for colour in found.colours]
        pixels = found.width * found.height
        if not 0 < pixels <= DEFAULT_LIMITS.max_pixels or not all(0 <= p <= 100 for p in percents):
            raise Wrong(f"these measurements cannot be true: {found}")
        return ANSWERED

    return check


def _children_peak_bytes() -> int:
    """The largest of the children that have ended, as far as the system remembers."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10


def _peak_bytes(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) << 10 if found else 0


def planned(cases: int) -> Iterator[HostileFile]:
    """The first so many files, the types taking turns."""
    for case in range(cases):
        yield hostile_file(KINDS[case % len(KINDS)], case // len(KINDS))
        if case % 500 == 499:
            sys.stderr.write(f"{case + 1} of {cases} files\n")


def table(account: Account) -> str:
    """The account as Markdown."""
    seen = {outcome for counts in account.outcomes.values() for outcome in counts}
    heads = [ANSWERED, *sorted(seen - {ANSWERED})]
    rows = [["type", *heads], ["---"] * (len(heads) + 1)]
    for kind, counts in account.outcomes.items():
        rows.append([kind, *(str(counts.get(head, 0)) for head in heads)])
    seconds, name = account.slowest[-1]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(
        [
            *lines,
            "",
            f"slowest call: {name}, {seconds:.1f} s; the limit is {DEFAULT_LIMITS.timeout_s:g} s",
            f"largest worker: {account.worker_peak_bytes >> 20} MiB; "
            f"the cap is {DEFAULT_LIMITS.memory_bytes >> 20} MiB",
            f"largest growth of the host: {account.host_peak_bytes >> 20} MiB",
            f"workers ended: {account.ended_workers}",
            f"treated wrongly: {len(account.wrongs)}",
        ]
    )


async def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", type=int, default=0)
    parser.add_argument("--case", action="append", default=[])
    asked = parser.parse_args()
    named = (case.split(":") for case in asked.case)
    files = [hostile_file(kind, int(number)) for kind, number in named]
    async with Imaging(workers=LANES, accept=KINDS) as pool:
        campaign = Campaign(pool, folder=asked.folder)
        account = await campaign.run(iter(files) if files else planned(asked.cases))
    sys.stderr.write(table(account) + "\n")
    sys.stdout.buffer.write(msgspec.json.encode(account))


if __name__ == "__main__":
    asyncio.run(_main())
