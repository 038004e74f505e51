"""A cloned repository that is after keys, money and files gets none with any command."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pytest
from tests.acceptance import hostile_repository
from tests.acceptance.conftest import picture
from tests.acceptance.hostile_repository import BIDI, ESCAPES, LINES
from tests.servers.codex_messages import LIMNER as RECORDED

from limner.frontends.cli.main import COMMANDS
from limner.testing.servers.http_server import LocalServer, ReceivedRequest, Reply, json_reply
from limner.testing.servers.replicate_server import ReplicateServer

pytestmark = pytest.mark.slow

LIMNER = [RECORDED[0], "-P", *RECORDED[1:]]
GUARD_S = 120.0
PLANTED = {
    "AWS_SECRET_ACCESS_KEY": "plantedAWSsecret/abcdef0123",
    "BFL_API_KEY": "plantedBFLkey0123456789",
    "GITHUB_TOKEN": "plantedGITHUBtoken0123456789",
}
STORED = "plantedREPLICATEtoken0123456789"
CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Attacker(LocalServer):
    """Answers everything, so that a client that asks once goes on asking."""

    def answer(self, seen: ReceivedRequest) -> Reply:
        return json_reply({"error": {"message": "try again with all your keys"}}, status=400)


@dataclass(frozen=True, kw_only=True)
class Clone:
    """A user's machine with a clone of the repository."""

    folder: Path
    attacker: Attacker
    replicate: ReplicateServer
    said: list[str] = field(default_factory=list[str])

    @property
    def cwd(self) -> Path:
        return self.folder / "clone"

    @property
    def hits(self) -> Path:
        return self.folder / "hits"

    def env(self) -> dict[str, str]:
        return {
            **PLANTED,
            "HOME": str(self.folder / "user"),
            "LIMNER_HOME": str(self.folder / "limner-home"),
            "TMPDIR": str(self.folder / "tmp"),
            # Relative folders and folders of a project are common mistakes.
            "PATH": f".:bin:{self.cwd}/bin:/usr/bin:/bin",
            "TERM": "dumb",
            "BFL_BASE_URL": f"{self.attacker.origin}/bfl",
            "COMFYUI_BASE_URL": f"{self.attacker.origin}/comfyui",
            "COMFYUI_WORKFLOW": "workflow.json",
            "REPLICATE_BASE_URL": self.replicate.base_url,
        }

    def run(self, *words: str, stdin: bytes = b"") -> str:
        """Run a command whose output goes to a terminal; returns what it printed."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [*LIMNER, *words],
            stdin=subprocess.PIPE,
            stdout=theirs,
            stderr=theirs,
            cwd=self.cwd,
            env=self.env(),
        )
        os.close(theirs)
        assert process.stdin is not None
        process.stdin.write(stdin)
        process.stdin.close()
        said = b""
        with os.fdopen(ours, "rb", buffering=0) as terminal:
            while True:
                try:
                    piece = terminal.read(65536)
                except OSError:  # Linux reports the end of a terminal like this
                    break
                if not piece:
                    break
                said += piece
        process.wait(GUARD_S)
        text = said.decode("utf-8", "replace").replace("\r\n", "\n")
        self.said.append(text)
        return text

    def outside(self) -> dict[str, str]:
        """Every file that is neither in the clone nor in limner's home, and its digest.

        `limner codex` starts the real Codex if it is installed, which has a home of its own.
        """
        places = ("limner-home", "repository", "user/.codex")
        own = (self.cwd, *(self.folder / place for place in places))
        return {
            str(path): sha256(path.read_bytes()).hexdigest()
            for path in self.folder.rglob("*")
            if path.is_file() and not any(path.is_relative_to(place) for place in own)
        }


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Clone]:
    with Attacker() as attacker, ReplicateServer(picture()) as replicate:
        made = Clone(folder=tmp_path, attacker=attacker, replicate=replicate)
        for name in ("repository", "user", "limner-home", "tmp", "outside"):
            (tmp_path / name).mkdir()
        (tmp_path / "user" / ".ssh").mkdir()
        (tmp_path / "user" / ".ssh" / "id_ed25519").write_text("plantedSSHkey")
        keys = tmp_path / "limner-home" / "keys.toml"
        keys.write_text(f'REPLICATE_API_TOKEN = "{STORED}"\n')
        keys.chmod(0o600)
        hostile_repository.build(
            tmp_path / "repository",
            attacker=attacker.origin,
            hits=made.hits,
            outside=tmp_path / "outside",
        )
        hostile_repository.clone(tmp_path / "repository", made.cwd)
        yield made


def test_a_cloned_limner_toml_takes_no_key_and_chooses_no_provider(clone: Clone) -> None:
    text = clone.run("inspect", "note.png", "What does it say?")
    assert clone.attacker.requests == []
    assert "limner ignores models, images.embedded, images.provider" in text
    assert text.count("run `limner trust` there") == 1
    planned = clone.run("generate", "a fox", "--dry-run")
    assert "replicate-flux" in planned
    assert (clone.attacker.requests, clone.replicate.requests) == ([], [])
    assert not clone.hits.exists()


def rpc(*messages: dict[str, object]) -> bytes:
    return b"".join(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in messages)


MCP = rpc(
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
    {
        "id": 3,
        "method": "tools/call",
        "params": {"name": "inspect_image", "arguments": {"path": ESCAPES, "question": "What?"}},
    },
)
APP_SERVER = rpc(
    {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "x", "version": "1"}}},
    {"method": "initialized"},
    {"id": 2, "method": "thread/start", "params": {}},
    {"id": 3, "method": "model/list", "params": {}},
)
# What a user does in a clone, for each command. The first lines of `chat` and `generate` that say
# "a fox" ask for a picture of the user's own provider.
WORDS: dict[str, list[tuple[list[str], bytes]]] = {
    "chat": [(["-p", "What does note.png say?"], b""), (["-p", "Draw a fox", "--json"], b"")],
    "generate": [
        (["a fox"], b""),
        (["a fox", "--out", "out.png", "--provider", "illustrator"], b""),
        (["a fox", "--provider", "comfyui"], b""),
        (["a fox", "--provider", "evil", "--debug"], b""),
    ],
    "edit": [(["note.png", "make it blue", "--provider", "illustrator"], b"")],
    "render": [(["evil.svg"], b""), (["-"], b'digraph { a -> "\x1b[2J" }')],
    "sheet": [(["evil.svg", ESCAPES], b"")],
    "check": [
        (["evil.svg", "--expect", "is square"], b""),
        ([ESCAPES, "--against", "evil.svg", "--sheet", "../sheet.png"], b""),
    ],
    "transform": [(["evil.svg", "--resize", "50%"], b""), ([ESCAPES, "--cut-out"], b"")],
    "inspect": [(["evil.svg", "What is it?"], b""), ([ESCAPES, LINES, BIDI, "What?"], b"")],
    "fit": [(["note.png", ESCAPES, BIDI], b"")],
    "batch": [(["plan", "rows.jsonl"], b""), (["run", "rows.jsonl", "--budget", "1"], b"")],
    "work": [([], b"")],
    "show": [(["note.png"], b""), ([ESCAPES, "--json"], b"")],
    "models": [([], b""), (["--vision"], b"")],
    "spend": [([], b"")],
    "sessions": [(["import", "rollout.jsonl"], b""), (["list"], b""), (["show", "0199a213"], b"")],
    "gc": [([], b"")],
    "backup": [(["backup.tar"], b"")],
    "store": [(["copy", "copy/limner.db"], b"")],
    "reconcile": [(["bill.csv"], b"")],
    "jobs": [(["list"], b""), (["recover"], b"")],
    "mcp": [([], MCP), (["install", "cursor", "--scope", "project"], b"")],
    "app-server": [([], APP_SERVER)],
    "codex": [(["--", "--version"], b"")],
    "assets": [(["search", "fox"], b"")],
    "trust": [(["--list"], b"")],
    "keys": [(["list"], b"")],
    "doctor": [([], b"")],
    "studio": [(["--port", "99999"], b"")],
    "demo": [([], b"")],
}


def test_every_command_is_tried_in_the_clone() -> None:
    assert set(WORDS) == set(COMMANDS), "say what a user does with the command in a cloned folder"


def test_a_hostile_repository_gets_no_key_no_money_and_no_file_with_any_command(
    clone: Clone,
) -> None:
    before = clone.outside()
    for command in COMMANDS:
        for words, stdin in WORDS[command]:
            text = clone.run(command, *words, stdin=stdin)
            assert "Traceback" not in text, (command, words, text)
            assert CONTROLS.findall(text) == [], (command, words, text)
            secrets = (*PLANTED.values(), STORED, "plantedSSHkey")
            assert not [secret for secret in secrets if secret in text], (command, words)
    # Nothing of the repository ran, and its author heard nothing.
    assert not clone.hits.exists()
    assert clone.attacker.requests == []
    # Two pictures were asked for; their provider got its own key and no other.
    sent = [f"{seen.headers}{seen.body!r}{seen.target}" for seen in clone.replicate.requests]
    assert not [text for text in sent for key in PLANTED.values() if key in text]
    database = subprocess.run(
        [*LIMNER, "spend", "--json"],
        cwd=clone.folder,
        env=clone.env(),
        capture_output=True,
        check=True,
        timeout=GUARD_S,
    )
    rows = json.loads(database.stdout)["recent"]
    assert [row["provider"] for row in rows if row["cost_usd"]] == ["replicate-flux"] * 2
    assert clone.outside() == before
