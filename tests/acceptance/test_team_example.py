"""The team of `examples/team`: started, worked, copied, restored and ended, all of it real."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.servers.postgres_server import INITDB, needs_postgres
from tests.servers.s3_server import RCLONE, needs_s3

from limner import Limner
from limner.batches.records import BatchCounts
from limner.testing import FakeServices
from limner.tools.batches import BatchManifest

FOLDER = Path(__file__).parents[2] / "examples" / "team"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the user of PostgreSQL may enter; a path of pytest is for its owner alone."""
    made = Path(tempfile.mkdtemp(prefix="limner-team-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def a_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def variables(folder: Path, home: str) -> dict[str, str]:
    """The variables of the team, as a shell reads them."""
    script = f". {folder}/env && env -0"
    said = subprocess.run(["bash", "-c", script], env={}, capture_output=True, check=True).stdout
    pairs = [pair.partition("=") for pair in said.decode().split("\0") if pair]
    return {name: value for name, _, value in pairs} | {"LIMNER_HOME": str(folder / home)}


def rows_done(folder: Path, worker: str) -> int:
    """How many rows a worker says that it has done."""
    log = (folder / f"{worker}.log").read_text()
    found = re.search(r"http://127\.0\.0\.1:(\d+)/metrics\n.* token in (\S+)\n", log)
    assert found, log
    connection = HTTPConnection("127.0.0.1", int(found[1]), timeout=30)
    token = Path(found[2]).read_text()
    connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}"})
    text = connection.getresponse().read().decode()
    connection.close()
    done = re.search(r'limner_batch_rows_ended_total{outcome="done"} (\d+)', text)
    return 0 if done is None else int(done[1])


def run(*words: str | Path, env: dict[str, str] | None = None) -> None:
    subprocess.run(words, check=True, capture_output=True, env=env)


async def restored(folder: Path, batch_id: str) -> tuple[BatchCounts, list[bool]]:
    """Copy the team as the guide says, restore the copy, and look at all of its pictures."""
    assert INITDB is not None
    host = f"--host={folder}/postgres"
    dump, programs = folder / "records.dump", Path(INITDB).parent
    # The guide: records first, then pictures.
    run(programs / "pg_dump", host, "--username=limner", "-Fc", f"--file={dump}", "postgres")
    env = variables(folder, "restored")
    bucket = {
        "RCLONE_CONFIG": os.devnull,
        "RCLONE_S3_PROVIDER": "Other",
        "RCLONE_S3_ENDPOINT": env["AWS_ENDPOINT_URL"],
        "RCLONE_S3_ACCESS_KEY_ID": env["AWS_ACCESS_KEY_ID"],
        "RCLONE_S3_SECRET_ACCESS_KEY": env["AWS_SECRET_ACCESS_KEY"],
    }
    run(RCLONE, "copy", ":s3:pictures/team", folder / "copy", env=bucket)
    # Back again: pictures first, then records.
    run(RCLONE, "copy", folder / "copy", ":s3:pictures/again", env=bucket)
    run(programs / "createdb", host, "--username=limner", "again")
    run(programs / "pg_restore", host, "--username=limner", "--dbname=again", dump)
    env["LIMNER_STORE"] = env["LIMNER_STORE"].replace("/postgres?", "/again?")
    env["LIMNER_BLOBS"] = "s3://pictures/again"
    async with Limner(env=env, cwd=folder) as lim:
        batch = await lim.batches.queue.get(batch_id)
        found = [row async for row in lim.batches.queue.results(batch)]
        counts = await lim.batches.queue.counts(batch)
        pictures = [await lim.pictures.recall(row.picture or "") for row in found]
        # A home without copies: the bytes come from the bucket.
        read = [await lim.pictures.original(picture) for picture in pictures]
        pairs = zip(pictures, read, strict=True)
        return counts, [one.handle == sha256(data).hexdigest() for one, data in pairs]


@contextmanager
def team(folder: Path, services: Mapping[str, str]) -> Iterator[None]:
    """The script, until Ctrl-C."""
    path = os.pathsep.join([str(Path(sys.executable).parent), str(RCLONE.parent), os.defpath])
    script = subprocess.Popen(
        ["bash", FOLDER / "start.sh", folder],
        env={**services, "PATH": path, "HOME": str(folder), "S3_PORT": str(a_free_port())},
        stdout=subprocess.PIPE,
        text=True,
    )
    with script as started:
        try:
            assert started.stdout is not None
            assert started.stdout.readline().startswith("start.sh: two workers wait for batches.")
            yield
        finally:
            started.send_signal(signal.SIGINT)
    assert script.returncode == 0


@pytest.mark.slow
@needs_postgres
@needs_s3
async def test_both_workers_of_the_script_draw_and_a_copy_has_every_picture(folder: Path) -> None:
    rows = [{"key": f"k{n}", "prompt": f"fox {n}", "provider": "openai-image"} for n in range(16)]
    with FakeServices(folder / "services") as services, team(folder, services.env):
        # A worker draws eight pictures at once: sixteen are in flight only if both work.
        held = [services.images.hold() for _ in rows]
        env = {**services.env, **variables(folder, "mine")}
        async with Limner(env=env, cwd=folder) as lim:
            manifest = BatchManifest.of_rows(rows)
            batch = await lim.batches.open(manifest, lim.person(), budget_nano=10**9, approved=True)
            await asyncio.gather(*(one.arrived(timeout_s=60) for one in held))
            for one in held:
                one.release()
            while (status := await lim.batches.status(batch.id)).counts.ended < len(rows):
                pass
        assert status.counts == BatchCounts(done=len(rows))
        assert services.bill().cost_usd * 1e9 == pytest.approx(status.spent_nano)
        assert [rows_done(folder, worker) for worker in ("worker-1", "worker-2")] == [8, 8]
        assert await restored(folder, batch.id) == (status.counts, [True] * len(rows))
    for name in ("worker-1", "worker-2"):
        assert "Interrupted." in (folder / f"{name}.log").read_text()
    assert "database system is shut down" in (folder / "postgres.log").read_text()


def test_compose_starts_the_same_programs_with_the_same_variables_as_the_script() -> None:
    script = (FOLDER / "start.sh").read_text()
    compose: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    worker = compose["services"]["worker"]
    assert {*compose["services"]} == {"postgres", "s3", "worker"}
    assert worker["deploy"]["replicas"] == 2
    assert worker["command"].startswith("work --wait --metrics ")
    assert "limner work --wait --metrics " in script
    assert "rclone serve s3" in script
    assert compose["services"]["s3"]["command"].startswith("serve s3 ")
    named = {*re.findall(r"\b((?:LIMNER|AWS)_(?!HOME)\w+)='", script)}
    assert named | {"PGPASSWORD", "LIMNER_METRICS_TOKEN"} == {*worker["environment"]}
