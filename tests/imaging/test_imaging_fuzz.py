from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import hostile_host
import msgspec
import pytest
from hostile_anatomy import anatomy, mend
from hostile_files import HostileFile, hostile_file
from hostile_host import LANES, Account, Campaign
from hostile_seeds import KINDS, scene, seeds
from hypothesis import given
from hypothesis import strategies as st
from imaging_samples import encoded, worker_pids
from msgspec.structs import replace
from tests.fuzz import IS_LONG, sample

from limner.errors import CorruptImage
from limner.imaging.facts import Facts
from limner.imaging.fit import FitRequest, Fitted
from limner.imaging.formats import BY_NAME
from limner.imaging.pool import Imaging, Source

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc"),
]

CASES = 20_000 if IS_LONG else 330


def test_hostile_files_of_every_type_end_in_a_picture_or_a_clear_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, "-W", "error", hostile_host.__file__, str(tmp_path)]
    # Of a long run one wants to see how far it is.
    with capfd.disabled() if IS_LONG else nullcontext():
        host = subprocess.run(
            [*command, "--cases", str(CASES)], stdout=subprocess.PIPE, check=False
        )
    assert host.returncode == 0
    account = msgspec.json.decode(host.stdout, type=Account)
    assert account.wrongs == []
    assert set(account.outcomes) == set(KINDS)
    assert sum(sum(counts.values()) for counts in account.outcomes.values()) == CASES
    # Neither blunt nor deadly: every type has files that pass and files that do not.
    assert [kind for kind, counts in account.outcomes.items() if "answered" not in counts] == []
    assert [kind for kind, counts in account.outcomes.items() if len(counts) < 2] == []


@pytest.mark.parametrize("kind", KINDS)
async def test_hostile_files_begin_as_healthy_ones(kind: str) -> None:
    async with Imaging(workers=1, accept=[kind]) as pool:
        facts = [await pool.verify(seed) for seed in seeds(kind)]
    assert {fact.mime for fact in facts} == {BY_NAME[kind].mime}


DIGEST = """
import hashlib
from hostile_files import hostile_file
from hostile_seeds import KINDS
files = b"".join(hostile_file(kind, n).data for kind in KINDS for n in range(9))
print(hashlib.sha256(files).hexdigest())
"""


def test_hostile_cases_are_the_same_in_every_process() -> None:
    files = b"".join(hostile_file(kind, n).data for kind in KINDS for n in range(9))
    folder = str(Path(hostile_host.__file__).parent)
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": folder}
    command = [sys.executable, "-c", DIGEST]
    there = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert there.stdout.strip() == hashlib.sha256(files).hexdigest()


@sample(100)
@given(kind=st.sampled_from(KINDS), number=st.integers(0, 10**6), tail=st.binary(max_size=99))
def test_property_the_anatomy_of_a_file_lies_within_the_file(
    kind: str, number: int, tail: bytes
) -> None:
    data = hostile_file(kind, number).data + tail
    found = anatomy(kind, data)
    assert found.parts
    assert all(0 <= start <= end <= len(data) for start, end in found.parts)
    assert all(0 <= n.start < n.start + n.size <= len(data) for n in found.numbers)
    assert mend(kind, mend(kind, data)) == mend(kind, data)


def whole_file(number: int) -> HostileFile:
    """A case that is no trouble at all, of a size that is never passed on as it is."""
    data = encoded(scene(640, 420), "PNG")
    return HostileFile(kind="png", number=number, recipe="none", data=data)


class Liar(Imaging):
    """A pool that reports other sizes than it sends."""

    async def fit(self, data: Source, request: FitRequest) -> tuple[Fitted, bytes]:
        fitted, sent = await super().fit(data, request)
        return replace(fitted, width=fitted.width - 1), sent


class Mumbler(Imaging):
    """A pool that quotes an internal error of Python."""

    mumble = "'NoneType' object has no attribute 'size'"

    async def fit(self, data: Source, request: FitRequest) -> tuple[Fitted, bytes]:
        if data == whole_file(0).data:
            raise CorruptImage(self.mumble)
        return await super().fit(data, request)


class Calculator(Mumbler):
    """A pool that quotes an accident with numbers."""

    mumble = "the picture does not decode: division by zero"


class Namer(Mumbler):
    """A pool that quotes a decoder on a name in its code."""

    mumble = "the picture does not decode: too large for PngImagePlugin.MAX_TEXT_CHUNK"


class Coder(Mumbler):
    """A pool that quotes an error number."""

    mumble = "the picture does not decode: decoder error -2"


class Mortal(Imaging):
    """A pool whose workers die before they can look at a picture."""

    bystanders: frozenset[int]
    slain = 0

    async def verify(self, data: Source) -> Facts:
        for pid in worker_pids() - self.bystanders:
            slay(pid)
            self.slain += 1
        return await super().verify(data)


MUMBLERS = (Mumbler, Calculator, Namer, Coder)


def slay(pid: int) -> None:
    """Kill a worker; it is dead before the pool looks, and the pool has to reap it."""
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Liar, "what came out is Facts("),
        *(
            (kind, f"a message about code, not about the picture: {kind.mumble!r}")
            for kind in MUMBLERS
        ),
    ],
)
async def test_hostile_files_that_break_a_promise_are_named_and_kept(
    tmp_path: Path, kind: type[Imaging], reason: str
) -> None:
    files = [whole_file(number) for number in range(20)]
    async with kind(workers=LANES) as pool:
        account = await Campaign(pool, folder=tmp_path).run(iter(files))
    assert account.wrongs != []
    for line in account.wrongs:
        name = line.split()[0]
        kept = tmp_path / f"{name.replace(':', '-')}.png"
        assert line.startswith(f"{name} (none): {reason}")
        assert line.endswith(f"; it is in {kept}")
        assert kept.read_bytes() == files[0].data


async def test_hostile_files_that_end_a_worker_are_followed_by_a_good_one(tmp_path: Path) -> None:
    async with Mortal(workers=LANES) as pool:
        pool.bystanders = frozenset(worker_pids())
        campaign = Campaign(pool, folder=tmp_path)
        for number in range(5):
            await campaign.run(iter([whole_file(number)]))
    assert campaign.account.wrongs == []
    assert campaign.account.ended_workers == pool.slain >= 3
