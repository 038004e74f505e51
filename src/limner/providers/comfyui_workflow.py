"""A ComfyUI workflow with places left open, and a request -> the graph that ComfyUI runs.

A workflow is the JSON that ComfyUI's "Export (API)" writes. ``{{prompt}}`` and the other names
of `PLACES` stand where the request goes: alone in a string they become the value itself, a number
where it is one; among other text they become part of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

import msgspec

from limner.errors import SettingsError, UserError
from limner.json_shapes import as_list, as_object
from limner.pictures.request import ImageRequest, SourceImage

PLACES = (
    "prompt",
    "negative_prompt",
    "width",
    "height",
    "seed",
    "steps",
    "model",
    "image",
    "mask",
)
MAX_BYTES = 1024 * 1024
# Some models draw in steps of 8 pixels, others in steps of 16.
STEP_PIXELS = 16
_FOLDER = Path(__file__).with_name("comfyui_workflows")
_PLACE = re.compile(r"\{\{\s*([a-z_]+)\s*\}\}")
_ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp"}
_HOW = 'In ComfyUI choose "Export (API)", and write {{prompt}} where the prompt goes.'


class Workflow:
    """A graph with places left open; ``name`` is what it is called in errors."""

    def __init__(self, graph: Mapping[str, Any], *, name: str) -> None:
        self.name = name
        self._graph = graph
        self.places = frozenset(_places(graph))

    def check(self, request: ImageRequest, *, default_model: str) -> None:
        """See that everything the request asks for has a place.

        Raises:
            UserError: something has none.
        """
        asked = {
            "negative_prompt": request.negative_prompt is not None,
            "image": bool(request.sources),
            "mask": request.mask is not None,
            "model": request.model != default_model,
        }
        for place, is_asked in asked.items():
            if is_asked and place not in self.places:
                raise UserError(
                    f"The workflow {self.name} has no place for the {place.replace('_', ' ')}.",
                    code="PROVIDER_CANNOT",
                    hint=f"Write {{{{{place}}}}} where it goes.",
                )
        if "image" in self.places and not request.sources:
            raise UserError(
                f"The workflow {self.name} draws from a picture, and there is none.",
                code="PROVIDER_CANNOT",
                hint="Name a picture to draw from, or a workflow without {{image}}.",
            )

    def filled(self, values: Mapping[str, str | int]) -> Mapping[str, Any]:
        """The graph with every place filled."""
        return as_object(_filled(self._graph, values))


@cache
def built_in(*, edits: bool, masked: bool) -> Workflow:
    """The workflow for those who have not brought their own: any one checkpoint draws it."""
    name = ("edit_masked" if masked else "edit") if edits else "draw"
    return _parsed((_FOLDER / f"{name}.json").read_bytes(), name=f"limner's {name}")


def own(path: str, *, variable: str) -> Workflow:
    """The workflow that somebody exported.

    Raises:
        SettingsError: there is none, or it cannot be used; ``variable`` is where it was named.
    """
    try:
        with Path(path).expanduser().open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, RuntimeError, ValueError) as error:
        raise SettingsError(
            f"{variable} names a workflow that cannot be read: {path[:200]!r} ({error})"
        ) from error
    if len(data) > MAX_BYTES:
        raise SettingsError(f"The workflow in {variable} has more than {MAX_BYTES:,} bytes.")
    workflow = _parsed(data, name=path[-100:])
    unknown = sorted(workflow.places.difference(PLACES))
    if unknown:
        raise SettingsError(
            f"The workflow in {variable} has places that nothing goes to: {', '.join(unknown)}",
            hint=f"The places are {', '.join(PLACES)}.",
        )
    if "prompt" not in workflow.places:
        raise SettingsError(f"The workflow in {variable} has no {{{{prompt}}}}.", hint=_HOW)
    return workflow


def values_of(request: ImageRequest, *, steps: int) -> Mapping[str, str | int]:
    """What goes to each place. The request has a seed and, where it is needed, a checkpoint."""
    values: dict[str, str | int] = {
        "prompt": request.prompt,
        "negative_prompt": request.negative_prompt or "",
        "width": _up(request.width),
        "height": _up(request.height),
        "seed": request.seed or 0,
        "steps": steps,
        "model": request.model,
    }
    if request.sources:
        values["image"] = upload_name(request.sources[0])
    if request.mask is not None:
        values["mask"] = upload_name(request.mask)
    return values


def upload_name(source: SourceImage) -> str:
    """What a picture is called among ComfyUI's inputs: the same picture, the same name."""
    digest = hashlib.sha256(source.data).hexdigest()
    return f"limner-{digest[:32]}.{_ENDINGS.get(source.mime, 'png')}"


def _parsed(data: bytes, *, name: str) -> Workflow:
    graph: Mapping[str, Any] = {}
    with contextlib.suppress(msgspec.DecodeError, RecursionError):
        graph = as_object(msgspec.json.decode(data))
    if not graph or not all("class_type" in as_object(node) for node in graph.values()):
        raise SettingsError(f"{name[:100]!r} is not a workflow in ComfyUI's API format.", hint=_HOW)
    return Workflow(graph, name=name)


def _places(value: object) -> set[str]:
    if isinstance(value, str):
        return set(_PLACE.findall(value))
    inside = (*as_object(value).values(), *as_list(value))
    return set[str]().union(*map(_places, inside))


def _filled(value: object, values: Mapping[str, str | int]) -> Any:
    if isinstance(value, str):
        whole = _PLACE.fullmatch(value)
        if whole:
            return values[whole[1]]
        # One pass: what is filled in is never looked at again, whatever the prompt says.
        return _PLACE.sub(lambda place: str(values[place[1]]), value)
    if isinstance(value, dict):
        return {
            name: _filled(one, values) for name, one in as_object(cast("object", value)).items()
        }
    if isinstance(value, list):
        return [_filled(one, values) for one in as_list(cast("object", value))]
    return value


def _up(edge: int) -> int:
    return -(-edge // STEP_PIXELS) * STEP_PIXELS
