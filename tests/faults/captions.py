"""A folder of pictures -> a CSV of captions that follow a schema, interrupted and resumed.

Run as ``python -m tests.faults.captions PICTURES INTERRUPTIONS``.
"""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import msgspec
from PIL import Image

from limner.testing import FakeServices, ReceivedRequest
from limner.testing.servers.http_server import Reply
from limner.testing.servers.model_server import ModelAnswer, TokenCounts

SCHEMA = {
    "type": "object",
    "properties": {"caption": {"type": "string"}, "colours": {"type": "array"}},
    "required": ["caption"],
}
GUARD_S = 3600.0


class Captioned(msgspec.Struct, frozen=True, kw_only=True):
    """What the run came to."""

    pictures: int
    interruptions: int
    rows: int
    captions: int
    asked_twice: int
    billed_usd: float
    spent_usd: float
    unknown_usd: float
    seconds: float


def caption(count: int, interruptions: int, *, folder: Path) -> Captioned:
    """Write the captions of many pictures with the command line."""
    started_s = time.monotonic()
    with FakeServices(folder) as services:
        asked: Counter[bytes] = Counter()
        _answer_with_captions(services, asked)
        _write(services.folder, count)
        env = {**os.environ, **services.env, "LIMNER_MODEL_ROLES_VISION": "openai/gpt-5.5"}
        for number in range(interruptions):
            _interrupt(
                services, env, after=(number + 1) * count // (interruptions + 1), asked=asked
            )
        done = subprocess.run(
            _command("resume" if interruptions else "run", "--out", "captions.csv"),
            cwd=services.folder,
            env=env,
            capture_output=True,
            check=False,
            timeout=GUARD_S,
        )
        assert done.returncode == 0, done.stderr.decode()
        status = json.loads(done.stdout)
        with (services.folder / "captions.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        return Captioned(
            pictures=count,
            interruptions=interruptions,
            rows=len(rows),
            captions=sum(row["answer.caption"].startswith("A picture") for row in rows),
            asked_twice=sum(times > 1 for times in asked.values()),
            billed_usd=round(services.bill().cost_usd, 9),
            spent_usd=status["spent_usd"],
            unknown_usd=status["unknown_usd"],
            seconds=round(time.monotonic() - started_s, 1),
        )


def _command(action: str, *more: str) -> list[str]:
    budget = ("--budget", "500")
    return [sys.executable, "-m", "limner", "batch", action, "rows.csv", *budget, *more, "--json"]


def _interrupt(
    services: FakeServices, env: dict[str, str], *, after: int, asked: Counter[bytes]
) -> None:
    """Start the batch, and press Ctrl-C once so many pictures were asked about."""
    working = subprocess.Popen(
        _command("run"),
        cwd=services.folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while len(asked) < after and working.poll() is None:
        time.sleep(0.01)
    working.send_signal(signal.SIGINT)
    _, err = working.communicate(timeout=GUARD_S)
    assert working.returncode == 130, err.decode()
    assert b"limner batch resume batch_" in err


def _answer_with_captions(services: FakeServices, asked: Counter[bytes]) -> None:
    service = services.responses

    def work(request: ReceivedRequest) -> Reply:
        asked[request.body] += 1
        text = json.dumps({"caption": f"A picture, number {len(asked)}", "colours": ["red"]})
        answer = ModelAnswer(pieces=(text,), usage=TokenCounts(input=1_000, output=30))
        return service._say(answer, request)

    service._work = work


def _write(folder: Path, count: int) -> None:
    """The pictures, and a manifest that asks the same about each."""
    schema = json.dumps(SCHEMA)
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["key", "tool", "path", "question", "schema"])
        for number in range(count):
            colour = (number % 256, number // 256 % 256, 90)
            Image.new("RGB", (64, 48), colour).save(folder / f"{number}.png")
            question = "Describe it in a sentence."
            writer.writerow([number, "inspect_image", f"{number}.png", question, schema])


def main() -> None:
    """Run, and print what it came to as JSON."""
    count, interruptions = map(int, sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="limner-captions-") as folder:
        print(msgspec.json.encode(caption(count, interruptions, folder=Path(folder))).decode())


if __name__ == "__main__":
    main()
