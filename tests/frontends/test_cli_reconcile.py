"""`limner reconcile`: the ledger and what a service says about it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.frontends.cli_process import CommandLine, Done

from limner.testing.servers.replicate_server import ReplicateServer

GUIDE = Path(__file__).parent.parent.parent / "docs" / "guides" / "budgets.md"


def test_the_example_of_the_guide_is_true(cli: CommandLine) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    blocks = dict(re.findall(r"^```(csv|console)\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    (cli.studio.cwd / "costs.csv").write_text(blocks["csv"])
    command, *lines = blocks["console"].splitlines(keepends=True)
    words = command.removeprefix("$ limner ").split()
    assert cli.run(*words) == Done(status=1, out=lines[0], err=lines[1])


@pytest.mark.slow
def test_predictions_are_compared_by_id(cli: CommandLine, replicate: ReplicateServer) -> None:
    cli.studio.connect(replicate)
    cli.run("generate", "a fox", "--provider", "replicate-flux")
    stranger = replicate.add("acme/draws", {}, status="succeeded")
    pages = [{"results": [one], "next": None} for one in replicate.predictions.values()]
    (cli.studio.cwd / "predictions.jsonl").write_text("\n".join(map(json.dumps, pages)))
    done = cli.run("reconcile", "predictions.jsonl", "--json")
    assert done.status == 1
    assert (done.json["service"], done.json["differences"]) == (
        "Replicate",
        [{"problem": "the ledger does not have this job", "remote_id": stranger["id"]}],
    )
    (cli.studio.cwd / "mine.json").write_text(json.dumps(pages[0]))
    done = cli.run("reconcile", "mine.json")
    assert (done.status, done.out) == (0, "")
    assert done.err.endswith(": no differences\n")
