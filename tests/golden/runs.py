"""`limner` run in many ways -> exit statuses, and the structure of what `--json` prints."""

from __future__ import annotations

import io
import itertools
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image
from tests.golden.forked import Ended, Runner
from tests.golden.shapes import shape
from tests.servers.scripted import calls, says, scripted

from limner.testing.servers.http_server import json_reply
from limner.testing.servers.model_server import ModelAnswer
from limner.testing.servers.openai_server import OpenAIServer, error_reply
from limner.testing.servers.replicate_server import ReplicateServer
from limner.testing.servers.responses_server import ResponsesServer

KEY = "sk-golden-0123456789abcdef0123456789"
SCHEMA = {"type": "object", "properties": {"size": {"type": "string"}}, "required": ["size"]}
RED = '<svg xmlns="http://www.w3.org/2000/svg"><rect width="9" height="9" fill="red"/></svg>'

Json = Any


class Recorded(NamedTuple):
    """One run: its words, how it ended, and what it printed."""

    name: str
    status: int
    value: Json


class Desk:
    """A home, a working folder and an environment; remembers each run under its own words."""

    def __init__(self, runner: Runner, folder: Path) -> None:
        self._runner = runner
        self.recorded: list[Recorded] = []
        self.cwd, self.home = folder / "work", folder / "limner-home"
        self.cwd.mkdir()
        self.env = {
            "HOME": str(folder),
            "LIMNER_HOME": str(self.home),
            "LC_ALL": "C",
            "PATH": os.defpath,
        }

    def run(self, *words: str, stdin: str = "", **env: str) -> Ended:
        """Run a command, and remember nothing."""
        return self._runner.run(words, cwd=self.cwd, env={**self.env, **env}, stdin=stdin)

    def __call__(self, *words: str, stdin: str = "", note: str = "", **env: str) -> Json:
        """Run a command with ``--json``; what it printed.

        In ``note``, whatever the name of the run has to say beyond the words and variables.
        """
        ended = self.run(*words, "--json", stdin=stdin, **env)
        try:
            value = json.loads(ended.out)
        except ValueError:
            raise AssertionError(f"{words} printed no JSON: {ended}") from None
        self.keep(words, ended, value, note=note, env=env)
        return value

    def plain(self, *words: str, stdin: str = "", **env: str) -> Ended:
        """Run a command without ``--json``; only its status is remembered."""
        ended = self.run(*words, stdin=stdin, **env)
        self.keep(words, ended, None, note="plain", env=env)
        return ended

    def keep(
        self, words: tuple[str, ...], ended: Ended, value: Json, *, note: str, env: dict[str, str]
    ) -> None:
        """Remember a run under its words, its variables and a note."""
        marks = [f"{name}={text}" for name, text in env.items()] + ([f"({note})"] if note else [])
        quoted = (repr(word) if not word or " " in word else word for word in words)
        name = " ".join([*marks, "limner", *quoted])
        self.recorded.append(Recorded(name, ended.status, value))


def exit_codes() -> dict[str, Any]:
    """How each run ended: the status, and the code of the error if there was one."""
    return {one.name: {"status": one.status, "error": _error(one.value)} for one in _every_run()}


def json_fields() -> dict[str, Any]:
    """The structure of what each run printed, runs without ``--json`` left out."""
    return {one.name: shape([one.value]) for one in _every_run() if one.value is not None}


def _error(value: Json) -> str | None:
    error = value.get("error") if isinstance(value, dict) else None
    return error["code"] if error else None


@cache
def _every_run() -> list[Recorded]:
    recorded: list[Recorded] = []
    with Runner() as runner:
        for part in (_general, _offline, _drawing, _looking, _talking, _stored, _broken):
            with desk_in(runner) as desk:
                part(desk)
            recorded += desk.recorded
    assert len({one.name for one in recorded}) == len(recorded)
    return recorded


@contextmanager
def desk_in(runner: Runner) -> Iterator[Desk]:
    """A desk in a folder of its own, with a few files to work on."""
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(runner, Path(folder).resolve())
        cwd = desk.cwd
        (cwd / "cat.png").write_bytes(picture(64, 48))
        (cwd / "there.png").write_bytes(picture(8, 8))
        (cwd / "text.png").write_text("no picture at all")
        (cwd / "cut.png").write_bytes(picture(64, 48)[:-60])
        (cwd / "red.svg").write_text(RED)
        (cwd / "script.svg").write_text("<svg><script/></svg>")
        (cwd / "schema.json").write_text(json.dumps(SCHEMA))
        yield desk


def picture(width: int, height: int) -> bytes:
    """A real PNG of that size."""
    file = io.BytesIO()
    Image.linear_gradient("L").resize((width, height)).save(file, "PNG")
    return file.getvalue()


def _general(desk: Desk) -> None:
    desk.plain()
    desk.plain("--help")
    desk.plain("--version")
    desk.plain("nonsense")
    desk("--nonsense")
    for command in ("models", "spend", "doctor", "gc", "demo"):
        desk(command, "extra")
    desk.plain("models", "--help")
    desk("models")
    desk("models", "--vision")
    desk("doctor")
    desk("assets", "search", "cat")
    desk("assets", "search", "qqqqqq")
    desk("assets", "search", "cat", "--limit", "0")
    desk("assets", "search")
    desk("assets", "licences")
    desk("keys", "list", note="none")
    desk("keys", "set", "OPENAI_API_KEY", stdin=f"{KEY}\n")
    desk("keys", "set", "REPLICATE_API_TOKEN")
    desk("keys", "list")
    desk("keys", "list", "OPENAI_API_KEY")
    desk("keys", "remove", "OPENAI_API_KEY")
    desk("keys", "remove", "OPENAI_API_KEY", note="again")
    desk("keys", "remove")
    desk("mcp", "install", "codex", "--dry-run")
    desk("mcp", "install", "codex")
    desk("mcp", "install", "codex", note="again")
    desk("mcp", "uninstall", "codex")
    desk("mcp", "uninstall", "codex", note="again")
    desk("mcp", "install", "nobody")
    desk("mcp", "install")
    desk("mcp", "--http", "nowhere")
    desk("app-server", note="no input")
    desk("app-server", "generate-json-schema", "--out", "schemas")
    desk("app-server", "generate-json-schema")
    desk("app-server", "--out", "schemas")
    desk("app-server", "--listen", "off")
    desk("app-server", "--config", "images.nonsense=1")
    desk("codex", "extra")


def _offline(desk: Desk) -> None:
    desk("spend", note="none")
    desk("jobs", "list", note="none")
    desk("jobs", "recover", note="none")
    desk("jobs", "recover", "job_0")
    desk("gc", note="none")
    desk("generate", "a red fox", "--out", "fox.png")
    desk.plain("generate", "--svg", "red.svg")
    desk("generate", "a red fox", "--out", "fox.png", note="again")
    replacing = ("--out", "fox.png", "--overwrite")
    desk("generate", "a red fox", *replacing, "--count", "2", "--size", "256x256")
    desk("generate", "a red fox", "--dry-run")
    desk("generate", "--svg", "red.svg")
    desk("generate", "--svg", "script.svg")
    desk("generate", "--svg", "missing.svg")
    desk("generate")
    desk("generate", " ")
    desk("generate", "a fox", "--size", "huge")
    desk("generate", "a fox", "--count", "0")
    desk("generate", "a fox", "--seed", "-1")
    desk("generate", "a fox", "--budget", "much")
    desk("generate", "a fox", "--quality", "ultra")
    desk("generate", "a fox", "--provider", "nobody")
    desk("generate", "a fox", "--provider", "replicate-flux")
    desk("generate", "a fox", "--out", "/etc/fox.png")
    desk("generate", "a fox", LIMNER_IMAGES_EMBEDDED="false")
    desk("generate", "a fox", LIMNER_IMAGES_EMBEDDED="perhaps")
    desk("edit", "cat.png", "a dog")
    desk("edit", "cat.png")
    desk("fit", "cat.png")
    desk("fit", "cat.png", "--for", "openai/gpt-5.5", "--for", "anthropic/claude-opus-4-8")
    desk("fit", "cat.png", "--region", "0,0,32,32", "--out", "part.png")
    desk("fit", "cat.png", "--out", "there.png")
    desk("fit", "cat.png", "--for", "nobody/nothing")
    desk("fit", "cat.png", "--region", "900,900,10,10")
    desk("fit", "cat.png", "--region", "all")
    desk("fit", "cut.png")
    desk("fit", "text.png")
    desk("fit", "missing.png")
    desk("show", "cat.png")
    desk("show", "fox.png")
    desk("show", "missing.png")
    desk("show", "text.png")
    desk("show")
    desk("spend")
    desk("gc", "--dry-run")
    desk("gc", "--all")
    desk("demo")


def _drawing(desk: Desk) -> None:
    with OpenAIServer(picture(1024, 1024)) as openai:
        desk.env |= {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": openai.base_url}
        paid = ("generate", "a fox", "--provider", "openai-image")
        desk(*paid, "--out", "paid.png")
        desk(*paid, "--count", "2", "--dry-run")
        desk(*paid, "--budget", "0")
        desk(*paid, "--size", "1x1")
        desk(*paid, "--out", "there.png")
        desk(*paid, LIMNER_APPROVAL_POLICY="untrusted")
        desk("edit", "cat.png", "a dog", "--out", "dog.png")
        desk("edit", "cat.png", "a dog", "--dry-run")
        desk("edit", "missing.png", "a dog")
        desk("edit", "text.png", "a dog")
        desk("show", "dog.png")
        answers = {
            "refused": error_reply(400, "No.", code="moderation_blocked"),
            "too many": error_reply(429, "Wait.", headers={"Retry-After": "999"}),
            "broken": error_reply(500, "Oops."),
            "wrong key": error_reply(401, "Who?"),
            "no credit": error_reply(402, "Pay."),
            "not accepted": error_reply(422, "What?"),
            "no picture": json_reply({"data": [{"b64_json": "aGVsbG8="}]}),
        }
        for note, reply in answers.items():
            openai.script("generate", reply)
            desk(*paid, note=note)
        desk("spend", note="after failures")
    with ReplicateServer(picture(1024, 1024)) as replicate:
        desk.env |= {
            "REPLICATE_API_TOKEN": "r8_golden0123456789abcdef0123456789",
            "REPLICATE_BASE_URL": replicate.base_url,
        }
        flux = ("generate", "a fox", "--provider", "replicate-flux", "--out", "flux.png")
        replicate.looks = 1
        replicate.always("look", json_reply({"detail": "Not found."}, status=404))
        desk(*flux, note="lost")
        desk("jobs", "list")
        replicate.always("look", None)
        desk("jobs", "recover")


def _looking(desk: Desk) -> None:
    with ResponsesServer() as model:
        desk.env |= {
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": model.base_url,
            "LIMNER_MODEL_ROLES_VISION": "openai/gpt-5.5",
        }
        look = ("inspect", "cat.png", "What is it?")
        desk(*look)
        desk.plain(*look)
        desk("inspect", "cat.png", "there.png", "Which is larger?", "--region", "0,0,32,32")
        model.model_answer = ModelAnswer(pieces=('{"size": "64x48"}',))
        desk(*look, "--schema", "schema.json")
        model.model_answer = ModelAnswer(pieces=(" ",))
        desk(*look, note="no words")
        model.script("ask", error_reply(400, "Upside down."))
        desk(*look, note="refused")
        desk(*look, "--budget", "0")
        desk(*look, "--model", "nobody/nothing")
        desk(*look, "--model", "openai/o3-mini")
        desk(*look, LIMNER_IMAGES_BLOCK_IMAGES="true")
        desk("inspect", "missing.png", "What is it?")
        desk("inspect", "text.png", "What is it?")
        desk("inspect", "cat.png", " ")
        desk("inspect", "cat.png")
        desk(*look, "--schema", "missing.json")
    del desk.env["OPENAI_API_KEY"]
    desk(*look, note="no key")
    del desk.env["LIMNER_MODEL_ROLES_VISION"]
    desk(*look, note="no model", LIMNER_IMAGES_EMBEDDED="false")


@contextmanager
def _model(desk: Desk) -> Iterator[Any]:
    """A scripted model that is talked to, and a service that draws."""
    with ExitStack() as stack:
        model = stack.enter_context(scripted(ResponsesServer)())
        drawer = stack.enter_context(OpenAIServer(picture(1024, 1024)))
        home = desk.home
        home.mkdir()
        (home / "config.toml").write_text(
            f'[[models]]\nname = "openai/gpt-5.4"\nbase_url = "{model.base_url}"\n'
            'key_env = "TALKER_KEY"\n'
        )
        desk.env |= {
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": drawer.base_url,
            "TALKER_KEY": KEY,
            "LIMNER_MODEL_ROLES_DEFAULT": "openai/gpt-5.4",
        }
        yield model


def _script(model: Any, *lines: Any) -> None:
    model.script, model.turn_lines = list(lines), 0


DRAW = ("image_generate", '{"prompt": "a fox", "output_path": "fox.png"}')
LOST = ("inspect_image", '{"path": "nowhere.png", "question": "What is it?"}')


def _talking(desk: Desk) -> None:
    with _model(desk) as model:
        turn = ("chat", "-p", "Draw.")
        _script(model, calls(DRAW, LOST), says("Drawn."))
        desk(*turn)
        _script(model, error_reply(400, "No."))
        desk(*turn, note="refused")
        desk(*turn, "--budget", "0")
        _script(model, calls(("image_generate", '{"prompt": "a fox"}')), says("Not drawn."))
        desk(*turn, "--approval", "untrusted")
        _script(model, says("Hello."))
        desk.plain(*turn)
        desk.plain("chat")
        desk.plain(*turn, "--stream")
        desk("chat")
        desk("chat", "-p", " ")
        desk(*turn, "--model", "nobody/nothing")
        desk(*turn, "--personality", "nobody")
        desk(*turn, "--resume", "nobody")
        desk(*turn, "--cwd", "nowhere")
        desk(*turn, "--image", "missing.png")
        desk(*turn, "--sandbox", "open")


def _stored(desk: Desk) -> None:
    desk("sessions", "list", note="none")
    told = desk("chat", "-p", "draw a red fox", "--model", "limner/offline")
    session = told["session"]

    def run(*words: str, note: str = "") -> Json:
        """Run a command about the session, under a name without its id."""
        value = desk.run("sessions", *words, "--json")
        shown = ["ID" if word == session else word for word in words]
        desk.keep(("sessions", *shown), value, json.loads(value.out), note=note, env={})
        return json.loads(value.out)

    run("list")
    run("show", session)
    run("show", session, "--limit", "1")
    run("show", "nobody")
    run("show")
    run("export", session, "--out", "talk.jsonl")
    run("export", session, "--out", "talk.jsonl", note="again")
    run("fork", session, "--before", "2")
    run("archive", session)
    run("archive", session, "--undo")
    run("list", "--overwrite")
    run("delete", session)
    run("import", "talk.jsonl")
    run("import", "talk.jsonl", note="again")
    run("import", "text.png")
    run("import", "missing.jsonl")
    run("import")


def _broken(desk: Desk) -> None:
    home = desk.home
    home.mkdir()
    (home / "config.toml").write_text("[images]\nembeded = false\n")
    desk("models", note="unknown setting")
    (home / "config.toml").write_text("images =\n")
    desk("models", note="settings that do not parse")
    (home / "config.toml").unlink()
    (home / "limner.db").write_text("not a database, and longer than its header " * 9)
    desk("spend", note="damaged database")


# --- chat --stream ---

TOO_LONG = error_reply(400, "This model's window is full.", code="context_length_exceeded")


def stream_events() -> dict[str, Any]:
    """The events of `limner chat -p --stream` by their type, and their order in several turns."""
    orders: dict[str, list[str]] = {}
    events: list[Json] = []
    with Runner() as runner, desk_in(runner) as desk, _model(desk) as model:

        def follow(name: str, *words: str, **env: str) -> None:
            ended = desk.run("chat", "-p", *words, "--json", "--stream", **env)
            told = [json.loads(line) for line in ended.out.splitlines()]
            assert told, ended
            # How often a tool reports its progress depends on the machine.
            kinds = [one["type"] for one in told if one["type"] != "tool_progress"]
            orders[name] = [kind for kind, _ in itertools.groupby(kinds)]
            events.extend(told)

        follow("offline", "draw a red fox", "--model", "limner/offline", OPENAI_API_KEY="")
        _script(model, calls(DRAW), says("A ", "fox."))
        follow("a tool that draws", "Draw.")
        _script(model, calls(LOST), says("It is lost."))
        follow("a tool that fails", "Look.", "--image", "cat.png")
        _script(model, TOO_LONG, says("We looked."), says("Second."))
        follow("a conversation that is too long", "And now?", "--resume")
        _script(model, error_reply(400, "No."))
        follow("a failure", "Hello.")
    return {"events": shape(events), "order": orders}
