"""Requests -> one batch at a vendor -> the response to each: the protocol of the batch APIs.

A vendor has its own file. It knows the paths and the JSON of its API; the order of the steps and
the money are in `cheap_lane`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from importlib import import_module
from typing import Any, ClassVar, cast

import msgspec

from limner.content import Discreet
from limner.errors import BadProviderImage, LimnerError
from limner.json_shapes import as_object
from limner.net.json_pictures import LastPicture, picture_lines
from limner.net.service import Service, send_with_retries

ASK_TIMEOUT_S = 60.0
FILE_TIMEOUT_S = 300.0
MAX_PAGES = 20
# Each part of a response may have a signature of the reasoning, of a megabyte or more.
MAX_LINE_BYTES = 16 * 1024 * 1024
# The clock of the vendor may differ from the local one.
CLOCK_SLACK_S = 300

APIS = {
    "openai": "limner.batches.openai_batches:OpenAIBatches",
    "anthropic": "limner.batches.anthropic_batches:AnthropicBatches",
    "gemini": "limner.batches.gemini_batches:GeminiBatches",
}


class LineRequest(Discreet, frozen=True, kw_only=True):
    """One request of a batch: our name for it, and its JSON."""

    unshown = ("body",)

    key: str
    body: bytes


class RemoteSubmission(msgspec.Struct, frozen=True, kw_only=True):
    """What one batch asks for. All its requests go to one endpoint and one model.

    Attributes:
        tag: our name for the batch, which is found by it if the answer to its creation is lost.
        path: the endpoint, as the vendor's batch API names it.
        model: the vendor's id of the model.
        requests: the requests.
    """

    tag: str
    path: str
    model: str
    requests: Sequence[LineRequest]


class RemoteStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A batch at a vendor now.

    Attributes:
        remote_id: the vendor's name for it.
        word: the vendor's word for its state.
        ended: whether its results are final.
        done: the requests that succeeded.
        failed: the requests that failed, expired or were cancelled.
        results: where the results are, in the words of the vendor.
        failure: why the vendor refused the batch as a whole.
        is_uncertain: requests may have been charged whose responses are not in the results.
    """

    remote_id: str
    word: str
    ended: bool
    done: int = 0
    failed: int = 0
    results: tuple[str, ...] = ()
    failure: str | None = None
    is_uncertain: bool = False


class LineResult(msgspec.Struct, frozen=True, kw_only=True):
    """The response to one request, or why there is none.

    ``response`` has the mark ``PICTURE`` in place of the picture, which is in ``picture`` until the
    next result is read. A request with a ``code`` was not charged.
    """

    key: str
    response: Mapping[str, Any] | None = None
    picture: LastPicture
    code: str | None = None
    message: str | None = None


class NotDecided(Exception):
    """It cannot be found out yet whether a batch exists."""


class BatchApi(ABC):
    """One vendor's batch API.

    Attributes:
        wanted: the paths of pictures in a line of the results.
    """

    wanted: ClassVar[frozenset[str]]

    def __init__(self, service: Service) -> None:
        self.service = service

    @abstractmethod
    async def upload(self, submission: RemoteSubmission) -> str:
        """Upload the requests as a file, which is free; returns its name at the vendor."""

    @abstractmethod
    async def create(self, submission: RemoteSubmission, input_file: str) -> RemoteStatus:
        """Create the batch; from then on its requests may be charged."""

    @abstractmethod
    async def find(self, tag: str, keys: Sequence[str], *, since_s: float) -> RemoteStatus | None:
        """The batch with this tag and these requests; None if the vendor has none.

        Raises:
            NotDecided: the vendor cannot say yet.
        """

    @abstractmethod
    async def status(self, remote_id: str) -> RemoteStatus:
        """The batch now."""

    @abstractmethod
    async def cancel(self, remote_id: str) -> None:
        """Ask the vendor to stop; requests that were answered are charged."""

    @abstractmethod
    def result_url(self, result: str) -> str:
        """The URL of a file of results."""

    @abstractmethod
    def read_line(self, line: Mapping[str, Any], picture: LastPicture) -> LineResult:
        """A line of the results."""

    async def results(self, status: RemoteStatus) -> AsyncGenerator[LineResult | LimnerError]:
        """The results, one by one as they arrive; an error stands for a line that is not valid.

        Raises:
            ProviderError: they cannot be fetched.
        """
        for result in status.results:
            url = self.result_url(result)
            async with (
                self.service.transfer("GET", url, read_timeout_s=FILE_TIMEOUT_S) as response,
                aclosing(response.aiter_bytes()) as chunks,
                aclosing(
                    picture_lines(chunks, wanted=self.wanted, max_json_bytes=MAX_LINE_BYTES)
                ) as lines,
            ):
                async for line in lines:
                    if line.problem is not None:
                        yield line.problem
                    else:
                        yield self.read_line(as_object(line.body), line.picture)

    async def _ask(
        self, method: str, path: str, *, body: Any = None, paid: bool = False
    ) -> Mapping[str, Any]:
        async def attempt() -> Mapping[str, Any]:
            answer = await self.service.call(
                method,
                f"{self.service.base_url}{path}",
                body=body,
                read_timeout_s=FILE_TIMEOUT_S if paid else ASK_TIMEOUT_S,
                paid=paid,
            )
            return as_object(answer)

        return await send_with_retries(attempt, self.service.clock)

    def _text(self, value: Any) -> str:
        """A text of the vendor that is safe to show; empty if it is none."""
        return self.service.safe_text(value) if isinstance(value, str) else ""

    def _id(self, value: Any) -> str:
        """The vendor's name of something.

        Raises:
            BadProviderImage: it is missing.
        """
        if isinstance(value, str) and value:
            return value
        title = self.service.vendor.title
        raise BadProviderImage(f"{title} answered without the name of what it made")


def json_lines(requests: Sequence[tuple[Mapping[str, str], str, bytes]]) -> bytes:
    """JSON Lines: the members of each line, and the last one as JSON that is ready."""
    return b"".join(
        b"%b,%b:%b}\n" % (msgspec.json.encode(head)[:-1], msgspec.json.encode(name), body)
        for head, name, body in requests
    )


def count(value: Any) -> int:
    """A number of requests in a report; 0 if it is none. Google writes it as a text."""
    text = str(value)
    return int(text) if text.isdecimal() else 0


def batch_api(api: str, service: Service) -> BatchApi:
    """The batch API of a vendor."""
    module, _, name = APIS[api].partition(":")
    build = cast("type[BatchApi]", getattr(import_module(module), name))
    return build(service)
