"""A conversation with a scripted model over one of the wires, and a service that draws."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.acceptance.conftest import AUTUMN, OPENAI_KEY, picture
from tests.servers.scripted import TALKERS, Line, scripted

from limner.agent.events import Event, TurnEnded
from limner.agents import Agent
from limner.client import Limner
from limner.settings import load
from limner.testing.servers.openai_server import OpenAIServer

TALKER_KEY = "talker-key-0123456789abcdef"


@dataclass
class Talk:
    """What one test talks with: the model, the service that draws, a home and a folder."""

    name: str
    model: Any
    drawer: OpenAIServer
    folder: Path
    flags: dict[str, Any] = field(default_factory=dict)
    limners: list[Limner] = field(default_factory=list)

    @property
    def cwd(self) -> Path:
        return self.folder / "work"

    @property
    def home(self) -> Path:
        return self.folder / "limner-home"

    @property
    def env(self) -> dict[str, str]:
        return {
            "HOME": str(self.folder),
            "LIMNER_HOME": str(self.home),
            "OPENAI_API_KEY": OPENAI_KEY,
            "OPENAI_BASE_URL": self.drawer.base_url,
            "TALKER_KEY": TALKER_KEY,
            "LIMNER_MODEL_ROLES_VISION": "limner/eyes",
        }

    def limner(self, **flags: Any) -> Limner:
        """The program, as if started now."""
        settings = load(env=self.env, cwd=self.cwd, flags=self.flags | flags)
        made = Limner(settings, env=self.env, cwd=self.cwd, clock=lambda: AUTUMN)
        self.limners.append(made)
        return made

    def agent(self, lim: Limner | None = None, **how: Any) -> Agent:
        return Agent(lim or self.limner(), **{"model": self.name, **how})

    def script(self, *lines: Line) -> None:
        """What the model says from now on."""
        self.model.script, self.model.turn_lines = list(lines), 0

    @property
    def asked(self) -> list[str]:
        """The requests that the model got, as text."""
        return [request.body.decode() for request in self.model.requests]


@contextmanager
def talk(name: str, folder: Path) -> Iterator[Talk]:
    """The servers of one conversation, and what they lead to."""
    kind, _ = TALKERS[name]
    with ExitStack() as stack:
        model = stack.enter_context(scripted(kind)())
        drawer = stack.enter_context(OpenAIServer(picture()))
        (folder / "work").mkdir()
        home = folder / "limner-home"
        home.mkdir()
        (home / "config.toml").write_text(
            f'[[models]]\nname = "{name}"\nbase_url = "{model.base_url}"\nkey_env = "TALKER_KEY"\n'
        )
        made = Talk(name=name, model=model, drawer=drawer, folder=folder)
        yield made
        for lim in made.limners:
            asyncio.run(lim.aclose())


async def happened(agent: Agent, words: str, **more: Any) -> list[Event]:
    """Everything that happens in a turn."""
    return [event async for event in agent.run(words, **more)]


def ending(events: list[Event]) -> TurnEnded:
    """How a turn ended."""
    last = events[-1]
    assert isinstance(last, TurnEnded)
    return last


def of(kind: type[Any], events: list[Event]) -> list[Any]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]
