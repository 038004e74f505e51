"""Servers that speak OpenAI's images API in their own ways, all drawn with by one provider."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import pytest
from tests.servers.openai_compatible_servers import AzureServer, GatewayServer, LocalAIServer
from tests.servers.samples import KEY, PICTURE

from limner.catalogue.images import Needs, Size
from limner.errors import (
    BadProviderImage,
    NoProvider,
    ProviderBadRequest,
    ProviderUnavailable,
    SettingsError,
)
from limner.net.http import Http
from limner.pictures.request import ImageRequest, Progress, Receipt, SourceImage
from limner.providers.base import Connection
from limner.providers.choice import DrawingNeeds, choose
from limner.providers.openai_compatible import SPEC, OpenAICompatible
from limner.providers.specs import all_specs
from limner.testing import FakeDesk, FakeSink
from limner.testing.servers.http_server import dropped, json_reply
from limner.testing.servers.openai_server import OpenAIServer, error_reply, read_form

SOURCE = SourceImage(handle="0" * 64, mime="image/png", width=512, height=512, data=b"source")
AZURE_VERSION = "?api-version=2025-04-01-preview"


def asked(**rest: Any) -> ImageRequest:
    fields: dict[str, Any] = {"prompt": "a fox", "model": "my-model", "width": 512, "height": 512}
    return ImageRequest(**fields | rest)


async def draw(connection: Connection, request: ImageRequest) -> tuple[Receipt, bytes]:
    sink = FakeSink()
    receipt = await OpenAICompatible(connection).generate(request, sink, FakeDesk().callbacks)
    return receipt, bytes(sink.data)


@pytest.fixture
def local() -> Iterator[LocalAIServer]:
    with LocalAIServer(PICTURE) as server:
        yield server


async def test_a_server_is_asked_with_the_few_fields_that_all_take(
    openai_server: OpenAIServer, connect: Callable[..., Connection]
) -> None:
    found = await draw(connect(openai_server.base_url), asked(seed=7, quality="hd"))
    # Its price is its own: the usage it reports says nothing without a rate.
    assert found == (Receipt(prompt_used="a fox"), PICTURE)
    (seen,) = openai_server.requests
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.json() == {
        "model": "my-model",
        "prompt": "a fox",
        "size": "512x512",
        "n": 1,
        "response_format": "b64_json",
    }


async def test_without_a_key_none_is_sent_and_nobody_is_billed(
    local: LocalAIServer, connect: Callable[..., Connection]
) -> None:
    found = await draw(connect(local.base_url, key=""), asked(model="default"))
    assert found == (Receipt(prompt_used="a fox", cost_nano=0), PICTURE)
    (seen,) = local.requests
    assert "model" not in seen.json()


async def test_a_server_that_answers_by_its_own_address_all_the_same_is_followed(
    local: LocalAIServer, connect: Callable[..., Connection]
) -> None:
    local.script("generate", local.drawn({}, kind="image_generation"))
    assert (await draw(connect(local.base_url, key=""), asked()))[1] == PICTURE
    assert [seen.path for seen in local.requests] == ["/v1/images/generations", "/files/b6476.png"]


async def test_an_address_elsewhere_is_not_followed(
    openai_server: OpenAIServer, connect: Callable[..., Connection]
) -> None:
    url = "https://account.blob.core.windows.net/picture.png"
    openai_server.script("generate", json_reply({"data": [{"url": url}]}))
    with pytest.raises(BadProviderImage, match="not a host of this service") as caught:
        await draw(connect(openai_server.base_url), asked())
    assert caught.value.extras == {"provider": SPEC.name}


async def test_an_edit_is_the_vendors_form(
    local: LocalAIServer, connect: Callable[..., Connection]
) -> None:
    request = asked(sources=(SOURCE,), mask=SOURCE, model="default")
    assert (await draw(connect(local.base_url, key=""), request))[1] == PICTURE
    (seen,) = local.requests
    form = read_form(seen)
    assert form.fields == {
        "prompt": "a fox",
        "size": "512x512",
        "n": "1",
        "response_format": "b64_json",
    }
    assert [(part.field, part.filename, part.data) for part in form.files] == [
        ("image", "image-1.png", b"source"),
        ("mask", "mask.png", b"source"),
    ]


@pytest.mark.parametrize("sources", [(), (SOURCE, SOURCE)])
async def test_a_field_that_the_server_turns_down_is_left_out(
    sources: tuple[SourceImage, ...], connect: Callable[..., Connection]
) -> None:
    with GatewayServer(PICTURE) as server:
        assert (await draw(connect(server.base_url), asked(sources=sources)))[1] == PICTURE
        assert len(server.requests) == 2
        assert b"response_format" not in server.requests[1].body


@pytest.mark.parametrize("model", ["gpt-image-2", "azure/openai/gpt-image-1.5"])
async def test_a_model_known_to_turn_it_down_is_not_asked(
    model: str, connect: Callable[..., Connection]
) -> None:
    with GatewayServer(PICTURE) as server:
        await draw(connect(server.base_url), asked(model=model))
        (seen,) = server.requests
        assert seen.json() == {"model": model, "prompt": "a fox", "size": "512x512", "n": 1}


@pytest.mark.parametrize(
    ("model", "code", "times"),
    [
        ("my-model", "unknown_parameter", 2),
        ("my-model", "invalid_size", 1),
        ("gpt-image-2", "unknown_parameter", 1),
    ],
)
async def test_a_request_that_is_turned_down_for_good_is_not_sent_over_and_over(
    model: str,
    code: str,
    times: int,
    openai_server: OpenAIServer,
    connect: Callable[..., Connection],
) -> None:
    openai_server.always("generate", error_reply(400, "No", code=code))
    with pytest.raises(ProviderBadRequest):
        await draw(connect(openai_server.base_url), asked(model=model))
    assert len(openai_server.requests) == times


async def test_azure_gets_its_own_header_and_its_version(
    connect: Callable[..., Connection],
) -> None:
    with AzureServer(PICTURE) as server:
        connection = connect(f"{server.base_url}{AZURE_VERSION}")
        assert (await draw(connection, asked()))[1] == PICTURE
        assert (await draw(connection, asked(sources=(SOURCE,))))[1] == PICTURE
        assert [seen.target for seen in server.requests] == [
            f"/openai/deployments/drawer/images/generations{AZURE_VERSION}",
            f"/openai/deployments/drawer/images/edits{AZURE_VERSION}",
        ]
        assert {seen.headers["api-key"] for seen in server.requests} == {KEY}


async def test_nobody_who_watches_the_requests_reads_the_key() -> None:
    lines: list[str] = []
    http = Http(observe=lines.append)
    with AzureServer(PICTURE) as server:
        connection = Connection(
            http=http.client(),
            base_url=f"{server.base_url}{AZURE_VERSION}",
            key=KEY,
            illustrate=_nobody,
        )
        await draw(connection, asked(sources=(SOURCE,)))
    await http.aclose()
    assert len(lines) == 2
    assert KEY not in "".join(lines)


@pytest.mark.parametrize(("key", "may_be_billed"), [(KEY, True), ("", False)])
async def test_what_became_of_a_lost_request_matters_where_somebody_is_billed(
    key: str, may_be_billed: bool, local: LocalAIServer, connect: Callable[..., Connection]
) -> None:
    local.always("generate", dropped())
    with pytest.raises(ProviderUnavailable) as caught:
        await draw(connect(local.base_url, key=key), asked())
    assert caught.value.may_be_billed == may_be_billed
    assert f"127.0.0.1:{local.port}" in caught.value.message
    assert len(local.requests) == 1


async def test_the_caller_hears_who_is_drawing(
    openai_server: OpenAIServer, connect: Callable[..., Connection]
) -> None:
    desk = FakeDesk()
    provider = OpenAICompatible(connect(openai_server.base_url))
    await provider.generate(asked(), FakeSink(), desk.callbacks)
    message = f"127.0.0.1:{openai_server.port} is drawing"
    assert desk.progress == [Progress(message=message, elapsed_s=0.0)]


@pytest.mark.parametrize(
    ("base_url", "message"),
    [
        ("", "OPENAI_COMPATIBLE_BASE_URL is not set"),
        ("localhost:8080", "OPENAI_COMPATIBLE_BASE_URL is not a web address: 'localhost:8080'"),
        ("http://h:port", "OPENAI_COMPATIBLE_BASE_URL is not a web address: 'http://h:port'"),
    ],
)
async def test_an_address_is_needed(
    base_url: str, message: str, connect: Callable[..., Connection]
) -> None:
    with pytest.raises(SettingsError) as caught:
        OpenAICompatible(connect(base_url))
    assert caught.value.message == message


def test_any_model_is_taken_at_its_name_and_its_price_is_unknown() -> None:
    model = SPEC.model(f"{SPEC.name}/Qwen/Qwen-Image")
    assert model is not None
    assert (model.id, model.title, model.fit_to_size) == (
        "Qwen/Qwen-Image",
        "Qwen/Qwen-Image",
        True,
    )
    quote = model.quote(Size(1024, 1024), "standard", "a fox")
    assert (quote.source, quote.exact) == ("unknown", False)
    assert model.lacks(Needs(sources=16, mask=True)) is None
    assert model.lacks(Needs(partial_pictures=1)) is not None


@pytest.mark.parametrize("key", [KEY, None])
def test_its_key_is_used_where_it_is_set_and_not_missed_where_it_is_not(key: str | None) -> None:
    wish = DrawingNeeds(
        provider=SPEC.name, model="any", size=Size(512, 512), quality="standard", has_svg=False
    )
    specs = all_specs(embedded=False)
    choice = choose(wish, specs=specs, key_of=lambda name: key, today=date(2026, 11, 15))
    assert (choice.spec.name, choice.model.id, choice.key) == (SPEC.name, "any", key or "")


def test_it_is_nobodys_unless_it_is_named() -> None:
    wish = DrawingNeeds(
        provider="auto", model=None, size=Size(512, 512), quality="hd", has_svg=False
    )
    with pytest.raises(NoProvider):
        choose(
            wish,
            specs={SPEC.name: SPEC},
            key_of=lambda name: KEY,
            today=date(2026, 11, 15),
        )


async def _nobody(request: ImageRequest) -> Any:
    raise AssertionError(request)
