"""A service's good responses -> a stage of the provider contract, on a server on this machine."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, Self

import msgspec

from limner.testing.servers.http_server import (
    Gate,
    LocalServer,
    ReceivedRequest,
    Reply,
    bytes_reply,
    cut_short,
    json_reply,
)

BASE_PATH = "/v1"
PICTURE_PATH = "/files/picture.png"


class LocalStage:
    """Plays what the contract asks for, on a server that draws its ``picture``.

    Args:
        server: a running `LocalServer`.
        buying: the routes of the requests that buy a picture.
    """

    def __init__(self, server: Any, *, buying: str | tuple[str, ...]) -> None:
        self.base_url = f"{server.origin}{BASE_PATH}"
        self._server = server
        self._buying = (buying,) if isinstance(buying, str) else buying

    def draw(self, picture: bytes) -> None:
        """Answer as the service does on success, with this picture."""
        self._server.picture = picture
        self._server.file = bytes_reply(picture)

    def answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        """Answer with exactly this."""
        self._always(bytes_reply(body, status=status, headers=headers))

    def break_off(self, picture: bytes) -> None:
        """Start to answer as on success, and close the connection in the middle."""
        self.draw(picture)
        whole: Callable[[ReceivedRequest], Reply] = self._server.answer

        def answer(seen: ReceivedRequest) -> Reply:
            return cut_short(whole(seen))

        self._server.answer = answer

    def say_nothing(self) -> None:
        """Accept the request that buys the picture, and do not answer it."""
        self._always(Reply(hold=Gate()))

    def bought(self) -> int:
        """How many requests that buy a picture have arrived."""
        return sum(len(self._server.sent(route)) for route in self._buying)

    def carried(self, data: bytes) -> bool:
        """Whether a request contained these bytes, plain or in base64."""
        shapes = (data, base64.b64encode(data))
        return any(shape in seen.body for seen in self._server.requests for shape in shapes)

    def _always(self, reply: Reply) -> None:
        for route in self._buying:
            self._server.always(route, reply)


class StagePicture(msgspec.Struct, frozen=True, kw_only=True):
    """The picture of a good response, in each form that a response can have.

    Attributes:
        base64: its bytes as base64.
        data_url: its bytes as a ``data:`` URL.
        url: a URL of the stage that serves it.
    """

    base64: str
    data_url: str
    url: str


GoodResponse = Callable[[StagePicture], Mapping[str, object]]


class HttpStage(LocalStage):
    """A stage for a service that speaks JSON; it runs while its context is open.

    A request is named by its method and its path below the base URL: ``"POST /draw"``.

    Args:
        buys: the request that buys a picture.
        good: takes a `StagePicture`, and returns the good response of the service with it.
        also: the other requests of the service, such as the poll of a job, with good responses.
    """

    def __init__(
        self, buys: str, *, good: GoodResponse, also: Mapping[str, GoodResponse] | None = None
    ) -> None:
        self._running = _JsonServer({buys: good, **(also or {})})
        super().__init__(self._running, buying=buys)

    def __enter__(self) -> Self:
        self._running.__enter__()
        self.base_url = f"{self._running.origin}{BASE_PATH}"
        return self

    def __exit__(self, *exc: object) -> None:
        self._running.__exit__(*exc)


class _JsonServer(LocalServer):
    """Answers each request that it knows with JSON, and serves the picture."""

    picture = b""

    def __init__(self, good: Mapping[str, GoodResponse]) -> None:
        super().__init__()
        self._good = good

    def route(self, seen: ReceivedRequest) -> str:
        return f"{seen.method} {seen.path.removeprefix(BASE_PATH)}"

    def answer(self, seen: ReceivedRequest) -> Reply:
        if seen.path == PICTURE_PATH:
            return bytes_reply(self.picture, headers={"Content-Type": "image/png"})
        good = self._good.get(self.route(seen))
        if good is None:
            return super().answer(seen)
        encoded = base64.b64encode(self.picture).decode()
        picture = StagePicture(
            base64=encoded,
            data_url=f"data:image/png;base64,{encoded}",
            url=f"{self.origin}{PICTURE_PATH}",
        )
        return json_reply(good(picture))
