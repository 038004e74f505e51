"""A ComfyUI workflow with placeholders, and a request -> the graph that ComfyUI runs.

A workflow is the JSON that ComfyUI's "Export (API)" writes. ``{{prompt}}`` and the other names
of `PLACES` are placeholders. A string that is only a placeholder becomes the value itself, which
may be a number; a placeholder inside other text becomes part of the text.
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
from limner.settings.trust import accepts_relative

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
    """A graph with placeholders; errors call it by its ``name``."""

    def __init__(self, graph: Mapping[str, Any], *, name: str) -> None:
        self.name = name
        self._graph = graph
        self.places = frozenset(_places(graph))

    def check(self, request: ImageRequest, *, default_model: str) -> None:
        """Check that everything in the request has a place.

        Raises:
            UserError: something has none.
        """
        needed = {
            "negative_prompt": request.negative_prompt is not None,
            "image": bool(request.sources),
            "mask": request.mask is not None,
            "model": request.model != default_model,
        }
        for place, is_needed in needed.items():
            if is_needed and place not in self.places:
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

    def fill(self, values: Mapping[str, str | int]) -> Mapping[str, Any]:
        """The graph with every placeholder replaced."""
        return as_object(_fill(self._graph, values))


@cache
def built_in(*, edits: bool, masked: bool) -> Workflow:
    """limner's own workflow, which works with any checkpoint."""
    name = ("edit_masked" if masked else "edit") if edits else "draw"
    return _parse((_FOLDER / f"{name}.json").read_bytes(), name=f"limner's {name}")


def load_workflow(path: str, *, variable: str) -> Workflow:
    """Load the workflow that the user exported and named in the environment ``variable``.

    Raises:
        SettingsError: it does not exist, or cannot be used.
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
    if not Path(path).expanduser().is_absolute() and not accepts_relative(path, data):
        raise SettingsError(
            f"The workflow in {variable} is a file of the working folder, which is not trusted.",
            hint="Run `limner trust` if you trust this folder, or name the file by its whole path.",
        )
    workflow = _parse(data, name=path[-100:])
    unknown = sorted(workflow.places.difference(PLACES))
    if unknown:
        raise SettingsError(
            f"The workflow in {variable} has unknown placeholders: {', '.join(unknown)}",
            hint=f"The places are {', '.join(PLACES)}.",
        )
    if "prompt" not in workflow.places:
        raise SettingsError(f"The workflow in {variable} has no {{{{prompt}}}}.", hint=_HOW)
    return workflow


def workflow_values(request: ImageRequest, *, steps: int) -> Mapping[str, str | int]:
    """The value of each placeholder. The request already has a seed and a checkpoint."""
    values: dict[str, Any] = {
        "prompt": request.prompt,
        "negative_prompt": request.negative_prompt or "",
        "width": _round_up(request.width),
        "height": _round_up(request.height),
        "seed": request.seed or 0,
        "steps": steps,
        "model": request.model,
        **request.vendor_fields,
    }
    if request.sources:
        values["image"] = upload_name(request.sources[0])
    if request.mask is not None:
        values["mask"] = upload_name(request.mask)
    return values


def upload_name(source: SourceImage) -> str:
    """The name of an uploaded picture, made from its bytes."""
    digest = hashlib.sha256(source.data).hexdigest()
    return f"limner-{digest[:32]}.{_ENDINGS.get(source.mime, 'png')}"


def _parse(data: bytes, *, name: str) -> Workflow:
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


def _fill(value: object, values: Mapping[str, str | int]) -> Any:
    if isinstance(value, str):
        whole = _PLACE.fullmatch(value)
        if whole:
            return values[whole[1]]
        # One pass: a placeholder in the prompt itself is not replaced.
        return _PLACE.sub(lambda place: str(values[place[1]]), value)
    if isinstance(value, dict):
        fields = as_object(cast("object", value))
        return {name: _fill(field, values) for name, field in fields.items()}
    if isinstance(value, list):
        return [_fill(item, values) for item in as_list(cast("object", value))]
    return value


def _round_up(edge: int) -> int:
    return -(-edge // STEP_PIXELS) * STEP_PIXELS
