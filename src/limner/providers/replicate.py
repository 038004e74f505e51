"""Any model on Replicate: a request -> a prediction, with the inputs of the model's own schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from limner.errors import ProviderBadRequest
from limner.json_shapes import as_list, as_object
from limner.providers.base import Connection
from limner.providers.model_inputs import ModelInputs
from limner.providers.replicate_api import POLL_TIMEOUT_S, Predictions, Runnable

NAME = "replicate"
# What models call the source pictures. The names for edits come first.
SOURCE_FIELDS = ("input_images", "image_input", "input_image", "image")
# Some models draw four by default, and each one is charged.
COUNT_FIELDS = ("num_outputs", "num_images", "number_of_images")
MAX_SCHEMA_BYTES = 4 * 1024 * 1024

_MODEL = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.-]{0,99}/[A-Za-z0-9][\w.-]{0,99})(?::(?P<version>[0-9a-f]{64}))?",
    re.ASCII,
)
_RATIO = re.compile(r"[1-9][0-9]?:[1-9][0-9]?")

INPUTS: Mapping[str, ModelInputs] = {
    # It takes a mask as well, but one that is black in the places that may change. By default it
    # rewrites the prompt.
    "ideogram-ai/ideogram-v3-quality": ModelInputs(
        ratios=(
            *("1:1", "1:2", "2:1", "1:3", "3:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4"),
            *("9:16", "16:9", "10:16", "16:10"),
        ),
        fixed={"magic_prompt_option": "Off"},
    ),
}


class Replicate(Predictions):
    """Draws with any model on Replicate, whose inputs it looks up once before it buys anything."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, name=NAME, known=INPUTS, artist="The model")
        self._found: dict[str, Runnable] = {}

    async def runnable(self, model: str) -> Runnable:
        """How to run a model, by its row above or by its own schema.

        Raises:
            ProviderBadRequest: there is no such model, or it takes no prompt.
            ProviderError: its schema cannot be fetched now.
        """
        if model in INPUTS:
            return await super().runnable(model)
        if model not in self._found:
            self._found[model] = await self._look_up(model)
        return self._found[model]

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
                read_timeout_s=POLL_TIMEOUT_S,
                max_json_bytes=MAX_SCHEMA_BYTES,
            )
        )
        latest = facts if version else as_object(facts.get("latest_version"))
        inputs = parse_inputs(latest.get("openapi_schema"))
        if inputs is None:
            raise ProviderBadRequest(
                f"{name} does not draw from a prompt; nothing was sent", extras={"provider": NAME}
            )
        is_official = facts.get("is_official") is True
        run = name if is_official else f"{name}:{version or latest.get('id')}"
        return Runnable(path="predictions", inputs=inputs, body={"version": run})


def parse_inputs(schema: object) -> ModelInputs | None:
    """The inputs of a model, by its OpenAPI schema; None if it takes no prompt."""
    schemas = as_object(as_object(as_object(schema).get("components")).get("schemas"))
    fields = as_object(as_object(schemas.get("Input")).get("properties"))
    if "prompt" not in fields:
        return None
    choices = _choices("aspect_ratio", fields, schemas)
    ratios = tuple(choice for choice in choices if _RATIO.fullmatch(choice))
    source = next((name for name in SOURCE_FIELDS if name in fields), None)
    is_list = source is not None and as_object(fields[source]).get("type") == "array"
    fixed: dict[str, Any] = {name: 1 for name in COUNT_FIELDS if name in fields}
    if "png" in _choices("output_format", fields, schemas):
        fixed["output_format"] = "png"
    return ModelInputs(
        ratios=ratios,
        edges="apart" if not ratios and {"width", "height"} <= fields.keys() else None,
        source=source,
        several="list" if is_list else None,
        seed="seed" in fields,
        negative_prompt="negative_prompt" in fields,
        fixed=fixed,
    )


def _choices(name: str, fields: Mapping[str, Any], schemas: Mapping[str, Any]) -> list[str]:
    """The values of a field, written in place or behind a reference."""
    field = as_object(fields.get(name))
    refs = [as_object(part).get("$ref") for part in as_list(field.get("allOf"))]
    named = [as_object(schemas.get(ref.rpartition("/")[2])) for ref in refs if isinstance(ref, str)]
    enums = (as_list(place.get("enum")) for place in (field, *named))
    return [value for values in enums for value in values if isinstance(value, str)]
