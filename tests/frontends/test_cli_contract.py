"""What holds for every command: exit statuses, one JSON object, streams that fail."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from PIL import Image
from tests.frontends.cli_process import CommandLine, Done

from limner.frontends.cli.main import COMMANDS
from limner.shortage import shortage_behind
from limner.testing.servers.http_server import json_reply
from limner.testing.servers.openai_server import OpenAIServer, error_reply

pytestmark = pytest.mark.slow

PAID = ["generate", "a fox", "--provider", "openai-image"]
RED = '<svg xmlns="http://www.w3.org/2000/svg"><rect width="9" height="9" fill="red"/></svg>'
BROKEN_PICTURE = json_reply({"data": [{"b64_json": "aGVsbG8="}]})

# What a service answers, and what that is for whoever called.
ANSWERS = {
    "IMAGE_GEN_REJECTED": (3, error_reply(400, "No.", code="moderation_blocked")),
    "IMAGE_GEN_QUOTA_EXCEEDED": (3, error_reply(429, "Wait.", headers={"Retry-After": "999"})),
    "IMAGE_GEN_PROVIDER_UNAVAILABLE": (3, error_reply(500, "Oops.")),
    "IMAGE_GEN_AUTH": (3, error_reply(401, "Who?")),
    "IMAGE_GEN_PAYMENT_REQUIRED": (3, error_reply(402, "Pay.")),
    "IMAGE_GEN_BAD_REQUEST": (3, error_reply(422, "What?")),
    "IMAGE_GEN_BAD_RESPONSE": (4, BROKEN_PICTURE),
}
# What is known to go wrong before anything is sent.
MISTAKES = {
    ("generate",): (2, "USAGE"),
    ("generate", " "): (2, "INPUT_INVALID"),
    (*PAID, "--size", "huge"): (2, "INPUT_INVALID"),
    (*PAID, "--budget", "much"): (2, "INPUT_INVALID"),
    (*PAID, "--seed", "-1"): (2, "INPUT_INVALID"),
    (*PAID, "--size", "1x1"): (2, "INVALID_SIZE_FOR_PROVIDER"),
    ("generate", "a fox", "--provider", "replicate-flux"): (2, "IMAGE_GEN_NO_PROVIDER"),
    (*PAID, "--out", "there.png"): (2, "OUTPUT_EXISTS"),
    ("generate", "--svg", "script.svg"): (4, "SVG_REFUSED"),
    (*PAID, "--budget", "0"): (5, "BUDGET_EXCEEDED"),
    (*PAID, "--out", "/etc/fox.png"): (5, "OUTPUT_PATH_DENIED"),
}


@pytest.mark.parametrize("code", ANSWERS)
def test_the_exit_status_says_how_the_service_failed(
    cli: CommandLine, openai: OpenAIServer, code: str
) -> None:
    status, reply = ANSWERS[code]
    cli.studio.connect(openai)
    openai.script("generate", reply)
    done = cli.run(*PAID, "--json")
    assert (done.status, done.error["code"], done.err) == (status, code, "")
    assert cli.studio.files == []


def test_the_exit_status_says_what_kind_of_mistake_was_made(
    cli: CommandLine, openai: OpenAIServer
) -> None:
    cli.studio.connect(openai)
    (cli.studio.cwd / "there.png").touch()
    (cli.studio.cwd / "script.svg").write_text("<svg><script/></svg>")
    ended = cli.run_all(*([*words, "--json"] for words in MISTAKES))
    assert [(done.status, done.error["code"]) for done in ended] == [*MISTAKES.values()]
    assert [done.err for done in ended] == [""] * len(MISTAKES)
    assert (openai.requests, cli.studio.files) == ([], [])


def test_a_failure_that_cost_money_says_how_much(cli: CommandLine, openai: OpenAIServer) -> None:
    cli.studio.connect(openai)
    openai.script("generate", BROKEN_PICTURE)
    done = cli.run(*PAID)
    message, cost, job, kept, hint = done.err.splitlines()
    assert (done.status, done.out) == (4, "")
    assert message.startswith("limner: openai-image responded, but not with a picture: ")
    assert cost == "  It cost $0.013515."
    job_id = job.split()[1]
    assert job == f"  Job: {job_id} (limner jobs list)"
    assert kept == f"  The picture is kept at {cli.studio.home}/incoming/{job_id}.1"
    assert hint == f"  The bytes are kept until `limner jobs forget {job_id}`."


def test_a_wrong_settings_file_is_named_with_its_nearest_key(cli: CommandLine) -> None:
    cli.studio.home.mkdir()
    config = cli.studio.home / "config.toml"
    config.write_text("[images]\nembeded = false\n")
    assert cli.run("models") == Done(
        status=2,
        err=f"limner: {config}: images.embeded is not a setting\n  Did you mean images.embedded?\n",
    )


def test_a_damaged_database_is_a_plain_failure(cli: CommandLine) -> None:
    cli.studio.home.mkdir()
    (cli.studio.home / "limner.db").write_text("not a database, and longer than its header " * 9)
    done = cli.run("spend", "--json")
    assert (done.status, done.error["code"], done.err) == (1, "DATABASE_DAMAGED", "")


SUCCEEDING = {
    "chat": ["chat", "-p", "hello", "--model", "limner/offline"],
    "generate": ["generate", "a cat", "--dry-run"],
    "edit": ["edit", "cat.png", "a dog", "--dry-run"],
    "render": ["render", "chart.json"],
    "transform": ["transform", "cat.png", "--resize", "50%"],
    "check": ["check", "cat.png", "--expect", "is at least 1 px wide"],
    "sheet": ["sheet", "cat.png"],
    "inspect": ["inspect", "cat.png", "How large is it?"],
    "fit": ["fit", "cat.png"],
    "batch": ["batch", "plan", "rows.jsonl"],
    "work": ["work"],
    "show": ["show", "cat.png"],
    "models": ["models"],
    "spend": ["spend"],
    "sessions": ["sessions", "list"],
    "gc": ["gc", "--dry-run"],
    "backup": ["backup", "home.tar"],
    "store": ["store", "copy", "copy/limner.db"],
    "jobs": ["jobs", "list"],
    "reconcile": ["reconcile", "costs.csv"],
    "mcp": ["mcp", "install", "codex", "--dry-run"],
    "app-server": ["app-server"],
    "assets": ["assets", "search", "cat"],
    "trust": ["trust", "--list"],
    "keys": ["keys", "list"],
    "doctor": ["doctor"],
    "demo": ["demo"],
}
FAILING = {
    "chat": ["chat", "-p"],
    "generate": ["generate", " "],
    "edit": ["edit", "cat.png", " "],
    "render": ["render", "cat.png"],
    "transform": ["transform", "cat.png"],
    "check": ["check", "cat.png"],
    "sheet": ["sheet", "--seed", "1"],
    "inspect": ["inspect", "cat.png"],
    "fit": ["fit", "cat.png", "--for", "nobody/nothing"],
    "batch": ["batch", "run", "cat.png"],
    "work": ["work", "extra"],
    "show": ["show"],
    "models": ["models", "extra"],
    "spend": ["spend", "--since", "monday"],
    "sessions": ["sessions", "show", "nobody"],
    "gc": ["gc", "extra"],
    "backup": ["backup", "cat.png"],
    "store": ["store", "copy", "cat.png"],
    "jobs": ["jobs", "recover", "job_0"],
    "reconcile": ["reconcile", "cat.png"],
    "mcp": ["mcp", "install", "nobody"],
    "app-server": ["app-server", "--listen", "off"],
    "assets": ["assets", "search", "cat", "--limit", "0"],
    "trust": ["trust", "nowhere"],
    "keys": ["keys", "remove", "NOBODYS_KEY"],
    "doctor": ["doctor", "--fix"],
    "demo": ["demo", "extra"],
}


def test_json_is_exactly_one_object_on_standard_output(cli: CommandLine) -> None:
    # `codex` becomes another program, whose output is its own. `studio` goes on until a signal.
    ending = [name for name in COMMANDS if name not in ("codex", "studio")]
    assert [*SUCCEEDING] == [*FAILING] == ending
    Image.new("RGB", (64, 48), "orange").save(cli.studio.cwd / "cat.png")
    (cli.studio.cwd / "chart.json").write_text('{"type": "pie", "values": {"a": 1, "b": 2}}')
    (cli.studio.cwd / "rows.jsonl").write_text('{"key": "fox", "prompt": "a fox"}')
    (cli.studio.cwd / "costs.csv").write_text("start_time,amount_value\n1794700800,0\n")
    # A key, so that somebody could draw from pictures; and eyes that need none.
    cli.studio.env |= {"OPENAI_API_KEY": "sk-0", "LIMNER_MODEL_ROLES_VISION": "limner/eyes"}
    for done in cli.run_all(*([*words, "--json"] for words in SUCCEEDING.values())):
        assert (done.status, done.err) == (0, "")
        assert "error" not in done.json
    for done in cli.run_all(*([*words, "--json"] for words in FAILING.values())):
        assert (done.status, done.err) == (2, "")
        # An error about one argument also names it, in `field`.
        members = ["code", "message", "retryable", "billed", "cost_usd", "hint"]
        assert [*done.error][:6] == members


@pytest.fixture
def broken_plugin(tmp_path: Path) -> dict[str, str]:
    """An installed provider that fails in a way nobody foresaw."""
    folder = tmp_path / "site" / "broken-1.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Name: broken\nVersion: 1\n")
    (folder / "entry_points.txt").write_text("[limner.providers]\nbroken = broken:SPEC\n")
    (folder.parent / "broken.py").write_text(
        "from msgspec.structs import asdict\n"
        "from limner.plugins import ProviderSpec\n"
        "from limner.providers.specs import BUILT_IN\n"
        "class Broken(ProviderSpec, frozen=True, kw_only=True):\n"
        "    def key(self, key_of): raise LookupError('token=hush-hush-hush')\n"
        "SPEC = Broken(**asdict(BUILT_IN['openai-image']) | {'name': 'broken'})\n"
    )
    return {"PYTHONPATH": str(folder.parent)}


def test_a_bug_shows_where_it_is(cli: CommandLine, broken_plugin: dict[str, str]) -> None:
    done = cli.run("models", env=broken_plugin)
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith("Traceback (most recent call last):\n")
    assert done.err.endswith(
        "LookupError: token=•••\n"
        "limner: Unexpected LookupError: token=•••\n"
        "  This is a bug: please report it with the traceback above.\n"
    )


def test_a_bug_is_json_for_who_asked_for_json(
    cli: CommandLine, broken_plugin: dict[str, str]
) -> None:
    done = cli.run("models", "--json", env=broken_plugin)
    assert done.status == 1
    assert (done.error["code"], done.error["message"]) == (
        "FAILED",
        "Unexpected LookupError: token=•••",
    )
    assert done.err.startswith("Traceback (most recent call last):\n")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--help"], 0),
        (["models", "--json"], 0),
        (["generate", "--json"], 2),
    ],
)
def test_a_reader_who_has_left_causes_no_noise(
    cli: CommandLine, words: list[str], status: int
) -> None:
    assert cli.run_unread(*words) == Done(status=status)


def test_debug_lines_that_nobody_reads_do_not_disturb_a_paid_request(
    cli: CommandLine, openai: OpenAIServer
) -> None:
    cli.studio.connect(openai)
    done = cli.run_unread(*PAID, "--debug", unread="stderr")
    assert done == Done(status=0, out=f"{cli.studio.files[0]}\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_result_that_cannot_be_written_is_not_lost(cli: CommandLine) -> None:
    done = cli.shell("limner keys list --json >/dev/full")
    assert done == Done(
        status=1,
        err="limner: standard output cannot be written: No space left on device. "
        'The result is:\n{"keys":[]}\n',
    )


@pytest.mark.parametrize("closed", ["<&- >&-", "2>&-"])
def test_a_stream_that_was_closed_is_no_reason_to_fail(cli: CommandLine, closed: str) -> None:
    (cli.studio.cwd / "red.svg").write_text(RED)
    done = cli.shell(f"limner generate --svg red.svg --json {closed}")
    assert (done.status, done.err) == (0, "")
    assert len(cli.studio.files) == 1


def test_closed_standard_input_is_an_empty_one(cli: CommandLine) -> None:
    blank = "limner: prompt is required and must not be blank\n"
    assert cli.shell("limner generate - <&-") == Done(status=2, err=blank)
    done = cli.shell("limner keys set OPENAI_API_KEY <&-")
    assert (done.status, done.out) == (2, "")
    assert "The value given for OPENAI_API_KEY is empty" in done.err


@pytest.mark.parametrize(
    "locale",
    [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}],
    ids=["c", "ascii"],
)
def test_results_are_utf8_whatever_the_locale(cli: CommandLine, locale: dict[str, str]) -> None:
    (cli.studio.cwd / "red.svg").write_text(RED)
    words = ["generate", "-", "--svg", "red.svg", "--out", "Käse.png"]
    path = cli.studio.cwd / "Käse.png"
    assert cli.run(*words, stdin="猫".encode(), env=locale).out == f"{path}\n"
    assert cli.run("spend", env=locale).out.endswith(f"  {path}\n")
    assert "job_1f0c…" in cli.run("jobs", "--help", env=locale).out


def test_words_that_are_not_text_are_json_all_the_same(cli: CommandLine) -> None:
    done = cli.run("generate", "cat", b"\xe9", "--json")
    assert done.error["message"] == "unrecognized arguments: \udce9"


@pytest.mark.parametrize(
    ("error", "shortage"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "Too many open files"),
        (RuntimeError("can't start new thread"), "Cannot allocate memory"),
        (SystemError("error return without exception set"), "Cannot allocate memory"),
        (
            ImportError("libx.so: failed to map segment from shared object"),
            "Cannot allocate memory",
        ),
        (ImportError("libx.so: cannot open shared object file: No such file or directory"), None),
        (RuntimeError("a bug"), None),
    ],
)
def test_only_a_shortage_of_the_system_is_reported_as_one(
    error: Exception, shortage: str | None
) -> None:
    assert shortage_behind(error) == shortage
