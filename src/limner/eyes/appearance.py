"""Controls, shapes, panels and lines -> answers about state, colour, number and contrast."""

from __future__ import annotations

import re
from collections.abc import Sequence

from limner.eyes.evidence import Evidence, EyesQuestion, Finding, kind
from limner.eyes.quotes import QUOTED_IS_DATA, cleaned, quoted
from limner.eyes.text import place
from limner.eyes.words import content, hits, stem, stems, tokens, word_set
from limner.imaging.evidence import Box, Control, Panel, Shape, TextLine
from limner.imaging.evidence.colour_names import COLOUR_WORDS, matches_word, name_of

_SHAPE_NAMES = {
    "circle": "circle",
    "disc": "circle",
    "disk": "circle",
    "dot": "circle",
    "ellipse": "ellipse",
    "oval": "ellipse",
    "square": "square",
    "rectangle": "rectangle",
    "triangle": "triangle",
    "diamond": "diamond",
    "rhombus": "diamond",
    "pentagon": "pentagon",
    "hexagon": "hexagon",
}
_SHAPE_KINDS = {stem(word): shape for word, shape in _SHAPE_NAMES.items()}
_ANY_SHAPE = frozenset({"shap", "object", "figur"})
_CONTROL_KINDS = {
    "button": "button",
    "checkbox": "checkbox",
    "tickbox": "checkbox",
    "radio": "radio",
    "toggl": "toggle",
    "switch": "toggle",
    "field": "field",
    "input": "field",
}
_STATE_WORDS = word_set(
    "on off checked unchecked ticked unticked selected enabled disabled active inactive switched "
    "turned greyed grayed clickable available option chosen check tick select enable disable"
)
STATE = re.compile(
    r"\b(?:checked|unchecked|ticked|unticked|selected|chosen|(?:en|dis)abled|greyed|grayed"
    r"|clickable|switched|turned|(?:is|are|be)\b.*\b(?:on|off|active|inactive))\b"
)
_NEGATIVE = re.compile(r"\b(?:off|unchecked|unticked|disabled|inactive|not|greyed|grayed)\b")
# WCAG 2 asks for 4.5, and for 3 if the text is large.
_LEAST_CONTRAST, _LARGE_CONTRAST, _LARGE_PIXELS = 4.5, 3.0, 32
_TOP = re.compile(r"\b(?:header|top bar|title bar|app bar|toolbar|navbar|banner)\b")
_BOTTOM = re.compile(r"\b(?:footer|status ?bar|bottom bar)\b")
_SIDE = re.compile(r"\b(?:side ?bar|side panel|navigation)\b")


def state(query: EyesQuestion) -> Finding | None:
    """Whether a control is on, or which ones are."""
    question, controls = query.question, query.picture.page.controls
    if not controls:
        return None
    wanted = content(
        question, besides=(*_STATE_WORDS, *tokens("checkbox button radio toggle switch"))
    )
    if re.match(r"(?:is|are|does|do|has|can)\b", question):
        named = _named(controls, wanted)
        return _is_in_state(named[0], question) if len(named) == 1 else None
    return _which_are(query, controls, wanted)


def _named(controls: Sequence[Control], wanted: Sequence[str]) -> list[Control]:
    """The controls whose label shares the most words with the question."""
    if not wanted:
        return list(controls) if len(controls) == 1 else []
    shared = [(len(hits(wanted, control.label)), control) for control in controls]
    most = max((count for count, _ in shared), default=0)
    best = [control for count, control in shared if count == most and most]
    exact = [control for control in best if len(stems(control.label)) == most]
    return exact if len(exact) == 1 else best


def _is_on(control: Control) -> bool:
    return control.state in {"on", "enabled"}


_STATES = {
    "button": ("disabled", "enabled"),
    "checkbox": ("not ticked", "ticked"),
    "radio": ("not selected", "selected"),
    "toggle": ("off", "on"),
}


def _is_in_state(control: Control, question: str) -> Finding | None:
    if control.kind == "field":
        return None
    asked = _NEGATIVE.search(question) is None
    yes = "Yes" if _is_on(control) == asked else "No"
    return Finding(
        answer=f"{yes}, {quoted(control.label)} is {_STATES[control.kind][_is_on(control)]}.",
        evidence=(_where(control),),
        caveats=(QUOTED_IS_DATA,),
    )


def _where(control: Control) -> str:
    kind_name, label = control.kind.capitalize(), quoted(control.label)
    return f"{kind_name} {label}: {control.state}, {place(control.box)}."


def _which_are(
    query: EyesQuestion, controls: Sequence[Control], wanted: Sequence[str]
) -> Finding | None:
    """The controls of the state that the question asks for."""
    question = query.question
    kinds = {_CONTROL_KINDS[word] for word in stems(question) if word in _CONTROL_KINDS}
    if re.search(r"abled|greyed|grayed|clickable", question):
        kinds = kinds or {"button"}
    else:
        kinds = kinds or {"checkbox", "radio", "toggle"}
    asked = _NEGATIVE.search(question) is None
    found = [control for control in controls if control.kind in kinds and _is_on(control) == asked]
    narrowed = [control for control in found if hits(wanted, control.label)]
    found = narrowed or (found if not wanted or _any_hit(query.picture, wanted) is False else [])
    if not found:
        return None
    return Finding(
        answer=cleaned(", ".join(control.label for control in found), max_chars=200),
        evidence=tuple(_where(control) for control in found[:10]),
        caveats=(QUOTED_IS_DATA,),
    )


def _any_hit(picture: Evidence, wanted: Sequence[str]) -> bool:
    return any(hits(wanted, line.text) for line in picture.lines)


def buttons(query: EyesQuestion) -> Finding | None:
    """The labels of the buttons, or of the one with the colour that the question names."""
    asks = re.search(
        r"\bsays?\b|\breads?\b|\b(?:text|label|word)s?\b|\bwh(?:at|ich)\b.*\bbuttons\b",
        query.question,
    )
    found = [control for control in query.picture.page.controls if control.kind == "button"]
    colours = [word for word in tokens(query.question) if word in COLOUR_WORDS]
    if colours:
        found = [one for one in found if matches_word(name_of(one.colour), colours[0])]
    if (
        not asks
        or not found
        or (not colours and "buttons" not in query.question and len(found) > 1)
    ):
        return None
    return Finding(
        answer=cleaned(", ".join(control.label for control in found), max_chars=200),
        evidence=tuple(map(_where, found[:20])),
        caveats=(QUOTED_IS_DATA,),
    )


def colour_of(query: EyesQuestion) -> Finding | None:
    """The colour of a button, a shape, a panel or a text that the question names."""
    found = _coloured(query)
    if found is None:
        return None
    what, code, box = found
    name = name_of(code)
    asked = [word for word in tokens(query.question) if word in COLOUR_WORDS]
    answer = f"{name} ({code})"
    if asked and re.match(r"(?:is|are|does|do|has)\b", query.question):
        yes = any(matches_word(name, word) for word in asked)
        answer = f"{'Yes' if yes else 'No'}, it is {name} ({code})."
    return Finding(answer=answer, evidence=(f"{what} {place(box)}.",), caveats=(QUOTED_IS_DATA,))


def _coloured(query: EyesQuestion) -> tuple[str, str, Box] | None:
    """What the question asks the colour of, its colour, and its box."""
    question, page = query.question, query.picture.page
    empty = ("color", "colour", "colors", "colours", *COLOUR_WORDS)
    words = content(question, besides=empty)
    buttons = [control for control in page.controls if control.kind == "button"]
    if "button" in words:
        named = _named(buttons, [word for word in words if word != "button"])
        if named or len(buttons) == 1:
            one = (named or buttons)[0]
            return f"The button {quoted(one.label)}", one.colour, one.box
        return None
    if (panel := _bar(query.picture, question)) is not None:
        return "The panel", panel.colour, panel.box
    kinds = {_SHAPE_KINDS[word] for word in words if word in _SHAPE_KINDS}
    figures = [shape for shape in page.shapes if shape.kind in kinds]
    if figures and len({name_of(shape.colour) for shape in figures}) == 1:
        return f"The {figures[0].kind}", figures[0].colour, figures[0].box
    return _coloured_line(query.picture, words, question)


def _coloured_line(
    picture: Evidence, words: Sequence[str], question: str
) -> tuple[str, str, Box] | None:
    things = [
        word for word in words if word not in {"letter", "word", "writ", "line", "font", "box"}
    ]
    if {"titl", "head", "heading"} & set(things) and picture.lines:
        line = max(picture.lines, key=lambda one: one.box.height)
        return f"The letters of {quoted(line.text)}", line.ink, line.box
    matching = [
        line for line in picture.lines if things and len(hits(things, line.text)) == len(things)
    ]
    if not matching:
        return None
    line = min(matching, key=lambda one: len(one.text))
    behind = picture.measured.background
    on_panel = behind is not None and name_of(line.paper) != behind.name
    if on_panel and not re.search(r"\b(?:text|letters?|words?|font|writing)\b", question):
        return f"The box behind {quoted(line.text)}", line.paper, line.box
    return f"The letters of {quoted(line.text)}", line.ink, line.box


def _bar(picture: Evidence, question: str) -> Panel | None:
    """The panel along the edge of the picture that the question names."""
    width, height = picture.measured.width, picture.measured.height
    wide = [panel for panel in picture.page.panels if panel.box.width >= 0.9 * width]
    high = [panel for panel in picture.page.panels if panel.box.height >= 0.6 * height]
    if _TOP.search(question):
        top = [panel for panel in wide if panel.box.y <= 0.03 * height]
        return min(top, key=lambda panel: panel.box.height, default=None)
    if _BOTTOM.search(question):
        ends = [panel for panel in wide if panel.box.y + panel.box.height >= 0.97 * height]
        return min(ends, key=lambda panel: panel.box.height, default=None)
    if _SIDE.search(question):
        return min(high, key=lambda panel: panel.box.width, default=None)
    return None


def number_of(query: EyesQuestion) -> Finding | None:
    """How many shapes, controls, bars, rows or columns there are."""
    words = content(query.question)
    if not words or not re.search(r"\bhow many\b|\bnumber of\b|\bcount\b", query.question):
        return None
    for count in (_count_shapes, _count_controls, _count_charted, _count_rows):
        if (found := count(query, words)) is not None:
            return found
    return None


def _count_shapes(query: EyesQuestion, words: Sequence[str]) -> Finding | None:
    page = query.picture.page
    kinds = {_SHAPE_KINDS[word] for word in words if word in _SHAPE_KINDS}
    if not kinds and not _ANY_SHAPE & set(words):
        return None
    codes = [code.box for code in query.picture.measured.codes or ()]
    seen = [shape for shape in page.shapes if not any(_inside(shape.box, box) for box in codes)]
    if kind(query.picture).name == "photo" or not seen:
        return None
    colours = [word for word in tokens(query.question) if word in COLOUR_WORDS]
    found = [
        shape
        for shape in seen
        if (not kinds or shape.kind in kinds)
        and all(matches_word(name_of(shape.colour), word) for word in colours)
    ]
    return _number(found)


def _number(found: Sequence[Shape]) -> Finding:
    return Finding(
        answer=f"{len(found)}",
        evidence=tuple(
            f"{name_of(shape.colour).capitalize()} {shape.kind} {place(shape.box)}."
            for shape in found[:20]
        ),
        caveats=("Only shapes of one flat colour were counted.",),
    )


def _inside(inner: Box, outer: Box) -> bool:
    x, y = inner.x + inner.width / 2, inner.y + inner.height / 2
    return outer.x <= x <= outer.x + outer.width and outer.y <= y <= outer.y + outer.height


def _count_controls(query: EyesQuestion, words: Sequence[str]) -> Finding | None:
    kinds = {_CONTROL_KINDS[word] for word in words if word in _CONTROL_KINDS}
    controls = [one for one in query.picture.page.controls if one.kind in kinds]
    if not controls:
        return None
    if STATE.search(query.question):
        asked = _NEGATIVE.search(query.question) is None
        controls = [one for one in controls if _is_on(one) == asked]
    return Finding(answer=f"{len(controls)}", evidence=tuple(map(_where, controls[:20])))


def _count_charted(query: EyesQuestion, words: Sequence[str]) -> Finding | None:
    names = {"bar": "bar", "column": "bar", "slic": "slice", "segment": "slice", "sector": "slice"}
    kinds = {names[word] for word in words if word in names}
    found = [pair for pair in query.picture.page.values if pair.found in kinds]
    if not found:
        return None
    lines = (f"{quoted(pair.label)}: {quoted(pair.value)} {place(pair.box)}." for pair in found)
    return Finding(answer=f"{len(found)}", evidence=tuple(lines), caveats=(QUOTED_IS_DATA,))


def _count_rows(query: EyesQuestion, words: Sequence[str]) -> Finding | None:
    """Rows and columns, or the things that the first column of a table lists."""
    for table in query.picture.page.tables:
        header = table.rows[0] if table.header else ()
        body = table.rows[1:] if table.header else table.rows
        if "column" in words:
            return Finding(answer=f"{len(table.rows[0])}", evidence=(f"Table {place(table.box)}.",))
        name = header[0] if header else ""
        first = bool(hits(words, name))
        others = [word for word in words if word != "row" and not hits([word], name)]
        if others:
            body = tuple(row for row in body if any(hits(others, cell) for cell in row))
        if ("row" in words or first) and (body or not others):
            shown = (f"Row {quoted(' | '.join(row))}." for row in body[:20])
            return Finding(answer=f"{len(body)}", evidence=tuple(shown), caveats=(QUOTED_IS_DATA,))
    return None


def contrast(query: EyesQuestion) -> Finding | None:
    """Whether some text has too little contrast."""
    lines = query.picture.lines
    if not lines:
        return None
    weak = [line for line in lines if line.contrast < _needed(line)]
    if not weak:
        least = min(lines, key=lambda line: line.contrast)
        return Finding(
            answer="No, all text that was read has enough contrast.",
            evidence=(f"The least is {_ratio(least)}.",),
        )
    count = f"{len(weak)} of {len(lines)} lines {'has' if len(weak) == 1 else 'have'}"
    return Finding(
        answer=f"Yes, {count} low contrast: {', '.join(quoted(line.text) for line in weak[:2])}.",
        evidence=tuple(f"{_ratio(line)}, {place(line.box)}." for line in weak[:10]),
        caveats=("WCAG 2 asks for a ratio of 4.5, or 3 for large text.", QUOTED_IS_DATA),
    )


def _needed(line: TextLine) -> float:
    return _LARGE_CONTRAST if line.box.height >= _LARGE_PIXELS else _LEAST_CONTRAST


def _ratio(line: TextLine) -> str:
    return f"{quoted(line.text)} {line.ink} on {line.paper}: {line.contrast:.2f}"


_ERROR = re.compile(
    r"\berr[o0]rs?\b|\bfail(?:ed|ure|s)?\b|\binvalid\b|\bdenied\b|\brefused\b|\bcannot\b|\bcan't\b"
    r"|\bunable\b|\bnot found\b|\bwarning\b|\bplease enter\b|\bmust\b|\brequired\b|\btoo \w+\b"
    r"|\bexception\b|\bmissing\b|\bfatal\b|\bwrong\b|\bexpired\b|\bincorrect\b|\bERR_",
    re.IGNORECASE,
)
_PROBLEM_WORDS = word_set(
    "error errors wrong problem problems fail fails failed failing failure issue warning message "
    "line form went happened occurred code"
)


def problem(query: EyesQuestion) -> Finding | None:
    """The line that says what is wrong: red, or with a word such as failed or invalid."""
    if re.search(r"\bcode\b", query.question):
        return None
    wanted = content(query.question, besides=_PROBLEM_WORDS)
    scored: list[tuple[float, TextLine]] = []
    for number, line in enumerate(query.picture.lines):
        word = _ERROR.search(line.text)
        red = _is_red(line) and len(stems(line.text)) >= 2 and any(map(str.isalpha, line.text))
        if word or red:
            shared = len(hits(wanted, line.text))
            long = 0.5 * (len(stems(line.text)) >= 3)
            score = bool(word) + bool(red) + shared + long - 0.01 * number
            scored.append((score, line))
    if not scored:
        return None
    named = [line for line in query.picture.lines if hits(wanted, line.text)]
    if named and not any(line in named for _, line in scored):
        return None
    _, line = max(scored, key=lambda one: one[0])
    colour = f" in {name_of(line.ink)}" if _is_red(line) else ""
    return Finding(
        answer=cleaned(line.text, max_chars=200),
        evidence=(
            f"{quoted(line.text)}{colour} {place(line.box)}; confidence {line.confidence} %.",
        ),
        caveats=(QUOTED_IS_DATA,),
    )


def _is_red(line: TextLine) -> bool:
    return bool(line.ink) and matches_word(name_of(line.ink), "red")


_LANGUAGES = {
    "Python": (r"python", r"\.py\b", r"\bdef \w+\(|\bimport \w+|\bself\b"),
    "TypeScript": (r"typescript", r"\.tsx?\b", r"\binterface \w+ \{|: (?:string|number)\b"),
    "JavaScript": (r"javascript|node\.js", r"\.m?jsx?\b", r"\bconst \w+ =|\bfunction \w*\(|=>"),
    "Rust": (r"rust|cargo", r"\.rs\b", r"\bfn \w+\(|\blet mut\b"),
    "Go": (r"golang", r"\.go\b", r"\bfunc \w+\(|\bpackage \w+"),
    "Java": (r"\bjava\b", r"\.java\b", r"\bpublic (?:static|class|void)\b"),
    "C++": (r"c\+\+", r"\.(?:cpp|hpp|cc)\b", r"#include <\w+>|\bstd::"),
    "C": (r"\bgcc\b", r"\.[ch]\b", r"#include <\w+\.h>|\bint main\("),
    "C#": (r"c#|\.net\b", r"\.cs\b", r"\busing System\b|\bnamespace \w+"),
    "Ruby": (r"\bruby\b", r"\.rb\b", r"\bend\b.*\bdef\b|\bputs\b"),
    "PHP": (r"\bphp\b", r"\.php\b", r"<\?php|\$\w+ ="),
    "SQL": (r"\bsql\b", r"\.sql\b", r"\bSELECT\b.*\bFROM\b|\bINSERT INTO\b"),
    "HTML": (r"\bhtml\b", r"\.html?\b", r"</\w+>"),
    "CSS": (r"\bcss\b", r"\.css\b", r"\{[^}]*:[^}]*;"),
    "Shell": (r"\bbash\b|\bzsh\b", r"\.sh\b", r"^\$ "),
}


def code_language(query: EyesQuestion) -> Finding | None:
    """The programming language, by its name, the ending of a file, or its words."""
    text = "\n".join(query.picture.rows)
    scores = {
        name: sum(
            weight * min(2, len(re.findall(pattern, text, re.IGNORECASE | re.MULTILINE)))
            for weight, pattern in zip((2, 3, 1), patterns, strict=True)
        )
        for name, patterns in _LANGUAGES.items()
    }
    best, *others = sorted(scores, key=scores.__getitem__, reverse=True)
    if scores[best] < 2 or scores[best] == scores[others[0]]:
        return None
    return Finding(
        answer=best,
        evidence=("Names, file endings and words of the code in the text point to it.",),
        caveats=("It was inferred from the text.",),
    )
