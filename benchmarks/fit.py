"""A picture made fit for a model: limner beside the upstream tool, Pillow, pyvips and OpenCV.

Every entrant is a warm process of its own. They take turns at each picture of a corpus in each
round, so that a busy moment of the machine falls on all of them, and only ratios within a round
are compared. The first round is not timed: it warms them up and yields the pictures to judge. The
floor is the least work there is: a scaled decode, a SIMD resize and a JPEG, in process.

`python -m benchmarks fit` compares over both sets of pictures. Every picture's own row is shown by

    python -m benchmarks.fit [--corpus own|drawn] [--rounds N] [--quick] [--only WORD]
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from benchmarks.comparison import Comparison, table
from benchmarks.corpus import corpus
from benchmarks.drawn_corpus import drawn_corpus
from benchmarks.environments import bench_folder, python_with
from benchmarks.fit_comparisons import comparisons
from benchmarks.fit_report import Output, Trial, Trials, report
from benchmarks.likeness import Reference
from benchmarks.metered import Claim, FitError, Metered
from benchmarks.upstream import NotInstalledError, upstream

ROUNDS = 3
QUICK_ROUNDS = 2
LIBRARIES = ("pyvips[binary]==3.2.0", "pyvips-binary==8.18.7", "opencv-python-headless==5.0.0.93")
# The pictures that the engine was tuned on, and those that a seed decided before.
CORPORA = {"own": corpus, "drawn": drawn_corpus}


@dataclass(frozen=True, slots=True)
class Entrant:
    """Who takes part: a label, the process that serves it, and the mode it is asked for."""

    label: str
    peer: str
    mode: str


ENTRANTS = (
    Entrant("upstream", "upstream", "seed"),
    Entrant("pillow", "pillow", "seed"),
    Entrant("floor", "floor", "fast"),
    Entrant("seed", "limner", "seed"),
    Entrant("fast", "limner", "fast"),
    Entrant("seed without [fast]", "limner without [fast]", "seed"),
    Entrant("fast without [fast]", "limner without [fast]", "fast"),
    *(
        Entrant(f"{peer}, {mode}", peer, mode)
        for mode in ("jpeg", "webp")
        for peer in ("limner", "pyvips", "OpenCV")
    ),
)


def main() -> list[Comparison]:
    """Compare over both sets of pictures; with REQUIRE=all fail if a peer is missing."""
    if sys.platform != "linux":
        print("skipped: processor time and memory of other processes are read from /proc")
        return []
    found = {name: make(bench_folder() / name, quick=False) for name, make in CORPORA.items()}
    trials = _measured([path for paths in found.values() for path in paths], ROUNDS)
    corpora = {name: [path.name for path in paths] for name, paths in found.items()}
    return comparisons(trials, corpora)


def _tell(arguments: Sequence[str]) -> None:
    """Print every picture's row, of some pictures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fit")
    parser.add_argument("--corpus", choices=tuple(CORPORA), default="own", help="which pictures")
    parser.add_argument("--rounds", type=int, help=f"timed rounds, {ROUNDS} unless told")
    parser.add_argument("--quick", action="store_true", help="few pictures, few rounds")
    parser.add_argument("--only", default="", help="only pictures whose name has this in it")
    options = parser.parse_args(arguments)
    paths = CORPORA[options.corpus](bench_folder() / options.corpus, quick=options.quick)
    pictures = [path for path in paths if options.only in path.name]
    trials = _measured(pictures, options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS))
    print(report(trials))
    for one in comparisons(trials, {options.corpus: trials.pictures}):
        print(table(one))


def _measured(pictures: list[Path], rounds: int) -> Trials:
    with contextlib.ExitStack() as stack:
        peers, absent = _start()
        for peer in peers.values():
            stack.callback(peer.close)
        for name, reason in absent.items():
            print(f"not measured: {name} ({reason})")
        if absent and os.environ.get("REQUIRE") == "all":
            raise SystemExit(1)
        return _measure(pictures, peers, rounds=rounds)


def _start() -> tuple[dict[str, Metered], dict[str, str]]:
    """The processes that can run here, and why the others cannot."""
    peers: dict[str, Metered] = {}
    absent: dict[str, str] = {}
    try:
        peers["upstream"] = Metered(upstream(bench_folder() / "peers"))
    except NotInstalledError as error:
        absent["upstream"] = str(error)
    peers["pillow"] = Metered(_serve("pillow"))
    peers["limner without [fast]"] = Metered(_serve("limner"), env=_without_fast())
    if importlib.util.find_spec("cykooz_resizer"):
        peers |= {name: Metered(_serve(name)) for name in ("floor", "limner")}
    else:
        absent["floor and limner[fast]"] = "cykooz.resizer is not installed"
    try:
        python = python_with("fit-peers", *LIBRARIES)
    except subprocess.CalledProcessError:
        absent["pyvips and OpenCV"] = "pip cannot install them"
    else:
        peers |= {name: Metered(_serve(name, python)) for name in ("pyvips", "OpenCV")}
    return peers, absent


def _serve(name: str, python: str = sys.executable) -> list[str]:
    return [python, "-m", "benchmarks.fit_peers", name]


def _without_fast() -> dict[str, str]:
    """An environment in which the extra cannot be imported, by limner's worker neither."""
    folder = bench_folder() / "without-fast"
    folder.mkdir(exist_ok=True)
    for name in ("cykooz_resizer", "zlib_ng"):
        (folder / f"{name}.py").write_text('raise ImportError("left out on purpose")\n')
    return {"PYTHONPATH": str(folder)}


def _measure(pictures: list[Path], peers: dict[str, Metered], *, rounds: int) -> Trials:
    entrants = [entrant for entrant in ENTRANTS if entrant.peer in peers]
    trials = Trials([entrant.label for entrant in entrants], [path.name for path in pictures])
    for path in _told(pictures, "warming up and judging"):
        reference = Reference(path)
        for entrant in entrants:
            trials[entrant.label, path.name] = _first(peers[entrant.peer], entrant, path, reference)
    for turn in range(rounds):
        for path in _told(pictures, f"round {turn + 1} of {rounds}"):
            shift = turn % len(entrants)
            for entrant in entrants[shift:] + entrants[:shift]:
                trial = trials[entrant.label, path.name]
                if trial.failure is None:
                    _time(peers[entrant.peer], entrant, path, trial)
    return trials


def _time(peer: Metered, entrant: Entrant, path: Path, trial: Trial) -> None:
    try:
        _, cost = peer.fit(path, mode=entrant.mode)
    except FitError as error:
        trial.failure = str(error)
    else:
        trial.costs.append(cost)


def _told(pictures: list[Path], what: str) -> Iterator[Path]:
    """The pictures, with a line that says where we are for someone who watches."""
    for number, path in enumerate(pictures, 1):
        if sys.stderr.isatty():
            print(f"\r\033[K{what}: {number} of {len(pictures)}", end="", file=sys.stderr)
        yield path
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)


def _first(peer: Metered, entrant: Entrant, path: Path, reference: Reference) -> Trial:
    """The round that is not timed: what comes out, and how good it is."""
    try:
        claim, _ = peer.fit(path, mode=entrant.mode)
        with tempfile.TemporaryDirectory() as folder:
            sent = Path(folder, "sent")
            peer.save(sent)
            return Trial(output=_judge(sent.read_bytes(), claim, reference))
    except FitError as error:
        return Trial(failure=str(error))


def _judge(data: bytes, claim: Claim, reference: Reference) -> Output:
    with Image.open(io.BytesIO(data)) as picture:
        true = Claim(Image.MIME[picture.format or ""], *picture.size)
    return Output(
        size=len(data),
        claim=claim,
        true=true,
        original=reference.size,
        ssim=reference.ssim(data),
    )


if __name__ == "__main__":
    _tell(sys.argv[1:])
