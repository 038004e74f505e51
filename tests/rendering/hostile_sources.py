"""Hostile sources of every format: data elsewhere, files, endless loops, bombs, huge pictures."""

from __future__ import annotations

import json
from typing import Literal, NamedTuple

from limner.rendering.sources import SourceFormat

# Refused with a reason, stopped at a limit, or drawn without harm.
Verdict = Literal["refused", "stopped", "drawn"]


class HostileSource(NamedTuple):
    """A source, and what must happen to it."""

    format: SourceFormat
    name: str
    source: str
    verdict: Verdict

    def __str__(self) -> str:
        return f"{self.format}: {self.name}"


_SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">{}</svg>'
_POINT = {
    "data": {"values": [{"a": 1, "b": 2}]},
    "mark": "point",
    "encoding": {"x": {"field": "a"}, "y": {"field": "b"}},
}
_BOMB = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 10))


_ROWS = {"sequence": {"start": 0, "stop": 1e9, "as": "a"}}


def _vega(**changes: object) -> str:
    return json.dumps({**_POINT, **changes})


def _calculate(expression: str) -> str:
    return _vega(transform=[{"calculate": expression, "as": "z"}])


def _json(**document: object) -> str:
    return json.dumps(document)


_NODES = " ".join(f"a{i}" for i in range(100_000))
_EDGES = "\n".join(f"a{i}-->b" for i in range(60_000))
_QUICK = [
    HostileSource("svg", "a file", _SVG.format('<image href="file:///etc/passwd"/>'), "refused"),
    HostileSource("svg", "a script", _SVG.format("<script>fetch('/')</script>"), "refused"),
    HostileSource(
        "svg", "an address", _SVG.format('<use href="http://127.0.0.1/a.svg#b"/>'), "refused"
    ),
    HostileSource(
        "svg", "a style sheet", _SVG.format("<style>@import url(http://a.b);</style>"), "refused"
    ),
    HostileSource(
        "svg",
        "an entity of a file",
        '<!DOCTYPE svg [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
        + _SVG.format("<text>&a;</text>"),
        "refused",
    ),
    HostileSource(
        "svg",
        "entities of entities",
        f'<!DOCTYPE svg [<!ENTITY e0 "ha">{_BOMB}]>' + _SVG.format("<text>&e9;</text>"),
        "refused",
    ),
    HostileSource(
        "svg",
        "groups of groups",
        _SVG.format(
            "".join(
                f'<g id="g{i}">{f"""<use href="#g{i - 1}"/>""" * 20}</g>' if i else '<g id="g0"/>'
                for i in range(9)
            )
        ),
        "refused",
    ),
    HostileSource("svg", "60,000 elements", _SVG.format("<rect/>" * 60_000), "refused"),
    HostileSource(
        "svg",
        "a huge canvas",
        '<svg xmlns="http://www.w3.org/2000/svg" width="1e9" height="1e9"/>',
        "drawn",
    ),
    HostileSource("limner", "deep nesting", '{"type":"row","children":[' * 9000, "refused"),
    HostileSource("limner", "a huge canvas", _json(type="page", size="999999x999999"), "refused"),
    HostileSource(
        "limner", "10^5 values", _json(type="bar", labels=["a"], values=[1] * 100_000), "refused"
    ),
    HostileSource(
        "limner", "10^5 edges", _json(type="diagram", edges=[["a", "b"]] * 70_000), "refused"
    ),
    HostileSource(
        "limner",
        "10^5 children",
        _json(type="page", children=[{"type": "divider"}] * 40_000),
        "refused",
    ),
    HostileSource(
        "dot", "10^5 nodes", f"digraph {{{' '.join(f'a{i}' for i in range(150_000))}}}", "refused"
    ),
    HostileSource(
        "dot", "subgraphs in subgraphs", "digraph {" + "subgraph a {" * 50_000, "refused"
    ),
    HostileSource("dot", "a file", 'digraph { a [image="/etc/passwd"] }', "drawn"),
    HostileSource(
        "dot", "a product of groups", "graph {" + "{a b c} -- " * 5000 + "{d}}", "refused"
    ),
    HostileSource(
        "mermaid",
        "10^5 nodes",
        "flowchart LR\n" + "\n".join(f"a{i}-->b" for i in range(60_000)),
        "refused",
    ),
    HostileSource(
        "mermaid", "a link", 'flowchart LR\n a-->b\n click a "javascript:alert(1)"', "drawn"
    ),
    HostileSource("mermaid", "brackets", "flowchart LR\n a" + "[" * 150_000, "refused"),
]
_VEGA = [
    HostileSource("vega-lite", "other data", _vega(data={"url": "//127.0.0.1/a"}), "refused"),
    HostileSource("vega-lite", "a file", _vega(data={"url": "file:///etc/passwd"}), "refused"),
    HostileSource(
        "vega-lite",
        "a file to look up",
        _vega(transform=[{"lookup": "a", "from": {"data": {"url": "/etc/passwd"}, "key": "a"}}]),
        "refused",
    ),
    HostileSource(
        "vega-lite",
        "a picture elsewhere",
        _vega(mark="image", encoding={"url": {"field": "a"}}),
        "refused",
    ),
    HostileSource("vega-lite", "a link", _vega(encoding={"href": {"field": "a"}}), "refused"),
    HostileSource("vega-lite", "a huge canvas", _vega(width=1e9, height=1e9), "drawn"),
    HostileSource("vega-lite", "deep nesting", '{"mark":' * 20_000, "refused"),
    HostileSource(
        "vega-lite",
        "10^9 rows",
        _vega(data={"sequence": {"start": 0, "stop": 1e9, "as": "a"}}),
        "stopped",
    ),
    HostileSource(
        "vega-lite",
        "an endless pattern",
        _calculate(f"test(regexp('^(a+)+$'), '{'a' * 60}!')"),
        "stopped",
    ),
    HostileSource("vega-lite", "a long text", _calculate("length(pad('a', 1e9, 'b'))"), "stopped"),
    HostileSource("vega-lite", "a long list", _calculate("sequence(0, 1e9)"), "stopped"),
]
_TYPST = [
    HostileSource("typst", "a file", '#read("/etc/passwd")', "refused"),
    HostileSource("typst", "a file above", '#read("../../errors.py")', "refused"),
    HostileSource("typst", "a picture file", '#image("/etc/logo.png")', "refused"),
    HostileSource("typst", "a package", '#import "@preview/cetz:0.3.0"', "refused"),
    HostileSource("typst", "a hidden package", '#import "@" + "preview/cetz:0.3.0"', "refused"),
    HostileSource("typst", "an endless loop", "#let n = 0\n#while n >= 0 { n += 1 }", "refused"),
    HostileSource("typst", "an endless call", "#let f(n) = f(n + 1)\n#f(0)", "refused"),
    HostileSource("typst", "code", "#plugin(bytes((0, 97, 115, 109)))", "refused"),
    HostileSource("typst", "a huge canvas", "#set page(width: 1e9pt, height: 1e9pt)\na", "drawn"),
    HostileSource("typst", "10^8 letters", "#for i in range(100000000) [x]", "stopped"),
    HostileSource("typst", "a long text", '#("x" * 1000000000)', "stopped"),
    HostileSource("typst", "10^7 words", "#lorem(10000000)", "stopped"),
    HostileSource(
        "typst", "10^6 cells", "#grid(columns: 1000, ..range(1000000).map(i => [x]))", "stopped"
    ),
]
DEFAULT_INSTALL = _QUICK
ENGINES = [*_VEGA, *_TYPST]
