"""What programs showed the model -> rows, and the page with the table of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec
from tests.ecosystem.pages import ROOT, Page
from tests.ecosystem.scripted_model import ScriptedModel

RESULTS = Path(__file__).parent / "results.json"
PAGE = ROOT / "docs" / "ecosystem.md"
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

- "Its `mcp list`" says whether the agent's own list of servers has limner.
- "Tools" counts the tools of limner that the model can call, of those that limner offers.
- "Slow picture" is another run, in which the image service takes so many seconds. It must be paid
  once, and the model must get it, by the same call or by `image_job`.
- "Approval" is two more runs, of the program in the page's section about approval. limner asks, and
  the user says no, then yes.

"""
RACE = """
## Codex on a busy machine

Codex starts its first turn without the tools of a server that is not ready. `codex exec` ran {runs}
times with the installed entry while every core ({cores}) was busy, and {runs} times with an entry
without `required = true`.

| Codex | entry | runs in which the first request had limner's tools | date |
|---|---|--:|---|
"""
CLIENTS = """
## Official clients

The official Python SDK (`mcp`) of four releases, each in an environment of its own, calls
`limner mcp` over stdio.

| SDK | revision | tools | `image_generate` | `inspect_image` | wrong call | unknown tool | date |
|---|---|--:|---|---|---|---|---|
"""
COLUMNS = {
    "program": "---",
    "version": "---",
    "API": "---",
    "its `mcp list`": "---",
    "tools": "--:",
    "picture": "---",
    "where": "---",
    "base64 in text": "--:",
    "error reported": "---",
    "paid for": "--:",
    "cost reported": "--:",
    "slow picture": "---",
    "approval": "---",
    "date": "---",
}


class Race(msgspec.Struct, frozen=True, kw_only=True):
    """In how many runs of Codex the first request had limner's tools, on a busy machine."""

    version: str
    entry: str
    runs: int
    there: int
    cores: int
    day: str

    def line(self) -> str:
        """The row as Markdown."""
        return f"| {self.version} | {self.entry} | {self.there} of {self.runs} | {self.day} |"


class SdkClient(msgspec.Struct, frozen=True, kw_only=True):
    """What an official client got."""

    version: str
    revision: str
    tools: int
    offered: int
    drawn: str
    inspected: str
    refused: str
    unknown: str
    day: str = ""

    @property
    def is_good(self) -> bool:
        """Whether the client got a picture, an answer and two errors."""
        return (
            self.tools == self.offered
            and self.drawn.startswith("text, image/")
            and self.inspected == "answered"
            and self.refused == "INPUT_INVALID"
            and "Unknown tool" in self.unknown
        )

    def line(self) -> str:
        """The row as Markdown."""
        cells = (
            self.version,
            self.revision,
            f"{self.tools} of {self.offered}",
            self.drawn,
            self.inspected,
            self.refused,
            self.unknown,
            self.day,
        )
        return f"| {' | '.join(cells)} |"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What one program showed the model in its last request."""

    page: str
    title: str
    link: str
    version: str
    wire: str
    tools: int = 0
    offered: int = 0
    picture: str | None = None
    place: str | None = None
    leaked_chars: int = 0
    error_reported: bool = False
    drawn: int = 0
    cost_usd: float = 0
    is_known_drop: bool = False
    is_listed: bool | None = None
    slow: str = ""
    approval: str = ""
    day: str = ""

    @classmethod
    def of(
        cls,
        page: Page,
        version: str,
        model: ScriptedModel,
        *,
        link: str,
        offered: Collection[str],
        cost_usd: float,
    ) -> Row:
        """The row of a program that has ended; ``offered`` names the tools that it should have."""
        row = cls(page=page.name, title=page.title, link=link, version=version, wire="none")
        if not model.seen:
            return row
        last = model.seen[-1]
        shown = [one.words() for one in last.pictures]
        return msgspec.structs.replace(
            row,
            wire=WIRES[last.wire],
            tools=len(last.tools_of(offered)),
            offered=len(offered),
            picture=" and ".join(shown) or None,
            place=("result" if last.pictures[0].in_result else "message") if shown else None,
            leaked_chars=max(one.leaked_chars for one in model.seen),
            error_reported=last.saw_error,
            is_known_drop=not shown and WIRES[last.wire] in page.drops,
            drawn=model.drawn,
            cost_usd=round(cost_usd, 6),
        )

    @property
    def key(self) -> tuple[str, str]:
        """What tells the rows apart."""
        return self.title, self.wire

    @property
    def is_good(self) -> bool:
        """Whether the model saw the one picture, which was paid once and whose cost is known."""
        seen = self.is_known_drop or (self.picture is not None and " and " not in self.picture)
        is_paid = self.drawn == 1 and self.cost_usd > 0
        has_all = self.tools == self.offered and self.is_listed is not False
        return seen and is_paid and has_all and self.leaked_chars == 0

    def line(self) -> str:
        """The row as Markdown."""
        cells = (
            f"[{self.title}]({self.link})",
            self.version,
            self.wire,
            {True: "yes", False: "**no**", None: ""}[self.is_listed],
            f"{self.tools} of {self.offered}",
            self.picture or ("none: its path" if self.is_known_drop else "**none**"),
            self.place or "",
            self.leaked_chars,
            "yes" if self.error_reported else "no",
            self.drawn,
            f"${self.cost_usd:.4f}",
            self.slow,
            self.approval,
            self.day,
        )
        return f"| {' | '.join(map(str, cells))} |"


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """What was recorded."""

    rows: tuple[Row, ...] = ()
    races: tuple[Race, ...] = ()
    clients: tuple[SdkClient, ...] = ()

    def with_rows(self, rows: Sequence[Row]) -> Results:
        """Replace the rows of the pages that were run; notes about other runs stay."""
        notes = {row.key: (row.slow, row.approval) for row in self.rows}
        pages = {row.page for row in rows}
        new = [
            msgspec.structs.replace(row, slow=slow, approval=approval)
            for row in rows
            for slow, approval in [notes.get(row.key, ("", ""))]
        ]
        kept = [row for row in self.rows if row.page not in pages]
        merged = sorted([*kept, *new], key=lambda row: (row.page, row.title, row.wire))
        return msgspec.structs.replace(self, rows=tuple(merged))

    def with_notes(self, field: str, notes: Mapping[tuple[str, str], str]) -> Results:
        """Note in rows how another run of the same program went."""
        rows = [
            msgspec.structs.replace(row, **{field: notes.get(row.key, getattr(row, field))})
            for row in self.rows
        ]
        return msgspec.structs.replace(self, rows=tuple(rows))


def read_results() -> Results:
    """The results of earlier runs."""
    if not RESULTS.exists():
        return Results()
    return msgspec.json.decode(RESULTS.read_bytes(), type=Results)


def write_results(results: Results) -> None:
    """Write the results, and the page with their tables."""
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(results)) + b"\n")
    PAGE.write_text(page_of(results), encoding="utf-8")


def page_of(results: Results) -> str:
    """The page."""
    head = f"| {' | '.join(COLUMNS)} |\n|{'|'.join(COLUMNS.values())}|\n"
    page = HEAD + head + _lines(results.rows)
    if results.races:
        first = results.races[0]
        page += RACE.format(runs=first.runs, cores=first.cores) + _lines(results.races)
    return page + CLIENTS + _lines(results.clients) if results.clients else page


def _lines(rows: Sequence[Row] | Sequence[Race] | Sequence[SdkClient]) -> str:
    return "".join(f"{row.line()}\n" for row in rows)
