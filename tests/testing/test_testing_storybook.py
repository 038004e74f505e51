"""The storybook of the examples against fake services that refuse, fail and charge."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from limner.testing import FakeServices

STORYBOOK = Path(__file__).parents[2] / "examples" / "storybook.py"


def run(capsys: pytest.CaptureFixture[str]) -> list[str]:
    runpy.run_path(str(STORYBOOK))
    return capsys.readouterr().out.splitlines()


def test_every_page_is_drawn_and_described(
    limner_fake: FakeServices, capsys: pytest.CaptureFixture[str]
) -> None:
    limner_fake.responses.reply("Red and white.\nMore.")
    lines = run(capsys)
    assert [line.split()[:2] for line in lines[:-1]] == [["Page", str(at)] for at in range(1, 5)]
    assert sum(line.endswith(".png Red and white.") for line in lines) == 1
    assert sum(line.endswith(".png OK.") for line in lines) == 3
    assert lines[-1] == f"Spent ${limner_fake.bill().cost_usd:.4f} of $0.50"
    assert len(limner_fake.bill().charges) == 8


def test_a_refused_page_is_drawn_with_other_words(
    limner_fake: FakeServices, capsys: pytest.CaptureFixture[str]
) -> None:
    limner_fake.images.refuse()
    assert sum(".png" in line for line in run(capsys)) == 4
    prompts = [request.json()["prompt"] for request in limner_fake.images.requests]
    assert len(prompts) == 5
    assert sum("friendly" in prompt for prompt in prompts) == 1


def test_a_page_that_may_be_billed_is_not_drawn_twice(
    limner_fake: FakeServices, capsys: pytest.CaptureFixture[str]
) -> None:
    limner_fake.images.hang_up()
    lines = run(capsys)
    (left_out,) = [line for line in lines if "left out" in line]
    assert "IMAGE_GEN_PROVIDER_UNAVAILABLE, it cost $0.0" in left_out
    assert len(limner_fake.images.requests) == 4


def test_the_budget_is_never_passed(
    limner_fake: FakeServices,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LIMNER_BUDGET_SESSION_USD", "0.02")
    lines = run(capsys)
    assert 0 < limner_fake.bill().cost_usd <= 0.02
    assert any("the budget is used up" in line for line in lines)
    assert lines[-1] == f"Spent ${limner_fake.bill().cost_usd:.4f} of $0.50"
