"""Two hosts with one PostgreSQL database and one bucket: the whole program, as a team uses it."""

from __future__ import annotations

import asyncio
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.conftest import PRICE_NANO, Studio, picture, unlabelled
from tests.acceptance.hardship import LIMNER, kill, limner, start
from tests.databases import change
from tests.servers.components import needs
from tests.servers.postgres_server import INITDB, PostgresServer, needs_postgres
from tests.servers.s3_server import BUCKET, S3Server, needs_s3
from tests.servers.studio_server import running

from limner import Limner
from limner.frontends.health import examine
from limner.storage.store import Transaction
from limner.testing.servers.openai_server import OpenAIServer
from limner.testing.servers.replicate_server import ReplicateServer

pytestmark = [pytest.mark.slow, needs_postgres, needs_s3, needs("obstore")]

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "team.md"


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[S3Server]:
    with S3Server(tmp_path / "s3") as server:
        yield server


class Team:
    """Two hosts: each has a home and a folder of its own."""

    def __init__(self, folder: Path, *, env: dict[str, str]) -> None:
        self.folder, self.env = folder, env
        self.first, self.second = self._host("first"), self._host("second")

    def _host(self, name: str) -> Studio:
        (self.folder / name).mkdir()
        host = Studio(self.folder / name)
        host.env |= self.env
        return host

    @property
    def stored(self) -> set[str]:
        """The handles in the bucket, as the server's own disk has them."""
        folder = self.folder / "s3" / BUCKET / "team"
        return {path.parent.name for path in folder.glob("??/*/*")}


@pytest.fixture
def team(tmp_path: Path, s3: S3Server, postgres: PostgresServer) -> Team:
    store = {"LIMNER_STORE": postgres.new_url(), "LIMNER_BLOBS": f"s3://{BUCKET}/team"}
    return Team(tmp_path, env=s3.env | store)


async def run(host: Studio, *words: str) -> Any:
    status, said = await limner(*words, env=host.env, cwd=host.cwd)
    assert status == 0, said
    return said


async def test_what_one_host_draws_another_shows_inspects_changes_and_lists(
    team: Team, tmp_path: Path
) -> None:
    drawn = await run(team.first, "generate", "a red circle", "--provider", "illustrator")
    handle = drawn["image"]
    assert team.stored == {handle}
    shown = await run(team.second, "show", handle)
    copy = team.second.home / "blob-copies" / handle[:2] / handle
    assert (shown["kept_at"], copy.is_file()) == (str(copy), True)
    assert "red" in (await run(team.second, "inspect", handle, "Which colours?"))["text"]
    edited = await run(team.second, "edit", handle, "make the circle blue")
    async with team.first.open() as lim, running(lim) as page:
        listed = (await page.http.get("/api/pictures", params={"q": "circle"})).json()
        assert [one["handle"] for one in listed["pictures"]][-1] == handle
        assert edited["image"] in {one["handle"] for one in listed["pictures"]}
        thumbnail = await page.http.get(f"/api/pictures/{edited['image']}/thumbnail")
        assert thumbnail.headers["content-type"] == "image/webp"
        gone = await page.http.post("/api/deletions", json={"handles": [handle]})
        assert gone.json()["bytes"] > 0
    assert handle not in team.stored
    status, said = await limner("show", handle, env=team.second.env, cwd=team.second.cwd)
    assert (status, said["error"]["code"]) == (2, "NO_SUCH_PICTURE")


async def test_a_session_and_a_bill_of_one_host_are_there_on_the_other(
    team: Team, openai: OpenAIServer
) -> None:
    team.first.connect(openai)
    paid = await run(team.first, "generate", "a fox", "--provider", "openai-image")
    async with team.first.open() as lim:
        session = await lim.sessions.create(cwd="/")
        url = f"limner://image/{paid['image']}"
        shown = {"type": "input_image", "image_url": url}
        await session.append([{"type": "message", "role": "user", "content": [shown]}])
    spend = await run(team.second, "spend")
    assert (spend["total_usd"], len(spend["recent"])) == (PRICE_NANO / 1e9, 1)
    file = team.second.cwd / "talk.jsonl"
    await run(team.second, "sessions", "export", session.id, "--out", str(file))
    assert "data:image/png;base64," in file.read_text()


async def test_a_job_of_a_host_that_died_is_recovered_on_another(
    team: Team, replicate: ReplicateServer
) -> None:
    for host in (team.first, team.second):
        host.connect(replicate)
    replicate.looks = 1_000_000
    words = ("generate", "a fox", "--provider", "replicate-flux")
    process = await start(*words, env=team.first.env, cwd=team.first.cwd)
    await replicate.wait_until("look")
    await kill(process)
    replicate.looks = 0
    recovered = (await run(team.second, "jobs", "recover"))["jobs"]
    assert [one["state"] for one in recovered] == ["recovered"]
    assert unlabelled(Path(recovered[0]["path"])) == replicate.picture
    assert await run(team.first, "jobs", "recover") == {"jobs": []}
    assert len(replicate.sent("create")) == 1


async def test_the_garbage_of_one_host_is_collected_by_another(
    team: Team, s3: S3Server, tmp_path: Path
) -> None:
    files = [tmp_path / "old.png", tmp_path / "kept.png"]
    for number, file in enumerate(files, start=1):
        file.write_bytes(picture(8, 8 * number))
    async with team.first.open() as lim:
        old, kept = [await lim.pictures.take_file(file) for file in files]
        await change(lim.store, "UPDATE pictures SET created_ms = 1")
    s3.stop()
    for path in (tmp_path / "s3" / BUCKET / "team").glob("??/*/*"):
        if path.parent.name == old.handle:
            path.rename(path.with_name("20260101T000000Z-00000000"))
    s3.start()
    freed = await run(team.second, "gc", "--all")
    assert (freed["pictures"], freed["files"], freed["young"]) == (1, 1, 1)
    assert team.stored == {kept.handle}


async def test_the_doctor_describes_the_server_and_sends_repairs_to_its_tools(team: Team) -> None:
    checks = {one["name"]: one for one in (await run(team.first, "doctor"))["checks"]}
    assert checks["database"]["ok"]
    assert re.fullmatch(
        r"postgresql://limner@\S+, open jobs: 0, PostgreSQL \d+\.\d+, tables \d+, "
        r"answers in \d+\.\d ms, the clock of this host is \d+\.\d s (ahead of|behind) the "
        r"server's",
        checks["database"]["detail"],
    )
    assert checks["blobs"]["detail"] == f"pictures are stored in s3://{BUCKET}/team"
    for words, hint in (
        (("backup", "home.tar"), 'pg_dump --format=custom --file=limner.dump "$LIMNER_STORE"'),
        (("doctor", "--repair"), 'pg_restore --clean --if-exists --dbname="$LIMNER_STORE"'),
    ):
        status, said = await limner(*words, env=team.first.env, cwd=team.first.cwd)
        assert status == 1
        assert "is for the SQLite file of a home" in said["error"]["message"]
        assert said["error"]["hint"].startswith(hint)
    assert not (team.first.cwd / "home.tar").exists()


async def test_the_doctor_finds_that_the_clocks_of_host_and_server_differ(
    studio: Studio, postgres: PostgresServer
) -> None:
    """The server of this database is five minutes ahead."""
    postgres.run("CREATE SCHEMA clocks")
    postgres.run(
        "CREATE FUNCTION clocks.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS "
        "$$ SELECT pg_catalog.clock_timestamp() + interval '5 minutes' $$"
    )
    studio.env["LIMNER_STORE"] = postgres.url(schema="clocks,pg_catalog")
    async with studio.open() as lim:
        checks = {check.name: check for check in (await examine(lim)).checks}
    assert checks["database"].ok is False
    assert re.search(
        r"this host is (300|299)\.\d s behind the server's\. Set the clocks",
        checks["database"].detail,
    )


async def test_a_paid_call_of_one_session_completes_while_another_holds_its_transaction(
    team: Team, openai: OpenAIServer
) -> None:
    """One host is inside the transaction of a call, and stays there."""
    inside, go_on = threading.Event(), threading.Event()
    call: dict[str, Any] = {"tool": "t", "provider": "openai-image", "model": "m"}
    async with team.first.open() as slow, team.second.connect(openai).open() as other:
        await other.money.spend()  # both have taken their places
        held = await slow.money.reserve(60, session_id="a", **call)

        def hold(tx: Transaction) -> None:
            tx.lock("session a")
            slow.money.write_sent(tx, held)
            inside.set()
            assert go_on.wait(120)

        holding = asyncio.create_task(slow.store.write(hold, shared=True))
        await asyncio.to_thread(inside.wait)
        try:
            session = await other.sessions.create(cwd="/")
            await other.sessions.rename(session.id, "Fox")
            await session.append([{"type": "note"}])
            drawn = await other.generate("a fox", provider="openai-image")
            assert (drawn.cost_usd, holding.done()) == (PRICE_NANO / 1e9, False)
        finally:
            go_on.set()
            await holding
        await slow.money.release(held)
        assert await other.money.wrong_counters() == []


async def test_pictures_move_into_a_bucket_and_back_and_an_interrupted_copy_goes_on(
    studio: Studio, s3: S3Server, tmp_path: Path
) -> None:
    datas = [picture(8, 8 + number) for number in range(5)]
    async with studio.open() as lim:
        taken: list[str] = []
        for number, data in enumerate(datas):
            file = tmp_path / f"{number}.png"
            file.write_bytes(data)
            taken.append((await lim.pictures.take_file(file)).handle)
    to = f"s3://{BUCKET}/team"
    studio.env |= s3.env
    # What an interrupted copy leaves: one of them is there, and another one is cut off.
    async with Limner(env=studio.env | {"LIMNER_BLOBS": to}, cwd=studio.cwd) as there:
        there.components.blobs.add(datas[0])
    stored = tmp_path / "s3" / BUCKET / "team"
    broken = stored / taken[1][:2] / taken[1] / "20260101T000000Z-00000000"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(datas[1][:20])
    (studio.home / "blobs" / taken[2][:2] / taken[2]).write_bytes(b"damaged")
    status, said = await limner("store", "copy", to, env=studio.env, cwd=studio.cwd)
    sizes = [len(datas[number]) for number in (1, 3, 4)]
    home = str(studio.home / "blobs")
    assert (status, said) == (
        1,
        {
            "source": home,
            "target": to,
            "files": 5,
            "copied": 3,
            "size_bytes": sum(sizes),
            "damaged": [taken[2]],
        },
    )
    back = tmp_path / "new-home" / "blobs"
    back.mkdir(parents=True)
    studio.env["LIMNER_BLOBS"] = to
    said = await run(studio, "store", "copy", f"file://{back}")
    assert (said["files"], said["copied"], said["damaged"]) == (4, 4, [])
    for number in (0, 1, 3, 4):
        assert (back / taken[number][:2] / taken[number]).read_bytes() == datas[number]
    assert (await run(studio, "store", "copy", f"file://{back}"))["copied"] == 0
    status, said = await limner("store", "copy", to, env=studio.env, cwd=studio.cwd)
    assert (status, said["error"]["message"]) == (2, f"The pictures are stored in {to} already.")
    for wrong, code in (("s3:pictures", "INPUT_INVALID"), (f"file://{back}-2", "NO_BUCKET")):
        _, said = await limner("store", "copy", wrong, env=studio.env, cwd=studio.cwd)
        assert said["error"]["code"] == code
    (back / "databases").mkdir()
    (back / "databases" / "another").touch()
    _, said = await limner("store", "copy", f"file://{back}", env=studio.env, cwd=studio.cwd)
    assert said["error"]["code"] == "BLOBS_SHARED"


async def test_the_commands_of_the_guide_run_against_real_servers(
    studio: Studio, s3: S3Server, postgres: PostgresServer
) -> None:
    """Only the addresses and the keys are not those of the page."""
    from psycopg.conninfo import conninfo_to_dict

    address = postgres.url(database="limner")
    blocks = re.findall(r"^```bash\n(.*?)^```", GUIDE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    for number, block in enumerate(blocks):
        lines = [line for line in block.splitlines() if "AWS_" not in line]
        example = "postgresql://limner@db.example/limner"
        blocks[number] = "\n".join(lines).replace(example, f"'{address}'")
    database, dump, records, bucket, pictures = blocks
    assert INITDB is not None
    path = f"{LIMNER.parent}:{Path(INITDB).parent}:/usr/bin:/bin"
    host = {"PGHOST": str(conninfo_to_dict(address)["host"]), "PGUSER": "limner"}
    env = {**studio.env, **s3.env, **host, "PATH": path}
    drawn = await run(studio, "generate", "a red circle", "--provider", "illustrator")

    said = await shell(database, env=env, cwd=studio.cwd)
    assert re.search(r"^ok    database    postgresql://limner@.* PostgreSQL ", said, re.MULTILINE)
    said = await shell(records, env=env, cwd=studio.cwd)
    assert said.count("\n         1  pictures\n") == 2
    env["LIMNER_STORE"] = address
    await shell(dump, env=env, cwd=studio.cwd)
    said = await shell(pictures, env=env, cwd=studio.cwd)
    assert said.count("1 of 1 pictures copied") == 2
    said = await shell(bucket, env=env, cwd=studio.cwd)
    assert f"ok    blobs       pictures are stored in s3://{BUCKET}/team\n" in said
    new = studio.cwd / "new-home"
    home = {**studio.env, "LIMNER_HOME": str(new)}
    _, shown = await limner("show", drawn["image"], env=home, cwd=studio.cwd)
    assert Path(shown["kept_at"]).is_relative_to(new / "blobs")


async def shell(script: str, *, env: dict[str, str], cwd: Path) -> str:
    done = await asyncio.to_thread(
        subprocess.run,
        ["bash", "-euc", script],
        env=env,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
