"""The models on Replicate: those of the table, and any other by its own schema."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec.structs import replace
from tests.providers.drawn import Drawn, source
from tests.servers.samples import PICTURE

from limner.catalogue.images import Needs, Size, image_models
from limner.errors import (
    BadProviderImage,
    LimnerError,
    ProviderAuth,
    ProviderBadRequest,
    ProviderUnavailable,
)
from limner.pictures.request import ImageRequest, Receipt, RemoteJob
from limner.providers import replicate, replicate_flux
from limner.providers.base import Connection
from limner.providers.model_inputs import ModelInputs
from limner.providers.replicate import Replicate, parse_inputs
from limner.providers.replicate_flux import ReplicateFlux
from limner.providers.specs import BUILT_IN
from limner.testing import ProviderContract
from limner.testing.servers.http_server import Gate, Reply, html_reply
from limner.testing.servers.replicate_server import ReplicateServer, error_reply
from limner.testing.stage import LocalStage

BFL = "black-forest-labs"
REQUEST = ImageRequest(prompt="a fox", model="acme/draws", width=1024, height=768, seed=42)
RECEIPT = Receipt(prompt_used="a fox", extras={"seed": 42})
FOX, HAT, MASK = source(b"a fox"), source(b"a hat"), source(b"a mask")
FOX_URL, HAT_URL = "data:image/png;base64,YSBmb3g=", "data:image/png;base64,YSBoYXQ="
PNG = {"output_format": "png"}
VERSION = "5c7d5dc6" * 8
FORMATS = {"enum": ["webp", "jpg", "png"], "type": "string"}


def schema(**fields: Any) -> dict[str, Any]:
    """A model's schema as the service gives it: choices stand under names of their own."""
    named = {name: facts for name, facts in fields.items() if "enum" in facts}
    properties = {
        name: {"allOf": [{"$ref": f"#/components/schemas/{name}"}]} if name in named else facts
        for name, facts in fields.items()
    }
    inputs = {"type": "object", "properties": {"prompt": {"type": "string"}, **properties}}
    return {"components": {"schemas": {"Input": inputs, **named}}}


def model(openapi_schema: Any, *, official: bool = False) -> dict[str, Any]:
    latest = {"id": VERSION, "openapi_schema": openapi_schema}
    return {"owner": "acme", "name": "draws", "is_official": official, "latest_version": latest}


class TestReplicate(ProviderContract):
    spec = BUILT_IN["replicate"]
    can_find_jobs = True

    @contextmanager
    def stage(self) -> Iterator[LocalStage]:
        with ReplicateServer(b"") as server:
            yield LocalStage(server, buying="create")


@pytest.fixture
def open_models(
    replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> Callable[[], Drawn]:
    return lambda: Drawn(Replicate(connect(replicate_server.base_url)))


@pytest.mark.parametrize(
    ("provider", "inputs"),
    [("replicate", replicate.INPUTS), ("replicate-flux", replicate_flux.INPUTS)],
)
def test_every_row_of_the_catalogue_has_its_inputs(provider: str, inputs: Any) -> None:
    assert list(inputs) == [row.id for row in image_models(provider)]


@pytest.mark.parametrize(
    ("name", "asked", "fields"),
    [
        ("flux-dev", {}, PNG | {"aspect_ratio": "5:4", "num_outputs": 1}),
        ("flux-1.1-pro", {}, PNG | {"aspect_ratio": "4:3"}),
        ("flux-1.1-pro-ultra", {}, PNG | {"aspect_ratio": "4:3"}),
        (
            "flux-kontext-pro",
            {"sources": (FOX,)},
            PNG | {"aspect_ratio": "4:3", "input_image": FOX_URL},
        ),
        (
            "flux-kontext-max",
            {"sources": (FOX,)},
            PNG | {"aspect_ratio": "4:3", "input_image": FOX_URL},
        ),
        (
            "flux-2-pro",
            {"sources": (FOX, HAT)},
            PNG | {"aspect_ratio": "4:3", "resolution": "1 MP", "input_images": [FOX_URL, HAT_URL]},
        ),
        ("flux-2-max", {}, PNG | {"aspect_ratio": "4:3", "resolution": "1 MP"}),
        (
            "flux-fill-pro",
            {"sources": (FOX,), "mask": MASK},
            PNG | {"image": FOX_URL, "mask": "data:image/png;base64,YSBtYXNr"},
        ),
    ],
)
async def test_each_flux_is_told_what_it_takes(
    name: str,
    asked: dict[str, Any],
    fields: dict[str, Any],
    replicate_server: ReplicateServer,
    connect: Callable[..., Connection],
) -> None:
    drawn = Drawn(ReplicateFlux(connect(replicate_server.base_url)))
    assert await drawn.generate(replace(REQUEST, model=f"{BFL}/{name}", **asked)) == RECEIPT
    create = replicate_server.requests[0]
    assert create.path == f"/v1/models/{BFL}/{name}/predictions"
    assert create.json() == {"input": {"prompt": "a fox", "seed": 42, **fields}}


async def test_the_model_that_fills_is_not_sent_a_request_without_a_mask(
    replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    drawn = Drawn(ReplicateFlux(connect(replicate_server.base_url)))
    with pytest.raises(ProviderBadRequest, match="only fills the area that a mask marks"):
        await drawn.generate(replace(REQUEST, model=f"{BFL}/flux-fill-pro", sources=(FOX,)))
    assert replicate_server.requests == []


@pytest.mark.parametrize(
    ("needs", "able"),
    [
        (Needs(), f"{BFL}/flux-schnell"),
        (Needs(sources=1), f"{BFL}/flux-kontext-pro"),
        (Needs(sources=3), f"{BFL}/flux-2-pro"),
        (Needs(sources=1, mask=True), f"{BFL}/flux-fill-pro"),
    ],
)
def test_the_first_row_that_can_is_the_one_for_the_work(needs: Needs, able: str) -> None:
    rows = [row for row in BUILT_IN["replicate-flux"].models if row.lacks(needs) is None]
    assert rows[0].id == able


async def test_a_model_of_the_table_is_asked_for_without_looking_it_up(
    replicate_server: ReplicateServer, open_models: Callable[[], Drawn]
) -> None:
    ideogram = "ideogram-ai/ideogram-v3-quality"
    assert await open_models().generate(replace(REQUEST, model=ideogram)) == RECEIPT
    create, _ = replicate_server.requests
    assert create.json() == {
        "input": {
            "prompt": "a fox",
            "aspect_ratio": "4:3",
            "magic_prompt_option": "Off",
            "seed": 42,
        }
    }


@pytest.mark.parametrize(
    ("official", "run"), [(True, "acme/draws"), (False, f"acme/draws:{VERSION}")]
)
async def test_any_model_is_told_what_its_schema_asks_for(
    official: bool,
    run: str,
    replicate_server: ReplicateServer,
    open_models: Callable[[], Drawn],
) -> None:
    facts = schema(
        aspect_ratio={"enum": ["1:1", "4:3", "match_input_image", "custom"], "type": "string"},
        output_format=FORMATS,
        num_outputs={"type": "integer", "default": 4},
        image_input={"type": "array", "items": {"type": "string", "format": "uri"}},
        negative_prompt={"type": "string"},
        seed={"type": "integer"},
        width={"type": "integer"},
        height={"type": "integer"},
    )
    replicate_server.models["acme/draws"] = model(facts, official=official)
    drawn = open_models()
    asked = replace(REQUEST, sources=(FOX, HAT), negative_prompt="text")
    assert await drawn.generate(asked) == RECEIPT
    routes = [replicate_server.route(seen) for seen in replicate_server.requests]
    assert (routes, drawn.data) == (["model", "create", "file"], PICTURE)
    create = replicate_server.requests[1]
    assert create.path == "/v1/predictions"
    assert create.json() == {
        "version": run,
        "input": {
            "prompt": "a fox",
            "aspect_ratio": "4:3",
            "output_format": "png",
            "num_outputs": 1,
            "image_input": [FOX_URL, HAT_URL],
            "negative_prompt": "text",
            "seed": 42,
        },
    }


async def test_a_version_that_is_named_is_the_one_that_runs(
    replicate_server: ReplicateServer, open_models: Callable[[], Drawn]
) -> None:
    facts = {"id": VERSION, "openapi_schema": schema(width={}, height={})}
    replicate_server.models[f"acme/draws/{VERSION}"] = facts
    drawn = open_models()
    # Without a seed there is nothing to tell, and nothing to find it by.
    assert await drawn.generate(replace(REQUEST, model=f"acme/draws:{VERSION}")) == Receipt(
        prompt_used="a fox"
    )
    assert replicate_server.requests[1].json() == {
        "version": f"acme/draws:{VERSION}",
        "input": {"prompt": "a fox", "width": 1024, "height": 768},
    }


async def test_a_lost_prediction_of_any_model_is_found_by_its_seed(
    replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    facts = {"id": VERSION, "openapi_schema": schema(seed={"type": "integer"})}
    replicate_server.models[f"acme/draws/{VERSION}"] = facts
    provider = Replicate(connect(replicate_server.base_url))
    one = replicate_server.add("acme/draws", {"prompt": "a fox", "seed": 42})["id"]
    asked = replace(REQUEST, model=f"acme/draws:{VERSION}")
    url = f"{replicate_server.base_url}/predictions/{one}"
    assert await provider.find(asked, since_ms=0) == [RemoteJob(remote_id=one, url=url)]


@pytest.mark.parametrize(
    ("facts", "asked", "match"),
    [
        (schema(), {"sources": (FOX,)}, "does not draw from pictures"),
        (schema(image={"type": "string"}), {"sources": (FOX, HAT)}, "draws from one picture"),
        (schema(), {"negative_prompt": "text"}, "takes no negative prompt"),
        ({"components": {}}, {}, "does not draw from a prompt"),
        (None, {}, "does not draw from a prompt"),
    ],
)
async def test_what_a_model_cannot_do_is_found_out_before_anything_is_bought(
    facts: Any,
    asked: dict[str, Any],
    match: str,
    replicate_server: ReplicateServer,
    open_models: Callable[[], Drawn],
) -> None:
    replicate_server.models["acme/draws"] = model(facts)
    with pytest.raises(ProviderBadRequest, match=match) as caught:
        await open_models().generate(replace(REQUEST, **asked))
    assert (replicate_server.sent("create"), caught.value.may_be_billed) == ([], False)


@pytest.mark.parametrize(
    "name", ["acme", "a/b/c", "../account", "acme/..", "a?b/c", "acme/draws:latest", "é/b", ""]
)
async def test_a_name_that_is_none_is_not_looked_up(
    name: str, replicate_server: ReplicateServer, open_models: Callable[[], Drawn]
) -> None:
    with pytest.raises(ProviderBadRequest, match="is not a model's name") as caught:
        await open_models().generate(replace(REQUEST, model=name))
    assert caught.value.hint == "Write owner/name, or owner/name:version."
    assert replicate_server.requests == []


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (error_reply(401, "no"), ProviderAuth),
        (error_reply(404, "no"), ProviderBadRequest),
        (error_reply(503, "no"), ProviderUnavailable),
        (html_reply(), BadProviderImage),
    ],
)
async def test_a_look_up_that_fails_buys_nothing(
    answer: Reply,
    kind: type[LimnerError],
    replicate_server: ReplicateServer,
    open_models: Callable[[], Drawn],
) -> None:
    replicate_server.always("model", answer)
    with pytest.raises(kind) as caught:
        await open_models().generate(REQUEST)
    assert replicate_server.sent("create") == []
    assert not getattr(caught.value, "may_be_billed", False)


async def test_giving_up_while_the_model_is_looked_up_costs_nothing(
    replicate_server: ReplicateServer, open_models: Callable[[], Drawn]
) -> None:
    replicate_server.always("model", Reply(hold=Gate()))
    drawn = open_models()
    drawing = asyncio.ensure_future(drawn.generate(REQUEST))
    await replicate_server.wait_until("model")
    drawing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await drawing
    assert (drawn.desk.withdrawn, replicate_server.sent("create")) == (1, [])


@pytest.mark.parametrize(
    ("fields", "inputs"),
    [
        ({}, ModelInputs(seed=False)),
        ({"seed": {}}, ModelInputs()),
        ({"width": {}}, ModelInputs(seed=False)),
        ({"width": {}, "height": {}}, ModelInputs(edges="apart", seed=False)),
        (
            {
                "aspect_ratio": {"enum": ["1:1", "16:9", 7, "auto", "1:1 "]},
                "width": {},
                "height": {},
            },
            ModelInputs(ratios=("1:1", "16:9"), seed=False),
        ),
        ({"output_format": {"enum": ["jpg"]}}, ModelInputs(seed=False)),
        ({"output_format": FORMATS}, ModelInputs(seed=False, fixed=PNG)),
        (
            {"image": {}, "input_images": {"type": "array"}},
            ModelInputs(source="input_images", several="list", seed=False),
        ),
        ({"input_image": {"type": "string"}}, ModelInputs(source="input_image", seed=False)),
        (
            {"number_of_images": {}, "num_images": {}},
            ModelInputs(seed=False, fixed={"num_images": 1, "number_of_images": 1}),
        ),
    ],
)
def test_a_schema_says_what_a_model_takes(fields: dict[str, Any], inputs: ModelInputs) -> None:
    assert parse_inputs(schema(**fields)) == inputs
    assert parse_inputs({"components": {"schemas": {"Input": {"properties": fields}}}}) is None


@pytest.mark.parametrize(
    "hostile", [None, [], {}, "x", {"components": 7}, {"components": {"schemas": []}}]
)
def test_a_schema_that_is_none_is_not_understood(hostile: Any) -> None:
    assert parse_inputs(hostile) is None


def test_any_other_model_has_no_price_but_is_counted() -> None:
    row = BUILT_IN["replicate"].model("acme/draws")
    assert row is not None
    quote = row.quote(Size(1024, 1024), "standard", "a fox")
    assert (row.name, quote.nano, quote.source) == ("replicate/acme/draws", 250_000_000, "unknown")
