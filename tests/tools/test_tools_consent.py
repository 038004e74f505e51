"""The whole table: when the user is asked about money and paths, and what an answer does."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from limner.errors import ApprovalDenied, LimnerError, ReachDenied
from limner.storage.reach import Reach
from limner.tools.base import ApprovalPolicy, Question, ToolContext
from limner.tools.consent import approve_spending, approve_write

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

    def context(self, user: User, **more: Any) -> ToolContext:
        reach = Reach(read=(), write=(self.work, self.generated))
        return ToolContext(**{"cwd": self.work, "reach": reach, "ask": user, **more})


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    folders = [tmp_path / name for name in ("work", "generated", "outside")]
    for folder in folders:
        folder.mkdir()
    return Desk(*folders)


def approval(policy: str) -> ApprovalPolicy:
    return ApprovalPolicy(policy=policy, above_nano=DOLLAR)


@pytest.mark.parametrize("answer", [True, False], ids=["yes", "no"])
@pytest.mark.parametrize("amount", [0, CENT, DOLLAR, DOLLAR + 1], ids=str)
@pytest.mark.parametrize("policy", POLICIES)
async def test_the_user_is_asked_about_money_if_the_policy_says_so(
    policy: str, amount: int, answer: bool, desk: Desk
) -> None:
    user = User(answer)
    must_ask = {"untrusted": amount > 0, "on-request": amount > DOLLAR}.get(policy, False)
    error = None
    try:
        await approve_spending(
            amount, "A picture", desk.context(user), approval(policy), has_session_cap=False
        )
    except ApprovalDenied as denied:
        error = denied
    assert len(user.asked) == must_ask
    assert (error is None) == (answer or not must_ask)


async def test_the_question_about_money_says_what_it_costs(desk: Desk) -> None:
    user = User(answer=True)
    await approve_spending(
        4 * CENT,
        "A picture from acme",
        desk.context(user),
        approval("untrusted"),
        has_session_cap=False,
    )
    assert user.asked == [
        Question(text="A picture from acme costs $0.04. Go on?", amount_nano=4 * CENT)
    ]


async def test_a_refused_price_is_an_error_with_the_setting_to_change(desk: Desk) -> None:
    context = desk.context(User(answer=False))
    with pytest.raises(ApprovalDenied) as caught:
        await approve_spending(
            4 * CENT, "A picture from acme", context, approval("untrusted"), has_session_cap=False
        )
    error = caught.value
    assert (error.code, error.billed, error.exit_status) == ("APPROVAL_DENIED", False, 5)
    assert error.message == (
        "A picture from acme costs $0.04 and needs the user's approval; it was not given."
    )
    assert error.hint == "Raise approval.above_usd, or change approval.policy."


async def test_without_a_user_to_ask_the_answer_is_no(desk: Desk) -> None:
    context = ToolContext(cwd=desk.work, reach=Reach(read=(), write=()))
    with pytest.raises(ApprovalDenied):
        await approve_spending(
            CENT, "A picture", context, approval("untrusted"), has_session_cap=False
        )


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
async def test_the_user_is_asked_about_a_path_if_the_policy_says_so(
    policy: str, place: str, answer: bool, desk: Desk
) -> None:
    user = User(answer)
    path: Path = getattr(desk, place) / "fox.png"
    error: LimnerError | None = None
    resolved: Path | None = None
    try:
        resolved = await approve_write(
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
async def test_the_user_is_not_asked_about_a_path_below_the_floor(policy: str, desk: Desk) -> None:
    user = User(answer=True)
    with pytest.raises(ReachDenied, match="closed to everyone"):
        await approve_write(
            "/etc/fox.png", desk.context(user), approval(policy), generated=desk.generated
        )
    assert user.asked == []


async def test_the_question_about_a_relative_path_shows_the_resolved_path(desk: Desk) -> None:
    user = User(answer=True)
    path = await approve_write(
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
    path = await approve_write(
        str(link / "fox.png"), desk.context(user), approval("untrusted"), generated=link
    )
    assert (path, user.asked) == (desk.generated / "fox.png", [])


# Once content from outside was read: policy, the session's budget, and what becomes of an amount
# of a cent and of two dollars. "free" is nobody asked, "asked" is the user's word, "no" a denial.
AFTER_READING = [
    ("untrusted", None, "asked", "asked"),
    ("untrusted", "settings", "asked", "asked"),
    ("untrusted", "context", "asked", "asked"),
    ("on-request", None, "asked", "asked"),
    ("on-request", "settings", "free", "asked"),
    ("on-request", "context", "free", "asked"),
    ("on-failure", None, "asked", "asked"),
    ("on-failure", "settings", "free", "free"),
    ("on-failure", "context", "free", "free"),
    ("never", None, "no", "no"),
    ("never", "settings", "free", "free"),
    ("never", "context", "free", "free"),
]


@pytest.mark.parametrize("answer", [True, False], ids=["yes", "no"])
@pytest.mark.parametrize(("policy", "budget", "little", "much"), AFTER_READING)
async def test_after_content_from_outside_only_a_budget_is_spent_without_a_question(
    policy: str, budget: str | None, little: str, much: str, answer: bool, desk: Desk
) -> None:
    for amount, becomes in ((0, "free"), (CENT, little), (2 * DOLLAR, much)):
        user = User(answer)
        context = desk.context(
            user, has_read_untrusted=True, budget_nano=5 * DOLLAR if budget == "context" else None
        )
        is_allowed = True
        try:
            await approve_spending(
                amount, "It", context, approval(policy), has_session_cap=budget == "settings"
            )
        except ApprovalDenied:
            is_allowed = False
        assert (len(user.asked), is_allowed) == {
            "free": (0, True),
            "asked": (1, answer),
            "no": (0, False),
        }[becomes]


@pytest.mark.parametrize("policy", ["on-request", "on-failure", "never"])
async def test_a_payment_denied_after_content_from_outside_says_why_and_what_to_do(
    policy: str, desk: Desk
) -> None:
    user = User(answer=False)
    context = desk.context(user, has_read_untrusted=True)
    with pytest.raises(ApprovalDenied) as caught:
        await approve_spending(
            4 * CENT, "A picture", context, approval(policy), has_session_cap=False
        )
    assert (caught.value.message, caught.value.hint) == (
        "A picture costs $0.04 and needs the user's approval after content from outside was read; "
        "it was not given.",
        "Set a budget for the session (budget.session_usd), or let the user approve the call.",
    )
    question = Question(
        text="Content from outside was read before this. A picture costs $0.04. Go on?",
        amount_nano=4 * CENT,
    )
    assert user.asked == ([] if policy == "never" else [question])


@pytest.mark.parametrize("answer", [True, False], ids=["yes", "no"])
@pytest.mark.parametrize("place", ["generated", "work", "outside"])
@pytest.mark.parametrize("policy", POLICIES)
async def test_after_content_from_outside_the_user_is_asked_about_every_place_but_our_own(
    policy: str, place: str, answer: bool, desk: Desk
) -> None:
    user = User(answer)
    path: Path = getattr(desk, place) / "fox.png"
    error: LimnerError | None = None
    resolved: Path | None = None
    try:
        resolved = await approve_write(
            str(path),
            desk.context(user, has_read_untrusted=True),
            approval(policy),
            generated=desk.generated,
        )
    except (ApprovalDenied, ReachDenied) as denied:
        error = denied
    is_ours, is_asked = place == "generated", policy != "never"
    text = f'Content from outside was read before this. Write the picture to "{path}"?'
    assert user.asked == ([Question(text=text)] if is_asked and not is_ours else [])
    allowed = is_ours or (is_asked and answer)
    assert resolved == (path if allowed else None)
    denied_by = ReachDenied if place == "outside" else ApprovalDenied
    assert type(error) is (type(None) if allowed else denied_by)


@pytest.mark.parametrize(
    ("policy", "because"),
    [("untrusted", ""), ("never", " after content from outside was read")],
)
async def test_a_denied_write_says_why_and_which_folder_needs_no_approval(
    policy: str, because: str, desk: Desk
) -> None:
    context = desk.context(User(answer=False), has_read_untrusted=True)
    with pytest.raises(ApprovalDenied) as caught:
        await approve_write("fox.png", context, approval(policy), generated=desk.generated)
    assert (caught.value.message, caught.value.hint) == (
        f'write of "{desk.work / "fox.png"}" needs the user\'s approval{because}; it was not '
        "given.",
        "Without output_path the picture is saved in the generated folder.",
    )


@pytest.mark.parametrize("policy", POLICIES)
async def test_the_user_is_not_asked_about_writes_in_a_read_only_session(
    policy: str, desk: Desk
) -> None:
    user = User(answer=True)
    reach = Reach(write=(desk.work, desk.generated), read_only=True)
    for place in (desk.generated, desk.work, desk.outside):
        with pytest.raises(ReachDenied, match="this session is read-only") as caught:
            await approve_write(
                str(place / "fox.png"),
                desk.context(user, reach=reach),
                approval(policy),
                generated=desk.generated,
            )
        assert caught.value.code == "OUTPUT_PATH_DENIED"
    assert user.asked == []


async def test_the_policy_of_a_conversation_goes_before_that_of_the_settings(desk: Desk) -> None:
    user = User(answer=False)
    lenient = desk.context(user, approval=approval("never"))
    await approve_spending(CENT, "It", lenient, approval("untrusted"), has_session_cap=False)
    path = desk.work / "fox.png"
    settled = await approve_write(
        str(path), lenient, approval("untrusted"), generated=desk.generated
    )
    assert (settled, user.asked) == (path, [])

    strict = desk.context(user, approval=approval("untrusted"))
    with pytest.raises(ApprovalDenied):
        await approve_spending(CENT, "It", strict, approval("never"), has_session_cap=False)
    with pytest.raises(ApprovalDenied):
        await approve_write(str(path), strict, approval("never"), generated=desk.generated)
    assert len(user.asked) == 2
