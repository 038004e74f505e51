"""Reservations: which caps hold, and when the user may allow a call to exceed one."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from limner.catalogue.prices import Quote
from limner.errors import BudgetExceeded
from limner.money.ledger import Caps, Money
from limner.money.paid_call import paid_call
from limner.storage.store import Store
from limner.tools.base import ApprovalPolicy, Question, ToolContext
from limner.tools.consent import OverCap, payer_for

CENT = 10_000_000
QUOTE = Quote(nano=4 * CENT, source="table", exact=True)
REFUSED = "This call may cost $0.04, but only $0.03 of the {} budget of $0.03 is left"


@dataclass
class User:
    """A user who always gives the same answer, and records the questions."""

    answer: bool
    asked: list[Question] = field(default_factory=list)

    async def __call__(self, question: Question) -> bool:
        self.asked.append(question)
        return self.answer


def money_of(store: Store, **caps: int) -> Money:
    return Money(store, caps=Caps(**caps), clock=lambda: datetime(2026, 11, 15, tzinfo=UTC))


def approval(policy: str) -> ApprovalPolicy:
    return ApprovalPolicy(policy=policy, above_nano=100 * CENT)


async def buy(money: Money, user: User, policy: str = "on-failure", **context: Any) -> None:
    payer = payer_for(
        ToolContext(ask=user, **context), approval(policy), money, what=None, session_id="own"
    )
    async with paid_call(
        money, QUOTE, payer=payer, tool="image_generate", provider="acme", model="m"
    ) as call:
        await call.send(None)
        await call.settle(None)


@pytest.mark.parametrize(
    ("cap", "caps", "context"),
    [
        ("call", {"call_nano": 3 * CENT}, {}),
        ("session", {"session_nano": 3 * CENT}, {}),
        ("session", {}, {"budget_nano": 3 * CENT}),
        ("session", {"session_nano": 9 * CENT}, {"budget_nano": 3 * CENT}),
        ("session", {"session_nano": 3 * CENT}, {"budget_nano": 9 * CENT}),
        ("day", {"day_nano": 3 * CENT}, {}),
    ],
)
async def test_on_failure_a_cap_is_put_to_the_user_once(
    store: Store, cap: str, caps: dict[str, int], context: dict[str, Any]
) -> None:
    money = money_of(store, **caps)
    question = OverCap(text=f"{REFUSED.format(cap)}. Go over it?", amount_nano=4 * CENT)
    unwilling = User(answer=False)
    with pytest.raises(BudgetExceeded) as caught:
        await buy(money, unwilling, **context)
    assert (caught.value.message, unwilling.asked) == (REFUSED.format(cap), [question])
    assert (await money.spend()).recent == ()

    willing = User(answer=True)
    await buy(money, willing, **context)
    (row,) = (await money.spend()).recent
    bought = (row.session_id, row.tool, row.provider, row.model, row.state, row.cost_nano)
    assert bought == ("own", "image_generate", "acme", "m", "settled", 4 * CENT)
    assert willing.asked == [question]


@pytest.mark.parametrize("policy", ["untrusted", "on-request", "never"])
async def test_under_every_other_policy_a_cap_is_final(store: Store, policy: str) -> None:
    user = User(answer=True)
    money = money_of(store, session_nano=3 * CENT)
    with pytest.raises(BudgetExceeded, match="of the session budget"):
        await buy(money, user, policy)
    assert (user.asked, (await money.spend()).recent) == ([], ())


async def test_the_policy_of_the_conversation_decides_about_caps_too(store: Store) -> None:
    money, user = money_of(store, session_nano=3 * CENT), User(answer=True)
    with pytest.raises(BudgetExceeded):
        await buy(money, user, "on-failure", approval=approval("never"))
    await buy(money, user, "never", approval=approval("on-failure"))
    assert len(user.asked) == 1


async def test_the_user_is_not_asked_if_no_cap_refuses(store: Store) -> None:
    money, user = money_of(store, call_nano=4 * CENT, session_nano=4 * CENT), User(answer=False)
    await buy(money, user, budget_nano=4 * CENT)
    assert (user.asked, [row.state for row in (await money.spend()).recent]) == ([], ["settled"])


async def test_a_call_is_paid_for_by_the_session_it_names(store: Store) -> None:
    money, user = money_of(store, session_nano=4 * CENT), User(answer=False)
    for name in ("a", "b", None):
        await buy(money, user, session_id=name)
    assert [row.session_id for row in (await money.spend()).recent] == ["own", "b", "a"]


async def test_the_question_says_that_content_from_outside_was_read(store: Store) -> None:
    money, user = money_of(store, session_nano=3 * CENT), User(answer=True)
    await buy(money, user, has_read_untrusted=True)
    assert [question.text for question in user.asked] == [
        f"Content from outside was read before this. {REFUSED.format('session')}. Go over it?"
    ]
