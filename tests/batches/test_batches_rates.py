"""Rates: one bucket for all processes, emptied for all by a 429."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.batches.conftest import drawings

from limner import Limner
from limner.batches import rates
from limner.batches.rates import RequestRate, parse_rates, rate_of
from limner.batches.records import BatchCounts
from limner.errors import InputInvalid, LimnerError
from limner.storage.store import Store
from limner.testing import FakeServices

SECOND = 1_000_000


def test_a_rate_names_a_provider_and_all_its_kinds() -> None:
    found = parse_rates(["openai=50/min", "openai-image=2/s", "Replicate=10/Hour"])
    assert found == {
        "openai": RequestRate(requests=50, per_s=60),
        "openai-image": RequestRate(requests=2, per_s=1),
        "replicate": RequestRate(requests=10, per_s=3600),
    }
    assert rate_of("openai-image", found) == found["openai-image"]
    assert rate_of("openai-dalle", found) == found["openai"]
    assert rate_of("openaix", found) is None
    assert found["openai"].interval_us == 1_200_000


@pytest.mark.parametrize("text", ["openai", "openai=0/min", "openai=5/week", "=5/min"])
def test_another_word_is_no_rate(text: str) -> None:
    with pytest.raises(InputInvalid, match="is not a rate"):
        parse_rates([text])


async def taken(store: Store, *, now_s: float, rate: RequestRate | None = None) -> float | None:
    """None if the bucket admits a request, else how long it says to wait."""
    now_us = int(now_s * SECOND)
    try:
        await store.write(lambda tx: rates.take(tx, "b", rate=rate, now_us=now_us))
    except LimnerError as error:
        return error.extras["wait_s"]
    return None


async def test_two_processes_share_a_bucket(store: Store, new_store: Callable[[], Store]) -> None:
    rate = RequestRate(requests=60, per_s=60)
    other = new_store()
    assert await taken(store, now_s=100, rate=rate) is None
    assert await taken(other, now_s=100, rate=rate) == pytest.approx(0.75)
    assert await taken(other, now_s=100.75, rate=rate) is None
    assert await taken(store, now_s=101, rate=rate) == pytest.approx(0.75)
    await other.aclose()


async def test_in_a_minute_no_more_requests_go_than_the_rate_says(store: Store) -> None:
    rate = RequestRate(requests=50, per_s=60)
    went = [
        tenth for tenth in range(600) if await taken(store, now_s=tenth / 10, rate=rate) is None
    ]
    assert 45 <= len(went) <= 51


async def test_a_pause_that_a_provider_asks_for_holds_without_a_rate_too(store: Store) -> None:
    assert await taken(store, now_s=100) is None
    await store.write(lambda tx: rates.empty(tx, "b", until_us=130 * SECOND))
    await store.write(lambda tx: rates.empty(tx, "b", until_us=110 * SECOND))
    assert await taken(store, now_s=105) == pytest.approx(25)
    assert await taken(store, now_s=131) is None


async def test_a_429_empties_the_bucket_of_its_provider_key_and_model(
    services: FakeServices, lim: Limner
) -> None:
    body = {"error": {"message": "Slow down.", "code": "rate_limit_exceeded"}}
    services.images.respond(429, body, headers={"Retry-After": "1"})
    status = await lim.batch(drawings(1), budget_usd=1, rate=["openai=600/min"])
    assert status.counts == BatchCounts(done=1)
    hashed = lim.batches.calls.key_hash("openai-image")
    bucket = f"openai-image/{hashed}/gpt-image-2.5-flare"
    row = await lim.store.read(lambda tx: tx.one("rate_free", name=bucket))
    assert row is not None
    assert services.env["OPENAI_API_KEY"] not in bucket
