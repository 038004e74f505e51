"""Whatever the policy, the caps and the answers: nothing is spent or written against the rule."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz import SHARED_FIXTURE

from limner.catalogue.prices import Quote
from limner.errors import Denied
from limner.money.ledger import Caps, Money
from limner.money.paid_call import paid_call
from limner.storage.reach import Reach
from limner.storage.store import Store
from limner.tools.base import ApprovalPolicy, Question, ToolContext
from limner.tools.consent import OverCap, approve_write, payer_for

POLICIES = st.sampled_from(["untrusted", "on-request", "on-failure", "never"])
AMOUNTS = st.integers(min_value=0, max_value=6)
CAPS = st.none() | AMOUNTS


@dataclass(frozen=True)
class Terms:
    """All that decides about one call."""

    by_settings: str
    by_conversation: str | None
    above: int
    amount: int
    call_cap: int | None
    session_cap: int | None
    budget: int | None
    has_read: bool

    @property
    def policy(self) -> str:
        return self.by_conversation or self.by_settings

    @property
    def caps(self) -> list[int]:
        return [c for c in (self.call_cap, self.session_cap, self.budget) if c is not None]

    @property
    def is_set_aside(self) -> bool:
        return self.session_cap is not None or self.budget is not None


TERMS = st.builds(
    Terms,
    by_settings=POLICIES,
    by_conversation=st.none() | POLICIES,
    above=AMOUNTS,
    amount=AMOUNTS,
    call_cap=CAPS,
    session_cap=CAPS,
    budget=CAPS,
    has_read=st.booleans(),
)


class User:
    """A user with given answers, and the questions they approved."""

    def __init__(self, answers: Iterator[bool]) -> None:
        self._answers = answers
        self.asked: list[Question] = []
        self.agreed: list[Question] = []

    async def __call__(self, question: Question) -> bool:
        self.asked.append(question)
        if next(self._answers):
            self.agreed.append(question)
            return True
        return False


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    made = Store(tmp_path_factory.mktemp("consent") / "limner.db")
    yield made
    asyncio.run(made.aclose())


_sessions = map(str, itertools.count())


async def buy(terms: Terms, user: User, store: Store) -> bool:
    """Whether the call was paid for."""
    caps = Caps(call_nano=terms.call_cap, session_nano=terms.session_cap)
    money = Money(store, caps=caps, clock=lambda: datetime(2026, 11, 15, tzinfo=UTC))
    approval = ApprovalPolicy(policy=terms.by_settings, above_nano=terms.above)
    own = terms.by_conversation
    context = ToolContext(
        session_id=next(_sessions),
        approval=None if own is None else ApprovalPolicy(policy=own, above_nano=terms.above),
        budget_nano=terms.budget,
        has_read_untrusted=terms.has_read,
        ask=user,
    )
    try:
        quote = Quote(nano=terms.amount, source="table", exact=True)
        payer = payer_for(context, approval, money, what="It")
        async with paid_call(money, quote, payer=payer, tool="t", provider="p", model="m") as call:
            await call.send(None)
            await call.settle(None)
    except Denied:
        return False
    return True


@settings(suppress_health_check=SHARED_FIXTURE)
@given(terms=TERMS, answers=st.lists(st.booleans(), min_size=2, max_size=2))
async def test_nothing_is_spent_without_approval_or_a_rule_that_allows_it(
    store: Store, terms: Terms, answers: list[bool]
) -> None:
    user = User(iter(answers))
    is_paid = await buy(terms, user, store)
    over_caps = any(isinstance(question, OverCap) for question in user.agreed)
    agreed = any(not isinstance(question, OverCap) for question in user.agreed)

    assert terms.policy != "never" or user.asked == []
    assert len({type(question) for question in user.asked}) == len(user.asked)
    if not is_paid:
        assert terms.amount > 0, "what costs nothing is never denied"
        return
    if terms.amount > min(terms.caps, default=terms.amount):
        assert (terms.policy, over_caps) == ("on-failure", True)
    if terms.amount > 0 and not agreed:
        assert terms.is_set_aside or not terms.has_read
        assert terms.policy != "untrusted"
        assert terms.policy != "on-request" or terms.amount <= terms.above


@settings(suppress_health_check=SHARED_FIXTURE)
@given(
    policy=POLICIES,
    has_read=st.booleans(),
    read_only=st.booleans(),
    answer=st.booleans(),
    path=st.sampled_from(
        ["a.png", "sub/a.png", "../generated/a.png", "../b.png", "../desk/../c.png", "/etc/d.png"]
    ),
)
async def test_nothing_is_written_without_approval_or_a_rule_that_allows_it(
    tmp_path: Path, policy: str, has_read: bool, read_only: bool, answer: bool, path: str
) -> None:
    work, generated = tmp_path.resolve() / "work", tmp_path.resolve() / "generated"
    user = User(itertools.repeat(answer))
    context = ToolContext(
        cwd=work,
        reach=Reach(write=(work, generated), read_only=read_only),
        has_read_untrusted=has_read,
        ask=user,
    )
    approval = ApprovalPolicy(policy=policy, above_nano=0)
    try:
        written = await approve_write(path, context, approval, generated=generated)
    except Denied:
        assert user.agreed == []
        return
    assert not read_only
    assert not written.is_relative_to("/etc")
    if not user.agreed and not written.is_relative_to(generated):
        assert not has_read
        assert policy != "untrusted"
        assert written.is_relative_to(work)
