"""What programs showed the model -> rows, and the page with the table of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

import msgspec
from tests.ecosystem.pages import ROOT, Page
from tests.ecosystem.scripted_model import ScriptedModel

RESULTS = Path(__file__).parent / "results.json"
TABLE = ROOT / "docs" / "ecosystem.md"
WIRES = {
    "chat": "Chat Completions",
    "responses": "Responses",
    "messages": "Messages",
    "gemini": "generateContent",
}
HEAD = """\
# What reaches the model

`make ecosystem` runs the program of each page in an environment of its own, against a server that
speaks the APIs of the models and records every request. The image service is scripted too, so the
program pays for its picture. The first call of the model has a wrong size: the framework must
report the error to the model, and the model calls again. Then it gets the picture. Agents run
`limner mcp`, as `limner mcp install` sets it up.

"Slow picture" is another run, in which the image service takes so many seconds. It must be paid
once, and the model must get it, by the same call or by `image_job`.

"""
COLUMNS = {
    "program": "---",
    "version": "---",
    "API": "---",
    "tools": "--:",
    "picture": "---",
    "where": "---",
    "base64 in text": "--:",
    "error reported": "---",
    "paid for": "--:",
    "cost reported": "--:",
    "slow picture": "---",
    "date": "---",
}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What one program showed the model in its last request."""

    page: str
    title: str
    link: str
    version: str
    wire: str
    tools: int = 0
    picture: str | None = None
    place: str | None = None
    leaked_chars: int = 0
    error_reported: bool = False
    drawn: int = 0
    cost_usd: float = 0
    is_known_drop: bool = False
    slow: str = ""
    day: str = ""

    @classmethod
    def of(
        cls, page: Page, version: str, model: ScriptedModel, *, link: str, cost_usd: float
    ) -> Row:
        """The row of a program that has ended."""
        row = cls(page=page.name, title=page.title, link=link, version=version, wire="none")
        if not model.seen:
            return row
        last = model.seen[-1]
        shown = [one.words() for one in last.pictures]
        return msgspec.structs.replace(
            row,
            wire=WIRES[last.wire],
            # Codex has a tool of its own for pictures.
            tools=sum("image" in name for name in {*last.tools, *last.announced} - {"view_image"}),
            picture=" and ".join(shown) or None,
            place=("result" if last.pictures[0].in_result else "message") if shown else None,
            leaked_chars=max(one.leaked_chars for one in model.seen),
            error_reported=last.saw_error,
            is_known_drop=not shown and WIRES[last.wire] in page.drops,
            drawn=model.drawn,
            cost_usd=round(cost_usd, 6),
        )

    @property
    def is_good(self) -> bool:
        """Whether the model saw the one picture, which was paid once and whose cost is known."""
        seen = self.is_known_drop or (self.picture is not None and " and " not in self.picture)
        return seen and self.leaked_chars == 0 and self.drawn == 1 and self.cost_usd > 0

    def line(self) -> str:
        """The row as Markdown."""
        cells = (
            f"[{self.title}]({self.link})",
            self.version,
            self.wire,
            self.tools,
            self.picture or ("none: its path" if self.is_known_drop else "**none**"),
            self.place or "",
            self.leaked_chars,
            "yes" if self.error_reported else "no",
            self.drawn,
            f"${self.cost_usd:.4f}",
            self.slow,
            self.day,
        )
        return f"| {' | '.join(map(str, cells))} |"


def read_rows() -> list[Row]:
    """The rows of earlier runs."""
    return msgspec.json.decode(RESULTS.read_bytes(), type=list[Row]) if RESULTS.exists() else []


def write_slow(slow: Mapping[tuple[str, str], str]) -> None:
    """Note how a slow picture arrived, by page and API."""
    rows = [
        msgspec.structs.replace(row, slow=slow.get((row.page, row.wire), row.slow))
        for row in read_rows()
    ]
    _write(rows)


def write_rows(earlier: Sequence[Row], rows: Sequence[Row], *, today: date) -> None:
    """Replace the rows of the pages that were run, and write the table."""
    run = {row.page for row in rows}
    slow = {(row.page, row.wire): row.slow for row in earlier}
    new = [
        msgspec.structs.replace(row, day=today.isoformat(), slow=slow.get((row.page, row.wire), ""))
        for row in rows
    ]
    kept = [row for row in earlier if row.page not in run]
    merged = sorted([*kept, *new], key=lambda row: (row.page, row.wire))
    _write(merged)


def _write(rows: Sequence[Row]) -> None:
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(rows)) + b"\n")
    TABLE.write_text(table(rows), encoding="utf-8")


def table(rows: Sequence[Row]) -> str:
    """The page."""
    head = [f"| {' | '.join(COLUMNS)} |", f"|{'|'.join(COLUMNS.values())}|"]
    return HEAD + "\n".join([*head, *(row.line() for row in rows)]) + "\n"
