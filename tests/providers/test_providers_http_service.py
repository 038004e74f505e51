"""The service of a plug-in: typed responses, and the picture at a path of the response."""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from limner.errors import BadProviderImage, ProviderUnavailable
from limner.net.http import Http
from limner.plugins import Connection, HttpService, ProviderSpec
from limner.providers.specs import BUILT_IN
from limner.testing import FakeClock, FakeSink
from limner.testing.servers.http_server import (
    LocalServer,
    ReceivedRequest,
    Reply,
    bytes_reply,
    json_reply,
)

PICTURE = bytes(range(256)) * 9
BASE64 = base64.b64encode(PICTURE).decode()
SPEC = ProviderSpec(
    name="atelier",
    title="Atelier",
    key_env="ATELIER_API_KEY",
    base_url_env="ATELIER_BASE_URL",
    base_url="",
    models=BUILT_IN["openai-image"].models,
    build=lambda connection: pytest.fail("it is not built here"),
)


@dataclass
class Drawn:
    cost: float


class AtelierServer(LocalServer):
    """Answers every POST with ``reply``, and a GET with the picture."""

    reply: Reply

    def answer(self, seen: ReceivedRequest) -> Reply:
        return self.reply if seen.method == "POST" else bytes_reply(PICTURE)


@pytest.fixture
def server() -> Iterator[AtelierServer]:
    with AtelierServer() as server:
        yield server


@pytest.fixture
async def service(server: AtelierServer) -> AsyncIterator[HttpService]:
    async def illustrate(request: object) -> Any:
        raise AssertionError(request)

    http = Http()
    connection = Connection(
        http=http.client(),
        base_url=f"{server.origin}/v1",
        key="key-0123456789",
        illustrate=illustrate,
        clock=FakeClock().clock,
    )
    yield HttpService(connection, SPEC)
    await http.aclose()


@pytest.mark.parametrize(
    ("picture", "answer"),
    [
        ("image", {"image": BASE64, "cost": 0.5}),
        ("image", {"image": f"data:image/png;base64,{BASE64}", "cost": 0.5}),
        (
            "data.images.b64",
            {"data": [{}, {"images": [{"b64": BASE64}]}], "cost": 0.5},
        ),
        ("image", {"image": "ORIGIN/files/fox.png", "cost": 0.5}),
        ("images.url", {"images": [{"url": None}, {"url": "ORIGIN/files/fox.png"}], "cost": 0.5}),
    ],
)
async def test_the_picture_at_the_path_goes_to_the_sink_and_the_rest_is_decoded(
    picture: str, answer: Any, server: AtelierServer, service: HttpService
) -> None:
    text = json_reply(answer).pieces[0]
    assert isinstance(text, bytes)
    server.reply = bytes_reply(text.replace(b"ORIGIN", server.origin.encode()))
    sink = FakeSink()
    drawn = await service.draw("/draw", Drawn, body={"prompt": "a fox"}, picture=picture, sink=sink)
    assert (drawn, bytes(sink.data)) == (Drawn(cost=0.5), PICTURE)
    sent = server.requests[0]
    assert (sent.path, sent.json(), sent.headers["authorization"]) == (
        "/v1/draw",
        {"prompt": "a fox"},
        "Bearer key-0123456789",
    )


async def test_a_response_without_a_picture_names_the_service(
    server: AtelierServer, service: HttpService
) -> None:
    server.reply = json_reply({"image": None, "cost": 0.5})
    with pytest.raises(BadProviderImage, match=r"^Atelier answered without a picture$") as failure:
        await service.draw("/draw", Drawn, body={}, picture="image", sink=FakeSink())
    assert failure.value.extras == {"provider": "atelier"}


async def test_a_response_of_another_form_names_the_member_and_not_the_key(
    server: AtelierServer, service: HttpService
) -> None:
    server.reply = json_reply({"image": BASE64, "cost": "key-0123456789"})
    said = "Atelier answered in another form: Expected `float`, got `str` - at `$.cost`"
    with pytest.raises(BadProviderImage, match=f"^{re.escape(said)}$"):
        await service.draw("/draw", Drawn, body={}, picture="image", sink=FakeSink())


async def test_a_picture_at_another_origin_is_not_downloaded(
    server: AtelierServer, service: HttpService
) -> None:
    server.reply = json_reply({"image": "https://example.com/fox.png", "cost": 0.5})
    with pytest.raises(BadProviderImage):
        await service.draw("/draw", Drawn, body={}, picture="image", sink=FakeSink())


async def test_asking_decodes_the_response_as_the_type(
    server: AtelierServer, service: HttpService
) -> None:
    server.reply = json_reply({"cost": 0.25, "other": [1]})
    assert await service.ask("POST", "/quote", Drawn, body={}) == Drawn(cost=0.25)
    assert await service.ask("POST", f"{server.origin}/v1/quote", Drawn) == Drawn(cost=0.25)


async def test_the_key_is_sent_to_no_other_origin(service: HttpService) -> None:
    with pytest.raises(BadProviderImage, match=r"^Atelier named a URL that is not its own$"):
        await service.ask("POST", "https://example.com/quote", Drawn)


@pytest.mark.parametrize(("paid", "may_be_billed"), [(True, True), (False, False)])
async def test_only_a_paid_request_may_be_billed(
    paid: bool, may_be_billed: bool, server: AtelierServer, service: HttpService
) -> None:
    server.reply = json_reply({}, status=504)
    with pytest.raises(ProviderUnavailable) as failure:
        await service.ask("POST", "/quote", Drawn, paid=paid)
    assert failure.value.may_be_billed == may_be_billed
