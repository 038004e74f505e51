"""A Vega-Lite specification -> SVG, by vl-convert in a process of its own.

Started by `imaging.process` as ``python -P -m limner.rendering.vega_lite LIMITS``. vl-convert runs
JavaScript in V8, which needs other limits than the worker that draws.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, cast

from msgspec.structs import replace

from limner.errors import InputInvalid
from limner.imaging.fonts import FOLDER, FONTS, cjk_font
from limner.imaging.limits import WorkerLimits
from limner.imaging.sandbox import VEGA_LITE
from limner.imaging.worker import JobTable, serve
from limner.json_shapes import as_list, as_object
from limner.rendering.canvas import RenderedDocument
from limner.rendering.document import DEFAULT_EDGE, syntax_error
from limner.rendering.svg_source import measure_source

Spec = dict[str, Any]

MARKS = re.findall(
    r"\w+",
    "arc area bar boxplot circle errorband errorbar geoshape line point rect rule square "
    "text tick trail",
)
DEFAULT_SIZE = DEFAULT_EDGE, 768
# A chart is laid out at this width and then enlarged, so that its text is as large as in limner's.
_LAYOUT_EDGE = 512
_ROWS = ("values", "datasets")
_WARM_UP = b'{"data": {"values": [{"a": "A"}]}, "mark": "bar", "encoding": {"x": {"field": "a"}}}'


def main() -> None:
    """Run jobs until stdin closes."""
    serve(VEGA_LITE, load=load_library, prepare=prepare)


def load_library(limits: WorkerLimits) -> None:  # noqa: ARG001 - every worker has this signature
    """Load the native library."""
    import_module("vl_convert")


def prepare(limits: WorkerLimits) -> JobTable:
    """Draw a first chart: it starts V8 and its threads, which the sandbox would not allow."""
    from limner.rendering.worker import compile_job  # noqa: PLC0415 - it loads this module

    for font in (FOLDER / "*", cjk_font()):
        if font:
            _vl_convert().register_font_directory(str(font.parent))
    compile_job({"format": "vega-lite", "size": None}, _WARM_UP, limits)
    return {"compile": compile_job}


def compile_spec(
    source: str, size: tuple[int, int] | None, limits: WorkerLimits
) -> RenderedDocument:
    """Draw a specification. Its own size counts if none is given.

    Raises:
        InputInvalid: it is not a specification, or its data are elsewhere.
        ImageError: the drawing is over a limit.
    """
    spec = _parse(source)
    _check_addresses(spec)
    _check_mark(spec)
    notes = [*_field_notes(spec)]
    spec["config"] = {"font": FONTS["sans"].family, **as_object(spec.get("config"))}
    is_plain = ("mark" in spec or "layer" in spec) and not {"width", "height"} & spec.keys()
    wanted = size or (DEFAULT_SIZE if is_plain else None)
    if is_plain and wanted:
        scale = max(wanted) / _LAYOUT_EDGE
        spec["width"], spec["height"] = (max(1, round(edge / scale)) for edge in wanted)
        spec["autosize"] = {"type": "fit", "contains": "padding"}
    drawn = measure_source(_convert_or_explain(spec), wanted, limits, min_edge=DEFAULT_EDGE)
    return replace(drawn, notes=(*notes, *drawn.notes))


def _convert(spec: Spec) -> str:
    return _vl_convert().vegalite_to_svg(spec, allowed_base_urls=[])


def _convert_or_explain(spec: Spec) -> str:
    # V8 may report an error of an earlier chart now, so only a second failure counts.
    with contextlib.suppress(ValueError):
        return _convert(spec)
    try:
        return _convert(spec)
    except ValueError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = re.sub(r"^\w*Error: ", "", (lines[1:] or lines or ["?"])[0])
        raise InputInvalid(
            f"Vega-Lite cannot draw it: {reason}",
            field="source",
            hint="Check that each mark and encoding channel is one of Vega-Lite.",
        ) from None


def _vl_convert() -> Any:
    # Imported by name: it comes with an extra.
    return import_module("vl_convert")


def _parse(source: str) -> Spec:
    try:
        spec = json.loads(source)
    except ValueError:
        raise InputInvalid(syntax_error(source), field="source") from None
    if not isinstance(spec, dict):
        raise InputInvalid("a Vega-Lite specification is a JSON object", field="source")
    return cast("Spec", spec)


def _check_addresses(spec: Spec) -> None:
    """Refuse links, and data outside of the specification."""
    for path, value in _parts(spec, "$"):
        if "href" in value:
            raise InputInvalid(f"{path}.href: a picture has no links; remove it", field="source")
        address = value.get("url")
        if isinstance(address, str):
            raise InputInvalid(
                f"{path}.url is {address[:80]!r}: limner loads nothing from outside",
                field="source",
                hint='Write the rows into the specification: "data": {"values": [{"x": 1}]}.',
            )


def _check_mark(spec: Spec) -> None:
    for path, value in _parts(spec, "$"):
        mark: Any = value.get("mark")
        name: Any = as_object(mark).get("type", mark)
        if "mark" in value and name not in MARKS:
            near = get_close_matches(str(name), MARKS, n=1)
            raise InputInvalid(
                f"{path}.mark is {str(name)[:40]!r}",
                field="source",
                hint=(f"Did you mean {near[0]}? " if near else "")
                + f"The marks are {', '.join(MARKS)}.",
            )


def _field_notes(spec: Spec) -> Iterator[str]:
    """Fields that no row has; Vega-Lite draws nothing for them and does not say so."""
    rows = [as_object(row) for row in as_list(as_object(spec.get("data")).get("values"))]
    known = {name for row in rows for name in row}
    if not known or any("transform" in part for _, part in _parts(spec, "$")):
        return
    for channel, value in as_object(spec.get("encoding")).items():
        field = as_object(value).get("field")
        if isinstance(field, str) and re.split(r"[.\[]", field)[0] not in known:
            yield (
                f"No row has the field {field[:40]!r} of {channel[:40]}; "
                f"the rows have {', '.join(sorted(known))[:200]}."
            )


def _parts(value: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every object of a specification with its path, but not the rows of its data."""
    if isinstance(value, dict):
        own = cast("Spec", value)
        yield path, own
        for name, part in own.items():
            if name not in _ROWS:
                yield from _parts(part, f"{path}.{name}")
    elif isinstance(value, list):
        for number, part in enumerate(cast("list[Any]", value)):
            yield from _parts(part, f"{path}[{number}]")


if __name__ == "__main__":
    main()
