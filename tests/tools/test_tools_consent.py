"""The four policies: when the user is asked about money and paths, and what an answer does."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from limner.errors import ApprovalDenied, LimnerError, ReachDenied
from limner.storage.reach import Reach
from limner.tools.base import Question, ToolContext
from limner.tools.consent import Approval, may_spend, writable

CENT = 10_000_000
DOLLAR = 100 * CENT
POLICIES = ["untrusted", "on-request", "on-failure", "never"]


@dataclass
class User:
    """Somebody who always answers the same, and remembers what was asked."""

    answer: bool
    asked: list[Question] = field(default_factory=list)

    async def __call__(self, question: Question) -> bool:
        self.asked.append(question)
        return self.answer


@dataclass
class Desk:
    """A working folder that may be written, a generated folder, and the rest of the world."""

    work: Path
    generated: Path
    outside: Path

    def context(self, user: User) -> ToolContext:
        reach = Reach(read=(), write=(self.work, self.generated))
        return ToolContext(cwd=self.work, reach=reach, ask=user)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    folders = [tmp_path / name for name in ("work", "generated", "outside")]
    for folder in folders:
        folder.mkdir()
    return Desk(*folders)


def approval(policy: str) -> Approval:
    return Approval(policy=policy, above_nano=DOLLAR)


@pytest.mark.parametrize("answer", [True, False], ids=["yes", "no"])
@pytest.mark.parametrize("amount", [0, CENT, DOLLAR, DOLLAR + 1], ids=str)
@pytest.mark.parametrize("policy", POLICIES)
async def test_the_user_is_asked_about_money_where_the_policy_says_so(
    policy: str, amount: int, answer: bool, desk: Desk
) -> None:
    user = User(answer)
    must_ask = {"untrusted": amount > 0, "on-request": amount > DOLLAR}.get(policy, False)
    error = None
    try:
        await may_spend(amount, "A picture", desk.context(user), approval(policy))
    except ApprovalDenied as denied:
        error = denied
    assert len(user.asked) == must_ask
    assert (error is None) == (answer or not must_ask)


async def test_the_question_about_money_says_what_it_costs(desk: Desk) -> None:
    user = User(answer=True)
    await may_spend(4 * CENT, "A picture from acme", desk.context(user), approval("untrusted"))
    assert user.asked == [
        Question(text="A picture from acme costs $0.04. Go on?", amount_nano=4 * CENT)
    ]


async def test_a_no_to_money_is_an_error_that_says_what_can_be_changed(desk: Desk) -> None:
    context = desk.context(User(answer=False))
    with pytest.raises(ApprovalDenied) as caught:
        await may_spend(4 * CENT, "A picture from acme", context, approval("untrusted"))
    error = caught.value
    assert (error.code, error.billed, error.exit_status) == ("APPROVAL_DENIED", False, 5)
    assert error.message == (
        "A picture from acme costs $0.04, which needs the user's approval, and there was none."
    )
    assert error.hint == "Raise approval.above_usd, or change approval.policy."


async def test_without_anybody_to_ask_the_answer_is_no(desk: Desk) -> None:
    context = ToolContext(cwd=desk.work, reach=Reach(read=(), write=()))
    with pytest.raises(ApprovalDenied):
        await may_spend(CENT, "A picture", context, approval("untrusted"))


ASKED_ABOUT_PATHS = {
    # policy: in the generated folder, elsewhere within reach, outside it
    "untrusted": (False, True, True),
    "on-request": (False, False, True),
    "on-failure": (False, False, True),
    "never": (False, False, False),
}


@pytest.mark.parametrize("answer", [True, False], ids=["yes", "no"])
@pytest.mark.parametrize("place", ["generated", "work", "outside"])
@pytest.mark.parametrize("policy", POLICIES)
async def test_the_user_is_asked_about_a_path_where_the_policy_says_so(
    policy: str, place: str, answer: bool, desk: Desk
) -> None:
    user = User(answer)
    path: Path = getattr(desk, place) / "fox.png"
    error: LimnerError | None = None
    resolved: Path | None = None
    try:
        resolved = await writable(
            str(path), desk.context(user), approval(policy), generated=desk.generated
        )
    except (ApprovalDenied, ReachDenied) as denied:
        error = denied
    must_ask = ASKED_ABOUT_PATHS[policy][["generated", "work", "outside"].index(place)]
    assert user.asked == ([Question(text=f'Write the picture to "{path}"?')] if must_ask else [])
    allowed = answer if must_ask else place != "outside"
    assert resolved == (path if allowed else None)
    denied_by = ReachDenied if place == "outside" else ApprovalDenied
    assert type(error) is (type(None) if allowed else denied_by)


@pytest.mark.parametrize("policy", POLICIES)
async def test_nobody_is_asked_to_break_the_floor(policy: str, desk: Desk) -> None:
    user = User(answer=True)
    with pytest.raises(ReachDenied, match="closed to everyone"):
        await writable(
            "/etc/fox.png", desk.context(user), approval(policy), generated=desk.generated
        )
    assert user.asked == []


async def test_a_relative_path_is_asked_about_as_where_it_leads(desk: Desk) -> None:
    user = User(answer=True)
    path = await writable(
        "../outside/fox.png", desk.context(user), approval("on-request"), generated=desk.generated
    )
    assert path == desk.outside / "fox.png"
    assert user.asked == [Question(text=f'Write the picture to "{desk.outside / "fox.png"}"?')]


async def test_a_generated_folder_behind_a_symlink_is_still_the_generated_folder(
    desk: Desk, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(desk.generated)
    user = User(answer=False)
    path = await writable(
        str(link / "fox.png"), desk.context(user), approval("untrusted"), generated=link
    )
    assert (path, user.asked) == (desk.generated / "fox.png", [])
