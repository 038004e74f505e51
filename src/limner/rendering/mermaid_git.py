"""A git graph in Mermaid -> commits on branches."""

from __future__ import annotations

import re

from limner.rendering.diagram_source import check_element
from limner.rendering.elements import Commit, CommitGraph
from limner.rendering.mermaid_lines import MermaidSource, plain_text

_OPTION = re.compile(r'(id|tag|type|order|parent|msg)\s*:\s*("[^"]*"|\S+)')
_HINT = 'Write: commit id: "fix" tag: "v1", branch develop, checkout develop, or merge develop.'
_KINDS = {"HIGHLIGHT": "highlight", "REVERSE": "reverse"}
_MAX_COMMITS = 120


def parse_git_graph(lines: MermaidSource) -> CommitGraph:
    """Parse a git graph."""
    parser = _Git(lines)
    if lines.header.rstrip(": ").endswith((" TB", " BT")):
        lines.ignored["the direction"] = None
    for line in lines:
        parser.take(line)
    if not parser.commits:
        lines.refuse("the graph has no commits", _HINT)
    return check_element(
        CommitGraph(branches=list(parser.heads), commits=parser.commits, title=lines.title)
    )


class _Git:
    """The branches with their last commits, and the branch that is checked out."""

    def __init__(self, lines: MermaidSource) -> None:
        self.lines = lines
        self.heads: dict[str, str] = {"main": ""}
        self.branch = "main"
        self.commits: list[Commit] = []

    def take(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        options = {found[1]: plain_text(found[2]) for found in _OPTION.finditer(rest)}
        name = plain_text(_OPTION.sub("", rest))
        if word == "commit":
            self._commit(options, [self.heads[self.branch]], name or options.get("msg", ""))
        elif word == "branch" and name:
            self.heads[name] = self.heads[self.branch]
            self.branch = name
        elif word in ("checkout", "switch"):
            self._known(name)
            self.branch = name
        elif word == "merge":
            self._known(name)
            self._commit(options, [self.heads[self.branch], self.heads[name]], "")
        elif word == "cherry-pick":
            text = f"cherry-pick {options.get('id', '')}".strip()
            tag = {"tag": options["tag"]} if "tag" in options else {}
            self._commit(tag, [self.heads[self.branch]], text)
        else:
            self.lines.refuse("this is not a line of a git graph", _HINT)

    def _known(self, name: str) -> None:
        if name not in self.heads:
            self.lines.refuse(f"there is no branch {name[:40]!r}", f"Write: branch {name[:40]}")

    def _commit(self, options: dict[str, str], parents: list[str], label: str) -> None:
        if len(self.commits) >= _MAX_COMMITS:
            self.lines.refuse(f"more than {_MAX_COMMITS} commits", "Draw the part that matters.")
        name = options.get("id") or f"commit {len(self.commits) + 1}"
        if any(one.id == name for one in self.commits):
            name = f"{name} {len(self.commits) + 1}"
        self.commits.append(
            Commit(
                id=name,
                label=options.get("id", label),
                branch=self.branch,
                parents=[parent for parent in dict.fromkeys(parents) if parent],
                tag=options.get("tag", ""),
                kind=_KINDS.get(options.get("type", ""), "normal"),  # pyright: ignore[reportArgumentType]
            )
        )
        self.heads[self.branch] = name
