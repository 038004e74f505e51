"""A model that follows a script: each question gets the next saying, over any of the wires."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.servers.chat_server import ChatServer

from limner.testing.servers.anthropic_server import AnthropicServer
from limner.testing.servers.gemini_server import GeminiServer
from limner.testing.servers.http_server import ReceivedRequest, Reply
from limner.testing.servers.model_server import ModelAnswer, ModelServer, ScriptedCall
from limner.testing.servers.responses_server import ResponsesServer

Line = ModelAnswer | Reply | Callable[[ReceivedRequest], ModelAnswer | Reply]

# One model for each wire: its server, and the variables that lead to it.
TALKERS: dict[str, tuple[type[ModelServer], str]] = {
    "openai/gpt-5.4": (ResponsesServer, "OPENAI"),
    "groq/talker": (ChatServer, "GROQ"),
    "anthropic/claude-opus-4-8": (AnthropicServer, "ANTHROPIC"),
    "google/gemini-3.8-flash": (GeminiServer, "GEMINI"),
}


def says(*pieces: str, **more: Any) -> ModelAnswer:
    """The model speaks."""
    return ModelAnswer(pieces=pieces, **more)


def calls(*made: tuple[str, str], words: str = "", start: int = 1, **more: Any) -> ModelAnswer:
    """The model calls tools, by name and JSON arguments."""
    named = tuple(
        ScriptedCall(name=name, arguments=arguments, call_id=f"call_{number}")
        for number, (name, arguments) in enumerate(made, start=start)
    )
    return ModelAnswer(pieces=(words,) if words else (), calls=named, **more)


def scripted(kind: type[ModelServer]) -> type[Any]:
    """A server of that kind which follows ``script``, and says the last line again at its end."""

    class Scripted(kind):  # pyright: ignore[reportGeneralTypeIssues] - made for each wire
        script: list[Line]

        def __init__(self) -> None:
            super().__init__()
            self.script = []
            self.turn_lines = 0

        def answer(self, seen: ReceivedRequest) -> Reply:
            problem = self.objection(seen)
            if problem is not None:
                return problem
            line = self.script[min(self.turn_lines, len(self.script) - 1)]
            self.turn_lines += 1
            told = line(seen) if callable(line) else line
            return told if isinstance(told, Reply) else self.streamed(told, seen.json())

    return Scripted
