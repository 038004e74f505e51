"""A client's tools -> tools that a model can call, and a search tool for the deferred ones."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, cast

from limner.frontends.appserver.tool_specs import ToolSpec, names_for_model
from limner.tools.base import Outcome, Tool, ToolContext

SEARCH = "tool_search"
TOOLSET = "client"
MAX_RESULT_CHARS = 40_000
MAX_FOUND = 8
MAX_NAMED = 50

DESCRIPTION = (
    "Find tools that are not in your list yet. Describe in a few words what you want to do. Tools "
    "that match come back with their description and parameters, and can be called from then on."
)
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What the tool should do."}},
    "required": ["query"],
}

Call = Callable[[ToolSpec, Any, ToolContext], Awaitable[Outcome]]
"""Sends a call with its arguments to the client, and waits for the answer."""

OnFound = Callable[[frozenset[str]], Awaitable[None]]
"""Gets the names of the deferred tools that were found, to store them."""

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+|[^\W\d_]+")
# A word in the name of a tool counts more than one in its description.
_NAME_WEIGHT, _DESCRIPTION_WEIGHT = 3, 1


class ClientTools:
    """The tools of one thread's client.

    Args:
        specs: the tools as the client describes them.
        call: sends a call to the client.
        found: the deferred tools that the model has found before, by the model's names for them.
        on_found: is called when the model has found more of them.
        timeout_s: how long a call may take; None means the timeout from the settings.
    """

    def __init__(
        self,
        specs: Sequence[ToolSpec],
        *,
        call: Call,
        found: Collection[str] = (),
        on_found: OnFound,
        timeout_s: float | None = None,
    ) -> None:
        self.named = names_for_model(specs)
        self._deferred = {name for name, spec in self.named.items() if spec.deferred}
        self._found = self._deferred & set(found)
        self._call, self._on_found, self._timeout_s = call, on_found, timeout_s

    def tools(self) -> list[Tool]:
        """Every tool; a deferred tool is available after it was found."""
        tools = [self._tool(name, spec) for name, spec in self.named.items()]
        return [*tools, self._search_tool()] if self._deferred else tools

    def _tool(self, name: str, spec: ToolSpec) -> Tool:
        async def run(arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
            return await self._call(spec, arguments, context)

        return Tool(
            name=name,
            description=spec.description,
            schema=spec.parameters,
            run=run,
            toolset=TOOLSET,
            max_result_chars=MAX_RESULT_CHARS,
            timeout_s=self._timeout_s,
            available=partial(self._is_known, name),
            foreign=True,
        )

    def _is_known(self, name: str) -> bool:
        return name not in self._deferred or name in self._found

    def _search_tool(self) -> Tool:
        async def run(arguments: Mapping[str, Any], _: ToolContext) -> Outcome:
            found = self._search(arguments["query"])
            if not set(found) <= self._found:
                self._found |= set(found)
                await self._on_found(frozenset(self._found))
            tools = [
                {"name": n, "description": spec.description, "parameters": spec.parameters}
                for n, spec in found.items()
            ]
            if tools:
                return Outcome(value={"tools": tools})
            return Outcome(value={"tools": [], "there_are": sorted(self._deferred)[:MAX_NAMED]})

        name = SEARCH
        while name in self.named:
            name += "_"
        return Tool(
            name=name,
            description=DESCRIPTION,
            schema=SCHEMA,
            run=run,
            toolset=TOOLSET,
            max_result_chars=MAX_RESULT_CHARS,
        )

    def _search(self, query: str) -> dict[str, ToolSpec]:
        """The tools that match the query, the best first."""
        wanted = _words_of(query)
        scores = {name: _score(wanted, self.named[name]) for name in sorted(self._deferred)}
        if query.strip() in scores:
            scores[query.strip()] = 2 * _NAME_WEIGHT * (len(wanted) + 1)
        best = sorted((name for name in scores if scores[name]), key=lambda name: -scores[name])
        return {name: self.named[name] for name in best[:MAX_FOUND]}


def _score(wanted: Collection[str], spec: ToolSpec) -> int:
    """How well a tool matches the query."""
    named = _words_of(f"{spec.namespace or ''} {spec.name}")
    properties: object = spec.parameters.get("properties")
    members = list(cast("dict[str, Any]", properties)) if isinstance(properties, dict) else []
    described = _words_of(" ".join([spec.description, spec.namespace_description, *members]))
    return sum(
        _NAME_WEIGHT * _has(named, word) or _DESCRIPTION_WEIGHT * _has(described, word)
        for word in wanted
    )


def _has(words: Collection[str], wanted: str) -> bool:
    """Whether a word is there, in one form or another."""
    return any(word == wanted or _same_stem(word, wanted) for word in words)


def _same_stem(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) >= 4 and long.startswith(short)


def _words_of(text: str) -> set[str]:
    # Short words such as "a" and "of" are in every description.
    return {word.lower() for word in _WORD.findall(text) if len(word) > 2}
