"""Commits on branches -> a drawing with a lane for each branch, from left to right."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from limner.errors import InputInvalid
from limner.rendering.brush import Brush, Rect
from limner.rendering.canvas import mix, number
from limner.rendering.colours import readable_on
from limner.rendering.diagrams import draw_title, title_height
from limner.rendering.elements import Commit, CommitGraph
from limner.rendering.text import TextLines

# Sizes in parts of the text size.
_TEXT_WIDTH, _COLUMN, _GAP = 6.0, 2.6, 1.2
_DOT, _LINE, _PAD = 0.5, 0.16, 0.5
_TAG = 1.7
_MAX_ENLARGED = 1.4


class PlacedCommit(msgspec.Struct, frozen=True, kw_only=True):
    """A commit, its words, and its place from the upper left corner, in pixels."""

    commit: Commit
    parents: tuple[int, ...]
    text: TextLines
    lane: int
    x: float
    y: float
    half: float


class CommitPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Where the branches and their commits go, in pixels."""

    branches: tuple[str, ...]
    lanes: tuple[float, ...]
    commits: tuple[PlacedCommit, ...]
    width: float
    height: float


def measure_commits(graph: CommitGraph, brush: Brush, max_width: float) -> tuple[float, float]:
    """Width and height of the commits, scaled if they are too wide."""
    plan = _plan(graph, brush)
    scale = min(1.0, max_width / plan.width)
    return plan.width * scale, plan.height * scale + title_height(graph, brush, max_width)


def draw_commits(graph: CommitGraph, brush: Brush, box: Rect) -> None:
    """Draw the lines first, then the commits, then the names of the branches."""
    box = draw_title(graph, brush, box)
    plan = _plan(graph, brush)
    scale = min(_MAX_ENLARGED, box.width / plan.width, box.height / plan.height)
    brush = brush.with_style(base=brush.style.base * scale)
    plan = _plan(graph, brush)
    base, series = brush.style.base, brush.style.theme.series
    left, top = box.x + (box.width - plan.width) / 2, box.y + (box.height - plan.height) / 2
    colours = [series[lane % len(series)] for lane in range(len(plan.lanes))]
    places = [(left + one.x, top + one.y) for one in plan.commits]
    for one, end in zip(plan.commits, places, strict=True):
        for parent in one.parents:
            other = plan.commits[parent]
            # A branch that leaves has its own colour, and one that comes back too.
            is_merge = len(one.parents) > 1 and other.lane != one.lane
            colour = colours[other.lane if is_merge else one.lane]
            half = one.half if one.lane < other.lane else other.half
            path = _bend(places[parent], end, half, base * _GAP)
            brush.canvas.line(path, colour, base * _LINE)
    for one, place in zip(plan.commits, places, strict=True):
        _draw_commit(brush, one, place, colours[one.lane])
    for name, y, colour in zip(plan.branches, plan.lanes, colours, strict=True):
        wide = brush.width(name, "small", bold=True) + 2 * base * _PAD
        pill = Rect(left, top + y - base * 0.75, wide, base * 1.5)
        brush.panel(pill, colour, radius=base * 0.4)
        brush.line(*pill.middle, name, "small", bold=True, color=readable_on(colour))


def _plan(graph: CommitGraph, brush: Brush) -> CommitPlan:
    base = brush.style.base
    commits = graph.commits
    branches = tuple(dict.fromkeys([*graph.branches, *(one.branch for one in commits)]))
    texts = [
        brush.wrap(one.id if one.label is None else one.label, "small", base * _TEXT_WIDTH)
        for one in commits
    ]
    left = max(brush.width(name, "small", bold=True) for name in branches) + base * 2.4
    tags = [brush.width(one.tag, "small", bold=True) + base * 2 * _PAD for one in commits]
    lanes, y = list[float](), 0.0
    for name in branches:
        own = [(one, text) for one, text in zip(commits, texts, strict=True) if one.branch == name]
        y += base * (_TAG + _GAP if any(one.tag for one, _ in own) else _GAP)
        lanes.append(y)
        y += base * (_DOT + _GAP) + max((text.height for _, text in own), default=0.0)
    placed, x = list[PlacedCommit](), left
    for number_, (one, text, tag) in enumerate(zip(commits, texts, tags, strict=True)):
        half = max(text.width + base * _GAP, base * _COLUMN, tag if one.tag else 0.0) / 2
        lane = branches.index(one.branch)
        parents = _parents(commits, number_)
        place = PlacedCommit(
            commit=one, parents=parents, text=text, lane=lane, x=x + half, y=lanes[lane], half=half
        )
        placed.append(place)
        x += 2 * half
    return CommitPlan(
        branches=branches, lanes=tuple(lanes), commits=tuple(placed), width=x, height=y
    )


def _parents(commits: Sequence[Commit], place: int) -> tuple[int, ...]:
    """The numbers of the parents: those that are named, or else the last commit of the branch."""
    before, commit = commits[:place], commits[place]
    known = {one.id: number for number, one in enumerate(before)}
    if unknown := [name for name in commit.parents if name not in known]:
        raise InputInvalid(
            f"commit {commit.id!r} names {unknown[0]!r}, which is not before it", field="parents"
        )
    if commit.parents:
        return tuple(known[name] for name in commit.parents)
    same = [number for number, one in enumerate(before) if one.branch == commit.branch]
    return tuple(same[-1:] or ([place - 1] if place else []))


def _bend(start: tuple[float, float], end: tuple[float, float], half: float, gap: float) -> str:
    """A line that changes its lane in the gap beside the column of its upper commit."""
    (x0, y0), (x1, y1) = start, end
    if y0 == y1:
        return f"M{number(x0)} {number(y0)}H{number(x1)}"
    a = x0 + half - gap / 2 if y1 > y0 else x1 - half - gap / 2
    b = a + gap
    middle = number((a + b) / 2)
    curve = f"C{middle} {number(y0)} {middle} {number(y1)} {number(b)} {number(y1)}"
    return f"M{number(x0)} {number(y0)}H{number(a)}{curve}H{number(x1)}"


def _draw_commit(brush: Brush, one: PlacedCommit, place: tuple[float, float], colour: str) -> None:
    base, theme = brush.style.base, brush.style.theme
    x, y = place
    radius = base * _DOT
    edge = {"stroke": theme.background, "stroke_width": number(base * 0.14)}
    if one.commit.kind == "highlight":
        side = radius * 1.25
        brush.canvas.rect(x - side, y - side, 2 * side, 2 * side, colour, **edge)
        brush.canvas.rect(x - side / 2, y - side / 2, side, side, theme.background)
    else:
        brush.canvas.ellipse(x, y, radius, radius, colour, **edge)
    if one.commit.kind == "reverse":
        arm = number(radius * 0.5)
        cross = f"M{number(x)} {number(y)}m-{arm} -{arm}l{arm} {arm}l{arm} {arm}"
        cross += f"M{number(x)} {number(y)}m{arm} -{arm}l-{arm} {arm}l-{arm} {arm}"
        brush.canvas.line(cross, theme.background, base * 0.14)
    elif len(one.parents) > 1:
        brush.canvas.ellipse(x, y, radius * 0.5, radius * 0.5, theme.background)
    words = Rect(x - base * _TEXT_WIDTH, y + base * (_DOT + 0.25), base * 2 * _TEXT_WIDTH, 1)
    brush.lines(words, one.text, align="center")
    if one.commit.tag:
        wide = brush.width(one.commit.tag, "small", bold=True) + base * 2 * _PAD
        tag = Rect(x - wide / 2, y - base * (_DOT + 0.3 + 1.4), wide, base * 1.4)
        fill = mix(theme.background, theme.series[5 % len(theme.series)], 0.35)
        brush.panel(tag, fill, radius=base * 0.25, stroke=mix(fill, theme.ink, 0.3))
        ink = readable_on(fill, dark=theme.ink, light=theme.background)
        brush.line(*tag.middle, one.commit.tag, "small", bold=True, color=ink)
