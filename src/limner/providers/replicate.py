"""Any model on Replicate: a request -> a prediction, told what the model's own schema asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from limner.catalogue.images import image_models, other_image_model
from limner.errors import ProviderBadRequest
from limner.json_shapes import as_list, as_object
from limner.providers.base import Connection, ProviderSpec
from limner.providers.jobs import CALL_OFF_S, JobProvider
from limner.providers.model_inputs import ModelInputs
from limner.providers.replicate_api import (
    BASE_URL,
    BASE_URL_ENV,
    KEY_ENV,
    LOOK_TIMEOUT_S,
    Predictions,
    Runnable,
)

NAME = "replicate"
# What models call the pictures to draw from, those that are meant for changing one first.
SOURCE_FIELDS = ("input_images", "image_input", "input_image", "image")
# Some draw four unless told otherwise, and each is charged.
COUNT_FIELDS = ("num_outputs", "num_images", "number_of_images")
MAX_SCHEMA_BYTES = 4 * 1024 * 1024

_MODEL = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.-]{0,99}/[A-Za-z0-9][\w.-]{0,99})(?::(?P<version>[0-9a-f]{64}))?",
    re.ASCII,
)
_RATIO = re.compile(r"[1-9][0-9]?:[1-9][0-9]?")

INPUTS: Mapping[str, ModelInputs] = {
    # It takes a mask as well, but one that is black where the picture may change. Left to itself
    # it rewrites the prompt.
    "ideogram-ai/ideogram-v3-quality": ModelInputs(
        ratios=(
            *("1:1", "1:2", "2:1", "1:3", "3:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4"),
            *("9:16", "16:9", "10:16", "16:10"),
        ),
        fixed={"magic_prompt_option": "Off"},
    ),
}


class Replicate(JobProvider):
    """Draws with whatever model is named.

    Args:
        call_off_s: how long a caller who gives up waits for the prediction to be cancelled.
    """

    def __init__(self, connection: Connection, *, call_off_s: float = CALL_OFF_S) -> None:
        super().__init__(_OpenPredictions(connection), call_off_s=call_off_s)


class _OpenPredictions(Predictions):
    """Predictions of any model: what it is told is looked up, once, before anything is bought."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, provider=NAME, known=INPUTS, artist="The model")
        self._looked_up: dict[str, Runnable] = {}

    async def runnable(self, model: str) -> Runnable:
        """How to run a model, by its row or by its own schema.

        Raises:
            ProviderBadRequest: there is no such model, or it does not draw from words.
            ProviderError: its schema cannot be read now.
        """
        if model in INPUTS:
            return await super().runnable(model)
        if model not in self._looked_up:
            self._looked_up[model] = await self._look_up(model)
        return self._looked_up[model]

    async def _look_up(self, model: str) -> Runnable:
        match = _MODEL.fullmatch(model)
        if match is None:
            raise ProviderBadRequest(
                f"{model[:100]!r} is not a model's name at Replicate; nothing was sent",
                hint="Write owner/name, or owner/name:version.",
                extras={"provider": NAME},
            )
        name, version = match["name"], match["version"]
        path = f"models/{name}" + (f"/versions/{version}" if version else "")
        facts = as_object(
            await self.service.call(
                "GET",
                f"{self.service.base_url}/{path}",
                read_timeout_s=LOOK_TIMEOUT_S,
                max_json_bytes=MAX_SCHEMA_BYTES,
            )
        )
        latest = facts if version else as_object(facts.get("latest_version"))
        inputs = inputs_of(latest.get("openapi_schema"))
        if inputs is None:
            raise ProviderBadRequest(
                f"{name} does not draw from a prompt; nothing was sent", extras={"provider": NAME}
            )
        official = facts.get("is_official") is True
        run = name if official else f"{name}:{version or latest.get('id')}"
        return Runnable(path="predictions", inputs=inputs, body={"version": run})


def inputs_of(schema: object) -> ModelInputs | None:
    """What a model takes, by its OpenAPI schema; None where a prompt is not among it."""
    schemas = as_object(as_object(as_object(schema).get("components")).get("schemas"))
    fields = as_object(as_object(schemas.get("Input")).get("properties"))
    if "prompt" not in fields:
        return None
    shapes = _choices("aspect_ratio", fields, schemas)
    ratios = tuple(shape for shape in shapes if _RATIO.fullmatch(shape))
    source = next((name for name in SOURCE_FIELDS if name in fields), None)
    listed = source is not None and as_object(fields[source]).get("type") == "array"
    fixed: dict[str, Any] = {name: 1 for name in COUNT_FIELDS if name in fields}
    if "png" in _choices("output_format", fields, schemas):
        fixed["output_format"] = "png"
    return ModelInputs(
        ratios=ratios,
        edges="apart" if not ratios and {"width", "height"} <= fields.keys() else None,
        source=source,
        several="list" if listed else None,
        seed="seed" in fields,
        negative_prompt="negative_prompt" in fields,
        fixed=fixed,
    )


def _choices(name: str, fields: Mapping[str, Any], schemas: Mapping[str, Any]) -> list[str]:
    """The values a field may have, written in place or under a name of their own."""
    stated = as_object(fields.get(name))
    refers = [as_object(part).get("$ref") for part in as_list(stated.get("allOf"))]
    named = [
        as_object(schemas.get(ref.rpartition("/")[2])) for ref in refers if isinstance(ref, str)
    ]
    listed = (as_list(one.get("enum")) for one in (stated, *named))
    return [value for values in listed for value in values if isinstance(value, str)]


SPEC = ProviderSpec(
    name=NAME,
    key_env=KEY_ENV,
    base_url_env=BASE_URL_ENV,
    base_url=BASE_URL,
    models=image_models(NAME),
    build=Replicate,
    other_model=other_image_model(NAME),
    named_only=True,
)
