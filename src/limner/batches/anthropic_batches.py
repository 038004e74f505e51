"""Anthropic's Message Batches: requests -> a batch -> its results.

A batch has no name of ours at Anthropic. If the answer to its creation is lost, it is found by the
names of its requests, which its results have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any

from limner.batches.remote_api import (
    CLOCK_SLACK_S,
    MAX_PAGES,
    BatchApi,
    LineResult,
    NotDecided,
    RemoteStatus,
    RemoteSubmission,
    count,
    json_lines,
)
from limner.json_shapes import as_list, as_object
from limner.net.json_pictures import LastPicture

PATH = "/messages/batches"
UNANSWERED = ("errored", "canceled", "expired")


class AnthropicBatches(BatchApi):
    """``/v1/messages/batches``."""

    wanted = frozenset()

    async def upload(self, submission: RemoteSubmission) -> str:
        """Nothing: the requests are a part of the creation."""
        return ""

    async def create(self, submission: RemoteSubmission, input_file: str) -> RemoteStatus:
        """Create the batch with its requests."""
        requests = [({"custom_id": one.key}, "params", one.body) for one in submission.requests]
        body = b'{"requests":[%b]}' % json_lines(requests)[:-1].replace(b"\n", b",")
        return self._status(await self._ask("POST", PATH, body=body, paid=True))

    async def find(self, tag: str, keys: Sequence[str], *, since_s: float) -> RemoteStatus | None:
        """Look for the names of the requests in the results of the newest batches."""
        path, undecided = f"{PATH}?limit=100", False
        for _ in range(MAX_PAGES):
            page = await self._ask("GET", path)
            batches = [as_object(one) for one in as_list(page.get("data"))]
            for batch in batches:
                if _created_s(batch) < since_s - CLOCK_SLACK_S:
                    break
                status = self._status(batch)
                if _size(batch) != len(keys):
                    continue
                if not status.ended:
                    undecided = True
                elif await self._has(status, frozenset(keys)):
                    return status
            oldest_s = _created_s(batches[-1]) if batches else 0
            if page.get("has_more") is not True or oldest_s < since_s - CLOCK_SLACK_S:
                break
            path = f"{PATH}?limit=100&after_id={self._id(page.get('last_id'))}"
        if undecided:
            raise NotDecided
        return None

    async def status(self, remote_id: str) -> RemoteStatus:
        """The batch now."""
        return self._status(await self._ask("GET", f"{PATH}/{remote_id}"))

    async def cancel(self, remote_id: str) -> None:
        """Ask Anthropic to stop."""
        await self._ask("POST", f"{PATH}/{remote_id}/cancel")

    def result_url(self, result: str) -> str:
        """The results of a batch."""
        return f"{self.service.base_url}{PATH}/{result}/results"

    def read_line(self, line: Mapping[str, Any], picture: LastPicture) -> LineResult:
        """A line of the results."""
        key, result = self._id(line.get("custom_id")), as_object(line.get("result"))
        if result.get("type") == "succeeded":
            return LineResult(key=key, response=as_object(result.get("message")), picture=picture)
        error = as_object(as_object(result.get("error")).get("error"))
        return LineResult(
            key=key,
            picture=picture,
            code=self._text(error.get("type") or result.get("type")) or "failed",
            message=self._text(error.get("message")),
        )

    async def _has(self, status: RemoteStatus, keys: frozenset[str]) -> bool:
        """Whether the first result of a batch is that of one of these requests."""
        async with aclosing(self.results(status)) as results:
            async for result in results:
                return isinstance(result, LineResult) and result.key in keys
        return False

    def _status(self, batch: Mapping[str, Any]) -> RemoteStatus:
        remote_id = self._id(batch.get("id"))
        counts = as_object(batch.get("request_counts"))
        word = self._text(batch.get("processing_status"))
        is_gone = isinstance(batch.get("archived_at"), str)
        return RemoteStatus(
            remote_id=remote_id,
            word=word,
            ended=word == "ended",
            done=count(counts.get("succeeded")),
            failed=sum(count(counts.get(name)) for name in UNANSWERED),
            results=(remote_id,) if word == "ended" and not is_gone else (),
            is_uncertain=is_gone,
        )


def _size(batch: Mapping[str, Any]) -> int:
    """How many requests a batch has: the counts of all states together."""
    return sum(count(number) for number in as_object(batch.get("request_counts")).values())


def _created_s(batch: Mapping[str, Any]) -> float:
    try:
        return datetime.fromisoformat(str(batch.get("created_at"))).timestamp()
    except ValueError:
        return 0.0
