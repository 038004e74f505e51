"""Requests are sent once; what cannot have started is sent again, and nothing else."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from typing import Any

import pytest

from limner.errors import (
    BadProviderImage,
    ProviderAuth,
    ProviderBadRequest,
    ProviderRateLimited,
    ProviderUnavailable,
    SettingsError,
)
from limner.net.failures import Vendor
from limner.net.http import CHUNK_BYTES, ChunkedBody, MultipartForm, Upload
from limner.net.service import Access, Service, send_with_retries
from limner.net.waits import wait_text, waits_reported
from limner.testing import FakeClock
from limner.testing.servers.http_server import Gate, Reply, bytes_reply, dropped, json_reply
from limner.testing.servers.openai_server import (
    FormFile,
    OpenAIServer,
    ReceivedForm,
    error_reply,
    read_form,
)

VENDOR = Vendor(
    provider="acme-brush",
    title="Acme",
    key_env="ACME_KEY",
    base_url_env="ACME_BASE_URL",
    account_url="https://acme.example/usage",
)


def service(access: Access) -> Service:
    return Service(access, VENDOR)


class Attempts:
    """Fails with each of the errors in turn, and then succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)

    async def __call__(self) -> str:
        if self._errors:
            raise self._errors.pop(0)
        return "done"


def limited(told_s: float | None = None, **rest: Any) -> ProviderRateLimited:
    extras = {} if told_s is None else {"retry_after_s": told_s}
    return ProviderRateLimited("slow down", retry_after_s=told_s, extras=extras, **rest)


def unreached() -> ProviderUnavailable:
    return ProviderUnavailable("refused", extras={"sent": False})


async def test_a_rate_limit_is_tried_again_with_growing_pauses_for_twenty_seconds(
    time: FakeClock,
) -> None:
    assert await send_with_retries(Attempts(limited(), limited(), limited()), time.clock) == "done"
    assert time.slept == [0.5, 1.0, 2.0]
    time.slept.clear()
    with pytest.raises(ProviderRateLimited):
        await send_with_retries(Attempts(*(limited() for _ in range(99))), time.clock)
    assert time.slept == [0.5, 1.0, 2.0, 4.0, 8.0]


async def test_a_pause_is_reported_before_it_begins(time: FakeClock) -> None:
    told: list[str] = []
    with waits_reported(lambda error, wait_s: told.append(wait_text(error, wait_s))):
        await send_with_retries(Attempts(unreached(), limited(5)), time.clock)
    assert told == [
        "The service cannot be reached; limner asks again in 1 s",
        "The service limits the rate of requests; limner asks again in 5 s",
    ]


async def test_a_pause_that_was_asked_for_is_kept_up_to_a_minute_in_all(time: FakeClock) -> None:
    assert (
        await send_with_retries(Attempts(limited(25), limited(0), limited(30)), time.clock)
        == "done"
    )
    assert time.slept == [25, 0.5, 30]
    with pytest.raises(ProviderRateLimited):
        await send_with_retries(Attempts(limited(25), limited(36)), time.clock)
    assert time.slept == [25, 0.5, 30, 25]
    with pytest.raises(ProviderRateLimited):
        await send_with_retries(Attempts(limited(61)), time.clock)
    assert time.slept == [25, 0.5, 30, 25]


async def test_a_service_that_is_not_reached_is_tried_again_for_a_few_seconds(
    time: FakeClock,
) -> None:
    with pytest.raises(ProviderUnavailable):
        await send_with_retries(Attempts(*(unreached() for _ in range(99))), time.clock)
    assert time.slept == [0.5, 1.0, 2.0]


@pytest.mark.parametrize(
    "error",
    [
        limited(retryable=False),
        ProviderUnavailable("500"),
        ProviderUnavailable("504", may_be_billed=True),
        ProviderUnavailable("dropped", may_be_billed=True, extras={"sent": True}),
        ProviderAuth("401"),
        BadProviderImage("nothing"),
    ],
)
async def test_nothing_else_is_ever_tried_again(error: Exception, time: FakeClock) -> None:
    with pytest.raises(type(error)):
        await send_with_retries(Attempts(error), time.clock)
    assert time.slept == []


@pytest.mark.parametrize("key", ["sk-abc\n", "sk abc", "“sk-abc”", "sk-abc\r\nX: y", "\x00"])
async def test_a_key_that_cannot_be_one_is_named_before_anything_is_sent(
    key: str, connect: Callable[..., Access]
) -> None:
    with pytest.raises(ProviderAuth) as caught:
        service(connect("http://127.0.0.1:1", key=key))
    assert caught.value.message == "The key in ACME_KEY has characters that no key has"
    assert "abc" not in f"{caught.value} {caught.value.hint}"


async def test_a_base_url_that_is_missing_is_a_setting_to_make(
    connect: Callable[..., Access],
) -> None:
    with pytest.raises(SettingsError, match="ACME_BASE_URL is not set"):
        service(connect(""))


@pytest.mark.parametrize("base_url", ["localhost:80", "ftp://x", "https://", "http://h:port"])
async def test_a_base_url_that_is_no_address_is_a_setting_to_correct(
    base_url: str, connect: Callable[..., Access]
) -> None:
    with pytest.raises(SettingsError, match="ACME_BASE_URL is not a web address"):
        service(connect(base_url))


async def test_an_error_page_that_breaks_off_is_still_known_by_its_status(
    openai_server: OpenAIServer, connect: Callable[..., Access]
) -> None:
    openai_server.always(
        "generate", Reply(status=503, pieces=(b'{"error": {"mess',), length=9000, ending="close")
    )
    with pytest.raises(ProviderUnavailable, match="Acme answered 503: Service Unavailable"):
        await service(connect(openai_server.origin)).call(
            "POST", openai_server.origin, read_timeout_s=10, paid=True
        )


async def test_an_endless_error_page_is_not_read_to_its_end(
    openai_server: OpenAIServer, connect: Callable[..., Access]
) -> None:
    openai_server.always("generate", Reply(status=400, pieces=(b"x" * 10_000_000,), length=10**12))
    with pytest.raises(ProviderBadRequest, match="Acme answered 400: Bad Request"):
        await service(connect(openai_server.origin)).call(
            "POST", openai_server.origin, read_timeout_s=10, paid=True
        )


@pytest.mark.parametrize("paid", [True, False])
async def test_a_dropped_connection_is_at_stake_only_where_something_was_bought(
    paid: bool, openai_server: OpenAIServer, connect: Callable[..., Access]
) -> None:
    openai_server.always("generate", dropped())
    with pytest.raises(ProviderUnavailable) as caught:
        await service(connect(openai_server.origin)).call(
            "POST", openai_server.origin, read_timeout_s=10, paid=paid
        )
    assert (caught.value.may_be_billed, caught.value.retryable) == (paid, not paid)
    assert len(openai_server.requests) == 1


async def test_a_compressed_answer_that_was_not_asked_for_is_a_broken_one(
    openai_server: OpenAIServer, connect: Callable[..., Access]
) -> None:
    openai_server.always("generate", bytes_reply(b"nogzip", headers={"Content-Encoding": "gzip"}))
    with pytest.raises(ProviderUnavailable, match="broke off"):
        await service(connect(openai_server.origin)).call(
            "POST", openai_server.origin, read_timeout_s=10, paid=True
        )


async def test_the_key_goes_to_the_apis_own_origin_only(
    connect: Callable[..., Access],
) -> None:
    api = service(connect("https://api.acme.example/v1"))
    assert api.is_own("https://api.acme.example/v1/jobs/1")
    assert api.is_own("https://API.acme.example:443/other")
    for url in (
        "http://api.acme.example/v1",
        "https://api.acme.example:8443/v1",
        "https://api.acme.example.evil.example/v1",
        "https://api.acme.example@evil.example/",
        "//api.acme.example/",
        "/v1/jobs/1",
        "",
        "http://[",
    ):
        assert not api.is_own(url), url


async def test_a_vendors_words_are_shown_without_secrets(
    connect: Callable[..., Access],
) -> None:
    api = service(connect("https://api.acme.example/v1", key="plain-key-1234"))
    assert api.safe_text("a fox \ud83e plain-key-1234") == "a fox ? •••"


async def test_the_password_of_a_base_url_is_sent_and_shown_nowhere(
    openai_server: OpenAIServer, connect: Callable[..., Access]
) -> None:
    secret = "plantedurlpass77"
    encoded = base64.b64encode(f"artist:{secret}".encode()).decode()
    api = service(connect(openai_server.origin.replace("://", f"://artist:{secret}@"), key=""))
    assert api.base_url == openai_server.origin
    openai_server.always("generate", error_reply(400, f"no Basic {encoded} and no {secret}"))
    with pytest.raises(ProviderBadRequest) as caught:
        await api.call("POST", f"{api.base_url}/v1", read_timeout_s=10)
    assert openai_server.requests[0].headers["authorization"] == f"Basic {encoded}"
    assert caught.value.message == "Acme answered 400: no Basic ••• and no •••"


@pytest.mark.parametrize("header", ["x-key", "Authorization"])
async def test_a_response_is_masked_wherever_it_repeats_a_secret(
    header: str, openai_server: OpenAIServer, connect: Callable[..., Access]
) -> None:
    key = "zz/plantedkey0123456789"
    encoded = base64.b64encode(key.encode()).decode()
    api = Service(
        connect(openai_server.origin, key=key), VENDOR, headers={header: f"Basic {encoded}"}
    )
    words = {"plain": [f"a {key}", {"encoded": f"{encoded}!"}], "n": 1, "deep": None}
    openai_server.always("generate", json_reply(words))
    answer = await api.call("POST", openai_server.origin, read_timeout_s=10)
    assert answer == {"plain": ["a •••", {"encoded": "•••!"}], "n": 1, "deep": None}
    openai_server.always("generate", bytes_reply(b'["zz\\/plantedkey0123456789"]'))
    assert await api.call("POST", openai_server.origin, read_timeout_s=10) == ["•••"]


async def test_an_error_of_the_vendor_passes_through_whole(
    openai_server: OpenAIServer, connect: Callable[..., Access]
) -> None:
    reply = error_reply(429, "Rate limit", code="rate_limit", headers={"Retry-After": "2"})
    openai_server.always("generate", reply)
    with pytest.raises(ProviderRateLimited) as caught:
        await service(connect(openai_server.origin)).call(
            "POST", openai_server.origin, read_timeout_s=10, paid=True
        )
    assert caught.value.as_json() == {
        "code": "IMAGE_GEN_QUOTA_EXCEEDED",
        "message": "Acme answered 429: Rate limit",
        "retryable": True,
        "billed": False,
        "cost_usd": 0.0,
        "hint": "Wait a little, or ask for fewer pictures at once.",
        "provider": "acme-brush",
        "status": 429,
        "provider_code": "rate_limit",
        "retry_after_s": 2.0,
    }


async def test_a_form_arrives_as_it_was_filled_in(
    openai_server: OpenAIServer, connect: Callable[..., Access]
) -> None:
    form = MultipartForm(
        fields={"prompt": "a “fox”\r\n--", "n": 1, "stream": False},
        uploads=[
            Upload(field="image[]", filename="a.png", mime="image/png", data=b"\r\n--a\x00"),
            Upload(field="image[]", filename='"b".jpg', mime="image/jpeg", data=b""),
        ],
    )
    reached = service(connect(openai_server.base_url))
    await reached.call(
        "POST", f"{reached.base_url}/images/edits", form=form, read_timeout_s=10.0, paid=True
    )
    (seen,) = openai_server.requests
    assert read_form(seen) == ReceivedForm(
        fields={"prompt": "a “fox”\r\n--", "n": "1", "stream": "false"},
        files=[
            FormFile("image[]", "a.png", "image/png", b"\r\n--a\x00"),
            # A quote in a name is written as in an address.
            FormFile("image[]", "%22b%22.jpg", "image/jpeg", b""),
        ],
    )


@pytest.mark.parametrize("size_bytes", [CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES])
async def test_a_large_body_arrives_whole_and_with_its_length(
    size_bytes: int, openai_server: OpenAIServer, connect: Callable[..., Access]
) -> None:
    body = b'"%b"' % (b"x" * (size_bytes - 2))
    reached = service(connect(openai_server.base_url))
    with pytest.raises(ProviderBadRequest):
        async with reached.stream(
            f"{reached.base_url}/nowhere",
            content=(b'"', memoryview(body)[1:]),
            read_timeout_s=10.0,
            paid=False,
        ):
            pass
    (seen,) = openai_server.requests
    assert seen.body == body
    assert seen.headers["content-length"] == str(size_bytes)


async def test_a_large_body_can_be_read_again() -> None:
    body = bytes(range(256)) * 8192
    stream = ChunkedBody([body[:7], body[7:]])
    for _ in range(2):
        pieces = [piece async for piece in stream]
        assert [len(piece) for piece in pieces] == [7, CHUNK_BYTES, CHUNK_BYTES - 7]
        assert b"".join(pieces) == body


@pytest.mark.parametrize("paid", [True, False])
async def test_a_response_that_trickles_ends_at_the_deadline(
    paid: bool, openai_server: OpenAIServer, connect: Callable[..., Access]
) -> None:
    gates = [Gate() for _ in range(100)]
    pieces = tuple(piece for gate in gates for piece in (b" ", gate))
    openai_server.script("generate", Reply(pieces=pieces, chunked=True))

    async def trickle() -> None:
        for gate in gates:
            gate.open()
            await asyncio.sleep(0.02)

    trickling = asyncio.ensure_future(trickle())
    access = connect(openai_server.base_url, timeout_s=0.3)
    with pytest.raises(ProviderUnavailable) as caught:
        await service(access).call(
            "POST", f"{access.base_url}/images/generations", read_timeout_s=30, paid=paid
        )
    trickling.cancel()
    text = "Acme had not answered in full after 0.3 s"
    assert caught.value.message == (
        f"{text}; the request may be billed and was not sent again" if paid else text
    )
    assert (caught.value.may_be_billed, caught.value.retryable) == (paid, not paid)


async def test_a_deadline_of_the_caller_is_not_taken_for_the_services(
    openai_server: OpenAIServer, connect: Callable[..., Access]
) -> None:
    openai_server.always("generate", Reply(hold=Gate()))
    access = connect(openai_server.base_url)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await service(access).call(
                "POST", f"{access.base_url}/images/generations", read_timeout_s=30
            )
