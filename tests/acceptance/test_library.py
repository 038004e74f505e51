"""limner as a library: with and without async, in threads, notebooks, forks and several loops."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import Image
from tests.acceptance.conftest import OPENAI_KEY, Studio, unlabelled
from tests.acceptance.hardship import held_back, until
from tests.imaging.imaging_samples import worker_pids
from tests.servers.components import starts_late_threads

import limner
from limner import Limner, ToolCall, ToolContext, ToolRegistry
from limner.errors import InputInvalid
from limner.testing.servers.http_server import Gate
from limner.testing.servers.openai_server import OpenAIServer
from limner.testing.servers.replicate_server import ReplicateServer

pytestmark = pytest.mark.slow

SIZE = "64x64"


@pytest.fixture
def home(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This process itself lives in the studio."""
    for name in ("OPENAI_API_KEY", "REPLICATE_API_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name, value in studio.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(studio.cwd)
    return studio.home


def assert_picture(path: Path, *, under: Path) -> None:
    assert path.is_relative_to(under)
    with Image.open(path) as image:
        assert (image.format, image.size) == ("PNG", (64, 64))
        image.load()


def test_a_picture_without_async(home: Path) -> None:
    drawn = limner.generate("a red fox", size=SIZE)
    assert_picture(drawn.path, under=home / "generated")
    assert (drawn.dimensions, drawn.cost_usd, drawn.cost_source) == ((64, 64), 0.0, "table")
    assert (drawn.provider, drawn.model, drawn.prompt_used) == (
        "illustrator",
        "limner-illustrator",
        "a red fox",
    )
    assert drawn.image.mime == "image/png"


def test_a_failure_without_async_is_the_same_error(home: Path) -> None:
    with pytest.raises(InputInvalid) as caught:
        limner.generate("   ")
    assert (caught.value.field, caught.value.billed) == ("prompt", False)
    with pytest.raises(InputInvalid, match="size"):
        limner.generate("a fox", size="large")


def test_a_call_with_a_number_returns_a_list_and_a_call_without_returns_a_picture(
    home: Path,
) -> None:
    three = limner.generate("a fox", n=3, size=SIZE, output_path=Path("fox.png"))
    assert [one.path.name for one in three] == ["fox.png", "fox-1.png", "fox-2.png"]
    # The number of a program is only known when it runs, so the type depends on its presence.
    number: int = 1
    drawn = limner.generate("a fox", n=number, size=SIZE)
    assert [type(one) for one in drawn] == [limner.GeneratedImage]
    assert_picture(limner.generate("a fox", n=None, size=SIZE).path, under=home)


def test_an_unknown_keyword_is_a_type_error_and_none_means_not_given(home: Path) -> None:
    with pytest.raises(TypeError, match=r"generate\(\) got an unexpected keyword argument 'sise'"):
        limner.generate("a fox", sise=SIZE)  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match=r"edit\(\) got an unexpected keyword argument 'svg'"):
        limner.edit("fox.png", "x", svg=None)  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match=r"inspect\(\) got an unexpected keyword argument 'n'"):
        limner.inspect("fox.png", "x", n=2)  # pyright: ignore[reportCallIssue]
    drawn = limner.generate("a fox", size=SIZE, seed=None, output_path=None, fallback=None)
    assert_picture(drawn.path, under=home)


def test_what_only_a_caller_can_ask_for_is_a_keyword_too(home: Path) -> None:
    drawn = limner.generate("a fox", size=SIZE, output_format="webp", output_path="fox.webp")
    assert (drawn.path.name, drawn.image.mime) == ("fox.webp", "image/webp")
    with pytest.raises(InputInvalid, match="output_format must be one of png, jpeg, webp"):
        limner.generate("a fox", output_format="bmp")  # pyright: ignore[reportArgumentType]


def test_pictures_from_several_threads_at_once(home: Path) -> None:
    with ThreadPoolExecutor(6) as threads:
        drawn = list(threads.map(lambda n: limner.generate(f"{n} foxes", size=SIZE), range(12)))
    assert len({one.path for one in drawn}) == 12
    for one in drawn:
        assert_picture(one.path, under=home / "generated")


async def test_a_picture_inside_a_running_event_loop_as_in_a_notebook(home: Path) -> None:
    assert_picture(limner.generate("a fox", size=SIZE).path, under=home)


def test_a_change_of_home_or_folder_holds_from_the_next_call(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = limner.generate("a fox", size=SIZE)
    monkeypatch.setenv("LIMNER_HOME", str(tmp_path / "another"))
    second = limner.generate("a fox", size=SIZE)
    assert_picture(first.path, under=home)
    assert_picture(second.path, under=tmp_path / "another")
    monkeypatch.chdir(tmp_path)
    third = limner.generate("a fox", size=SIZE, output_path="here.png")
    assert third.path == tmp_path / "here.png"


def test_a_change_of_home_does_not_disturb_a_call_under_way(
    home: Path, tmp_path: Path, openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    openai.script("generate", held_back(openai, gate))
    monkeypatch.setenv("OPENAI_API_KEY", OPENAI_KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", openai.base_url)
    with ThreadPoolExecutor(1) as thread:
        slow = thread.submit(limner.generate, "a fox")
        asyncio.run(openai.wait_until("generate"))
        monkeypatch.delenv("OPENAI_API_KEY")
        monkeypatch.setenv("LIMNER_HOME", str(tmp_path / "another"))
        quick = limner.generate("a fox", size=SIZE)
        assert not slow.done()
        gate.open()
        drawn = slow.result()
    assert quick.path.is_relative_to(tmp_path / "another")
    assert drawn.path.is_relative_to(home)
    assert unlabelled(drawn.path) == openai.picture


def program(code: str, studio: Studio) -> subprocess.CompletedProcess[str]:
    """Run a program of a user's to its end, with every warning shown as the error it is."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        env=studio.env,
        cwd=studio.cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


TELL_WORKERS = """
    import os, sys
    from pathlib import Path

    def workers():
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(stat.read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == os.getpid():
                found.append(stat.parent.name)
        return " ".join(found)
"""
PROGRAMS = {
    "without async": """
        import limner
        limner.generate("a fox", size="64x64")
        print(workers())
    """,
    "without async and without an end": """
        import limner, threading
        threading.Thread(target=limner.generate, args=("a fox",), kwargs={"size": "64x64"}).start()
        limner.generate("a fox", size="64x64")
        print(workers())
    """,
    "threads that outlive the main one": """
        import contextlib, limner, threading
        from concurrent.futures import ThreadPoolExecutor

        def before_and_after_python_has_closed_its_pools():
            limner.generate("a fox", size="64x64")
            with contextlib.suppress(RuntimeError):
                while True:
                    pool.submit(int).result()
            limner.generate("a fox", size="64x64")
            print(workers())

        pool = ThreadPoolExecutor(1)
        for _ in range(3):
            threading.Thread(target=before_and_after_python_has_closed_its_pools).start()
    """,
    "a context manager": """
        import asyncio, limner
        async def main():
            async with limner.Limner() as lim:
                await lim.generate("a fox", size="64x64")
                print(workers())
        asyncio.run(main())
    """,
    "never closed": """
        import asyncio, limner
        lim = limner.Limner()
        asyncio.run(lim.generate("a fox", size="64x64"))
        print(workers())
    """,
    "tools that nobody closes": """
        import asyncio, limner
        registry = limner.ToolRegistry(limner.create_image_tools())
        call = limner.ToolCall(
            name="image_generate", arguments={"prompt": "a fox", "size": "64x64"}
        )
        for _ in range(2):
            context = limner.ToolContext()
            (result,) = asyncio.run(registry.execute_parallel([call], context))
            assert result.ok, result
        print(workers())
    """,
    "a crash": """
        import asyncio, limner, os
        async def main():
            async with limner.Limner() as lim:
                await lim.generate("a fox", size="64x64")
                print(workers())
                raise SystemExit(0)
        asyncio.run(main())
    """,
}


@pytest.mark.skipif(sys.platform != "linux", reason="only /proc tells the children")
@pytest.mark.parametrize(
    "code",
    [
        # A thread that draws after the end of the main thread starts further threads.
        pytest.param(code, id=name, marks=starts_late_threads if ".start()" in code else ())
        for name, code in PROGRAMS.items()
    ],
)
async def test_a_program_ends_without_a_warning_and_leaves_no_process(
    code: str, studio: Studio
) -> None:
    done = program(textwrap.dedent(TELL_WORKERS) + textwrap.dedent(code), studio)
    assert (done.returncode, done.stderr) == (0, "")
    workers = [Path("/proc", pid) for pid in done.stdout.split()]
    assert workers
    await until(lambda: not any(worker.exists() for worker in workers))
    assert studio.files


def test_a_program_that_forks_can_draw_on_both_sides(studio: Studio) -> None:
    done = program(
        """
        import os, warnings
        import limner
        limner.generate("a fox", size="64x64")
        warnings.simplefilter("ignore")  # newer Pythons warn of any fork beside threads
        if child := os.fork():
            _, status = os.waitpid(child, 0)
            limner.generate("a fox", size="64x64")
            os._exit(os.waitstatus_to_exitcode(status))
        limner.generate("a fox", size="64x64")
        os._exit(0)
        """,
        studio,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(studio.files) == 3


async def test_an_interrupt_cancels_at_the_service_before_the_program_ends(
    studio: Studio, replicate: ReplicateServer
) -> None:
    replicate.looks = 1_000
    studio.connect(replicate)
    code = """
        import limner
        try:
            limner.generate("a fox")
        except KeyboardInterrupt:
            print("interrupted")
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", textwrap.dedent(code)),
        env=studio.env,
        cwd=studio.cwd,
        stdout=subprocess.PIPE,
    )
    await replicate.wait_until("look")
    process.send_signal(signal.SIGINT)
    out, _ = await process.communicate()
    assert (process.returncode, out) == (0, b"interrupted\n")
    assert [one["status"] for one in replicate.predictions.values()] == ["canceled"]
    async with studio.open() as lim:
        (row,) = (await lim.money.spend()).recent
    assert (row.state, row.error_code) == ("released", "CANCELLED")


@pytest.mark.parametrize(
    "call",
    ['limner.generate("a fox", provider="openai-image")', "asyncio.run(draw())"],
    ids=["blocking", "async"],
)
async def test_an_interrupt_has_the_cost_of_the_call(
    studio: Studio, openai: OpenAIServer, call: str
) -> None:
    openai.script("generate", held_back(openai, Gate()))
    studio.connect(openai)
    code = f"""
        import asyncio, limner
        from limner.errors import cancellation_cost

        async def draw():
            async with limner.Limner() as lim:
                await lim.generate("a fox", provider="openai-image")

        try:
            {call}
        except KeyboardInterrupt as interrupt:
            print(cancellation_cost(interrupt).cost_usd)
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", textwrap.dedent(code)),
        env=studio.env,
        cwd=studio.cwd,
        stdout=subprocess.PIPE,
    )
    await openai.wait_until("generate")
    process.send_signal(signal.SIGINT)
    out, _ = await process.communicate()
    assert (process.returncode, out) == (0, b"0.013515\n")


def test_the_tools_of_one_program_serve_one_event_loop_after_the_other(home: Path) -> None:
    registry = ToolRegistry(limner.create_image_tools())
    calls = [ToolCall(name="image_generate", arguments={"prompt": "a fox", "size": SIZE})] * 3
    for _ in range(2):
        results = asyncio.run(registry.execute_parallel(calls, ToolContext()))
        paths = [Path(json.loads(result.value)["path"]) for result in results]
        assert len(set(paths)) == 3
        for path in paths:
            assert_picture(path, under=home / "generated")


def test_one_limner_serves_event_loops_in_several_threads_at_once(
    studio: Studio, openai: OpenAIServer
) -> None:
    lim = studio.connect(openai).open()
    together = threading.Barrier(3)

    def loop(name: str) -> list[Path]:
        async def work() -> list[Path]:
            together.wait()
            drawn = await asyncio.gather(*(lim.generate(f"{name} {n}") for n in range(3)))
            return [one.path for one in drawn]

        return asyncio.run(work())

    with ThreadPoolExecutor(3) as threads:
        paths = [path for found in threads.map(loop, "abc") for path in found]
    asyncio.run(lim.aclose())
    assert len(openai.requests) == 9
    assert sorted(paths) == studio.files


def test_one_limner_may_be_closed_in_another_event_loop_than_it_was_used_in(
    studio: Studio, openai: OpenAIServer
) -> None:
    lim = studio.connect(openai).open()
    asyncio.run(lim.generate("a fox"))
    asyncio.run(lim.aclose())
    asyncio.run(lim.aclose())
    assert len(studio.files) == 1


def test_closing_waits_for_a_picture_in_another_event_loop(
    studio: Studio, openai: OpenAIServer
) -> None:
    gate = Gate()
    openai.script("generate", held_back(openai, gate))
    lim = studio.connect(openai).open()

    async def close() -> None:
        closing = asyncio.create_task(lim.aclose())
        await asyncio.wait([closing], timeout=0.05)
        assert not closing.done()
        gate.open()
        await closing

    with ThreadPoolExecutor(1) as thread:
        drawing = thread.submit(lambda: asyncio.run(lim.generate("a fox")))
        asyncio.run(openai.wait_until("generate"))
        asyncio.run(close())
        assert studio.files == [drawing.result().path]


async def test_a_limner_that_is_never_used_touches_nothing(studio: Studio) -> None:
    # What an earlier test has left may end meanwhile; nothing may be added.
    threads, children = {*threading.enumerate()}, worker_pids()
    async with studio.open() as lim:
        lim.tools()
        lim.registry()
        assert {*threading.enumerate()} <= threads
    assert not studio.home.exists()
    assert list(studio.cwd.iterdir()) == []
    assert worker_pids() <= children


async def test_a_price_is_asked_for_without_touching_anything(
    studio: Studio, openai: OpenAIServer
) -> None:
    async with studio.connect(openai).open() as lim:
        plan = await lim.quote("a fox", output_path="art/fox.png")
    assert (plan.choice.spec.name, plan.target) == (
        "openai-image",
        studio.cwd / "art" / "fox.png",
    )
    assert openai.requests == []
    assert not studio.home.exists()
    assert list(studio.cwd.iterdir()) == []


@pytest.mark.parametrize("error", [ValueError("mine"), asyncio.CancelledError(), SystemExit(3)])
async def test_an_exception_inside_the_context_comes_out_and_everything_is_closed(
    studio: Studio, error: BaseException
) -> None:
    before, threads = worker_pids(), set(threading.enumerate())
    caught: BaseException | None = None
    try:
        async with studio.open() as lim:
            await lim.generate("a fox", size=SIZE)
            assert worker_pids() != before
            raise error
    except BaseException as raised:
        caught = raised
    assert caught is error
    assert worker_pids() <= before
    left = set(threading.enumerate()) - threads
    assert [thread.name for thread in left if thread.name.startswith("limner")] == []


async def test_two_limners_in_one_program_share_a_home_and_its_ledger(studio: Studio) -> None:
    async with studio.open() as one, studio.open() as other:
        await asyncio.gather(*(lim.generate("a fox", size=SIZE) for lim in (one, other) * 3))
        rows = (await one.money.spend()).recent
    assert {row.session_id for row in rows} == {one.session_id, other.session_id}
    assert len(studio.files) == len(rows) == 6


def test_a_limner_without_settings_reads_them_from_where_the_program_runs(home: Path) -> None:
    Path("limner.toml").write_text("[agent]\nmax_calls = 7\n")
    lim = Limner()
    assert (lim.settings.agent.max_calls, lim.home.folder) == (7, home)
