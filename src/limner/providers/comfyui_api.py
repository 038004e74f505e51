"""ComfyUI's queue: a request -> a graph that waits, runs and leaves its pictures in the history."""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from msgspec.structs import replace

from limner.catalogue.images import ImageModel
from limner.errors import BadProviderImage, ProviderUnavailable
from limner.json_shapes import as_list, as_object
from limner.net.failures import MAX_MESSAGE_CHARS
from limner.net.http import MultipartForm, Upload
from limner.net.service import Service
from limner.net.sink import Sink
from limner.pictures.request import ImageRequest, RemoteJob
from limner.providers.comfyui_workflow import Workflow, upload_name, workflow_values
from limner.providers.jobs import JobProvider, JobStatus
from limner.providers.local_server import unknown_checkpoint

CREATE_TIMEOUT_S = 60.0
UPLOAD_TIMEOUT_S = 60.0
POLL_TIMEOUT_S = 10.0
# The history holds every graph that ran, and the queue every graph that waits.
MAX_LIST_BYTES = 32 * 1024 * 1024
HISTORY_ITEMS = 50
MARK = "limner"

_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


class ComfyJob(JobProvider):
    """One drawing by a ComfyUI.

    Args:
        service: its HTTP API.
        workflow: the graph to run.
        model: the row of the catalogue for the workflow's own model.
        client_id: the client that gets ComfyUI's progress messages.
    """

    def __init__(
        self, service: Service, workflow: Workflow, model: ImageModel, *, client_id: str
    ) -> None:
        super().__init__(service, artist="ComfyUI")
        self.facts: dict[str, Any] = {}
        self._workflow = workflow
        self._model = model
        self._client_id = client_id

    async def prepare(self, request: ImageRequest) -> ImageRequest:
        """Choose what the request leaves open, and upload the source pictures."""
        self._workflow.check(request, default_model=self._model.id)
        if "model" in self._workflow.places:
            request = replace(request, model=await self._checkpoint(request.model))
            self.facts["checkpoint"] = self.service.safe_text(request.model)
        if request.seed is None:
            request = replace(request, seed=secrets.randbelow(2**31))
        for source in (*request.sources[:1], *filter(None, [request.mask])):
            upload = Upload(
                field="image", filename=upload_name(source), mime=source.mime, data=source.data
            )
            # The name is a hash of the bytes, so a file of this name is the same picture.
            form = MultipartForm(fields={"type": "input", "overwrite": "true"}, uploads=[upload])
            await self._call("POST", "upload/image", form=form, read_timeout_s=UPLOAD_TIMEOUT_S)
        return request

    async def create(self, request: ImageRequest, sink: Sink) -> JobStatus:
        """Put the graph into the queue, once."""
        steps = int(self._model.qualities[request.quality])
        answer = await self._call(
            "POST",
            "prompt",
            body={
                "prompt": self._workflow.fill(workflow_values(request, steps=steps)),
                "client_id": self._client_id,
                "extra_data": {MARK: _mark(request)},
            },
            read_timeout_s=CREATE_TIMEOUT_S,
            paid=True,
        )
        job_id = as_object(answer).get("prompt_id")
        # The id becomes part of a URL.
        if not isinstance(job_id, str) or not _ID.fullmatch(job_id):
            raise BadProviderImage(
                "ComfyUI's response has no job id",
                extras={"provider": self.service.vendor.provider},
            )
        return JobStatus(job=self._job(job_id), ended=False)

    async def poll(self, job: RemoteJob, sink: Sink, *, timeout_s: float) -> JobStatus:
        """Get the status of a job."""
        if (ended := await self._ended_status(job, timeout_s)) is not None:
            return ended
        running, waiting = await self._queue(timeout_s)
        if job.remote_id in running:
            return JobStatus(job=job, ended=False)
        if job.remote_id in waiting:
            before = len(running) + waiting.index(job.remote_id)
            note = f"ComfyUI has {before} to draw before this"
            return JobStatus(job=job, ended=False, note=note)
        # It may have ended between the two requests.
        return await self._ended_status(job, timeout_s) or JobStatus(
            job=job, ended=True, failure=_gone(job)
        )

    async def cancel(self, job: RemoteJob) -> bool:
        """Remove a job from the queue, or stop it. It costs nothing in any case."""
        await self._order("queue", {"delete": [job.remote_id]})
        running, _ = await self._queue(POLL_TIMEOUT_S)
        if job.remote_id in running:
            # Older versions stop the running job, whichever it is. So check that it is ours.
            await self._order("interrupt", {"prompt_id": job.remote_id})
        return True

    async def find(self, request: ImageRequest, *, since_ms: int) -> list[RemoteJob]:
        """The jobs that may be that of a request whose id did not arrive."""
        wanted, found = _mark(request), list[RemoteJob]()
        queue = as_object(await self._call("GET", "queue", max_json_bytes=MAX_LIST_BYTES))
        history = as_object(
            await self._call(
                "GET", f"history?max_items={HISTORY_ITEMS}", max_json_bytes=MAX_LIST_BYTES
            )
        )
        ran = [as_object(entry).get("prompt") for entry in history.values()]
        for item in (
            *as_list(queue.get("queue_running")),
            *as_list(queue.get("queue_pending")),
            *ran,
        ):
            job_id, extra = _id_and_extra(item)
            created = extra.get("create_time")
            is_old = isinstance(created, int) and created < since_ms
            if extra.get(MARK) == wanted and _ID.fullmatch(job_id) and not is_old:
                found.append(self._job(job_id))
        return found

    async def _checkpoint(self, name: str) -> str:
        checkpoints = as_list(await self._call("GET", "models/checkpoints"))
        names = [known for known in checkpoints if isinstance(known, str)]
        if name in names:
            return name
        if name == self._model.id and names:
            return names[0]
        for known in names:
            if known.rpartition(".")[0] == name:
                return known
        raise unknown_checkpoint(
            name, map(self.service.safe_text, names), vendor=self.service.vendor
        )

    async def _ended_status(self, job: RemoteJob, timeout_s: float) -> JobStatus | None:
        """The status of an ended job; None if it has not ended."""
        history = await self._call(
            "GET",
            f"history/{job.remote_id}",
            read_timeout_s=min(timeout_s, POLL_TIMEOUT_S),
            max_json_bytes=MAX_LIST_BYTES,
        )
        entry = as_object(as_object(history).get(job.remote_id))
        if not entry:
            return None
        status = as_object(entry.get("status"))
        messages = dict(_messages(status.get("messages")))
        self.facts |= _gpu_seconds(messages)
        if status.get("status_str") == "error":
            return JobStatus(job=job, ended=True, failure=self._failure(messages))
        picture = next(_pictures(entry.get("outputs")), None)
        url = None if picture is None else f"{self.service.base_url}/view?{urlencode(picture)}"
        return JobStatus(job=job, ended=True, picture=url)

    def _failure(self, messages: Mapping[str, Mapping[str, Any]]) -> ProviderUnavailable:
        if "execution_interrupted" in messages:
            return ProviderUnavailable("A user stopped the drawing in ComfyUI")
        error = messages.get("execution_error", {})
        message, node = error.get("exception_message"), error.get("node_type")
        reason = self.service.safe_text(message).strip() if isinstance(message, str) else ""
        place = f" in {self.service.safe_text(node)[:60]}" if isinstance(node, str) else ""
        return ProviderUnavailable(
            f"ComfyUI failed{place}: {reason[:MAX_MESSAGE_CHARS] or 'no reason given'}"
        )

    async def _queue(self, timeout_s: float) -> tuple[list[str], list[str]]:
        """The ids of the running jobs and of the waiting jobs, the next first."""
        queue = as_object(
            await self._call(
                "GET",
                "queue",
                read_timeout_s=min(timeout_s, POLL_TIMEOUT_S),
                max_json_bytes=MAX_LIST_BYTES,
            )
        )
        running, waiting = (as_list(queue.get(f"queue_{name}")) for name in ("running", "pending"))
        waiting.sort(key=_number)
        running_ids, waiting_ids = (
            [_id_and_extra(item)[0] for item in items] for items in (running, waiting)
        )
        return running_ids, waiting_ids

    async def _call(
        self, method: str, path: str, *, read_timeout_s: float = POLL_TIMEOUT_S, **rest: Any
    ) -> Any:
        url = f"{self.service.base_url}/{path}"
        return await self.service.call(method, url, read_timeout_s=read_timeout_s, **rest)

    async def _order(self, path: str, body: Mapping[str, Any]) -> None:
        # The response is empty, which is not JSON.
        with contextlib.suppress(BadProviderImage):
            await self._call("POST", path, body=body)

    def _job(self, job_id: str) -> RemoteJob:
        return RemoteJob(remote_id=job_id, url=f"{self.service.base_url}/history/{job_id}")


def _mark(request: ImageRequest) -> dict[str, Any]:
    """What identifies a request among the jobs of the queue."""
    return {
        "prompt": request.prompt,
        "seed": request.seed,
        "width": request.width,
        "height": request.height,
    }


def _id_and_extra(item: object) -> tuple[str, Mapping[str, Any]]:
    """The id and extra data of a queue item, a list of number, id, graph, extra data and more."""
    parts: Sequence[Any] = as_list(item)
    if len(parts) < 4 or not isinstance(parts[1], str):
        return "", {}
    return parts[1], as_object(parts[3])


def _number(item: object) -> float:
    """The queue number; the smallest runs next."""
    number = next(iter(as_list(item)), None)
    return float(number) if isinstance(number, int | float) and abs(number) < 1e15 else 0.0


def _messages(listed: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for message in map(as_list, as_list(listed)):
        if len(message) == 2 and isinstance(message[0], str):
            yield message[0], as_object(message[1])


def _gpu_seconds(messages: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    start = messages.get("execution_start", {}).get("timestamp")
    end = messages.get("execution_success", {}).get("timestamp")
    if not isinstance(start, int) or not isinstance(end, int) or not 0 <= end - start < 1e9:
        return {}
    return {"gpu_seconds": (end - start) / 1000}


def _pictures(outputs: object) -> Iterator[dict[str, str]]:
    """The pictures that a graph has left: saved ones first, then previews."""
    found = [
        {name: picture.get(name, "") for name in ("filename", "subfolder", "type")}
        for node in as_object(outputs).values()
        for picture in map(as_object, as_list(as_object(node).get("images")))
    ]
    valid = [each for each in found if all(isinstance(part, str) for part in each.values())]
    yield from sorted(
        (each for each in valid if each["filename"]), key=lambda each: each["type"] != "output"
    )


def _gone(job: RemoteJob) -> ProviderUnavailable:
    return ProviderUnavailable(
        f"ComfyUI no longer knows job {job.remote_id}: it was removed, or ComfyUI was started again"
    )
