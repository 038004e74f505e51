"""The stage of the public provider contract, on any of our servers."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from limner.testing.servers.http_server import Gate, Reply, bytes_reply, cut_short


class LocalStage:
    """Plays what the contract says; ``buying`` names the routes of the requests that are paid."""

    def __init__(self, server: Any, *, buying: str | tuple[str, ...]) -> None:
        self.base_url = f"{server.origin}/v1"
        self._server = server
        self._buying = (buying,) if isinstance(buying, str) else buying

    def draw(self, picture: bytes) -> None:
        self._server.picture = picture
        self._server.file = bytes_reply(picture)

    def answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self._always(bytes_reply(body, status=status, headers=headers))

    def break_off(self, picture: bytes) -> None:
        self.draw(picture)
        whole = self._server.answer
        self._server.answer = lambda seen: cut_short(whole(seen))

    def say_nothing(self) -> None:
        self._always(Reply(hold=Gate()))

    def bought(self) -> int:
        return sum(len(self._server.sent(route)) for route in self._buying)

    def carried(self, data: bytes) -> bool:
        shapes = (data, base64.b64encode(data))
        return any(shape in seen.body for seen in self._server.requests for shape in shapes)

    def _always(self, reply: Reply) -> None:
        for route in self._buying:
            self._server.always(route, reply)
