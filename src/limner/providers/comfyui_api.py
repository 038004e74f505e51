"""ComfyUI's queue: a graph goes in, waits, runs, and leaves its pictures in the history."""

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
from limner.net.request_body import MultipartForm, Upload
from limner.net.service import Service
from limner.net.sink import Sink
from limner.pictures.request import ImageRequest, RemoteJob
from limner.providers.comfyui_workflow import Workflow, upload_name, values_of
from limner.providers.jobs import JobStatus
from limner.providers.local_server import unknown_checkpoint

CREATE_TIMEOUT_S = 60.0
UPLOAD_TIMEOUT_S = 60.0
LOOK_TIMEOUT_S = 10.0
# The history holds every graph that was run, and the queue every graph that waits.
MAX_LIST_BYTES = 32 * 1024 * 1024
HISTORY_ITEMS = 50
MARK = "limner"

_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


class ComfyApi:
    """One drawing by a ComfyUI; implements `limner.providers.jobs.JobApi`.

    Args:
        service: where it is.
        workflow: the graph to run.
        model: the row of the catalogue for the workflow's own model.
        client_id: whom ComfyUI sends its news to.
    """

    artist = "ComfyUI"

    def __init__(
        self, service: Service, workflow: Workflow, model: ImageModel, *, client_id: str
    ) -> None:
        self.service = service
        self.facts: dict[str, Any] = {}
        self._workflow = workflow
        self._model = model
        self._client_id = client_id

    async def prepare(self, request: ImageRequest) -> ImageRequest:
        """Choose what the request leaves open, and bring the pictures to draw from."""
        self._workflow.check(request, default_model=self._model.id)
        if "model" in self._workflow.places:
            request = replace(request, model=await self._checkpoint(request.model))
            self.facts["checkpoint"] = self.service.for_reader(request.model)
        if request.seed is None:
            request = replace(request, seed=secrets.randbelow(2**31))
        for source in (*request.sources[:1], *filter(None, [request.mask])):
            upload = Upload(
                field="image", filename=upload_name(source), mime=source.mime, data=source.data
            )
            # The name says what is in it, so whatever has the name is the same picture.
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
                "prompt": self._workflow.filled(values_of(request, steps=steps)),
                "client_id": self._client_id,
                "extra_data": {MARK: _mark(request)},
            },
            read_timeout_s=CREATE_TIMEOUT_S,
            paid=True,
        )
        job_id = as_object(answer).get("prompt_id")
        # The id becomes part of an address.
        if not isinstance(job_id, str) or not _ID.fullmatch(job_id):
            raise BadProviderImage(
                "ComfyUI's answer is not that of a queue",
                extras={"provider": self.service.vendor.provider},
            )
        return JobStatus(job=self._job(job_id), ended=False)

    async def look(self, job: RemoteJob, sink: Sink, *, timeout_s: float) -> JobStatus:
        """See how a job stands."""
        if (ended := await self._ended(job, timeout_s)) is not None:
            return ended
        running, waiting = await self._queue(timeout_s)
        if job.remote_id in running:
            return JobStatus(job=job, ended=False)
        if job.remote_id in waiting:
            before = len(running) + waiting.index(job.remote_id)
            note = f"ComfyUI has {before} to draw before this"
            return JobStatus(job=job, ended=False, note=note)
        # It may have ended between the two questions.
        return await self._ended(job, timeout_s) or JobStatus(
            job=job, ended=True, failure=_gone(job)
        )

    async def cancel(self, job: RemoteJob) -> bool:
        """Take a job out of the queue, or stop it; whatever becomes of it, it costs nothing."""
        await self._tell("queue", {"delete": [job.remote_id]})
        running, _ = await self._queue(LOOK_TIMEOUT_S)
        if job.remote_id in running:
            # Older versions stop whatever is running: so ours has to be what is.
            await self._tell("interrupt", {"prompt_id": job.remote_id})
        return True

    async def find(self, request: ImageRequest, *, since_ms: int) -> RemoteJob | None:
        """The job of a request whose id never arrived, or None."""
        wanted = _mark(request)
        if request.seed is None:
            return None
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
                return self._job(job_id)
        return None

    async def _checkpoint(self, name: str) -> str:
        listed = as_list(await self._call("GET", "models/checkpoints"))
        names = [one for one in listed if isinstance(one, str)]
        if name in names:
            return name
        if name == self._model.id and names:
            return names[0]
        for one in names:
            if one.rpartition(".")[0] == name:
                return one
        known = map(self.service.for_reader, names)
        raise unknown_checkpoint(
            name, known, title="ComfyUI", provider=self.service.vendor.provider
        )

    async def _ended(self, job: RemoteJob, timeout_s: float) -> JobStatus | None:
        """How a job ended; None where it has not."""
        history = await self._call(
            "GET",
            f"history/{job.remote_id}",
            read_timeout_s=min(timeout_s, LOOK_TIMEOUT_S),
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
            return ProviderUnavailable("Somebody stopped the drawing in ComfyUI")
        error = messages.get("execution_error", {})
        said, node = error.get("exception_message"), error.get("node_type")
        words = self.service.for_reader(said).strip() if isinstance(said, str) else ""
        where = f" in {self.service.for_reader(node)[:60]}" if isinstance(node, str) else ""
        return ProviderUnavailable(
            f"ComfyUI failed{where}: {words[:MAX_MESSAGE_CHARS] or 'no reason given'}"
        )

    async def _queue(self, timeout_s: float) -> tuple[list[str], list[str]]:
        """The ids of the jobs that run, and of those that wait, the next first."""
        queue = as_object(
            await self._call(
                "GET",
                "queue",
                read_timeout_s=min(timeout_s, LOOK_TIMEOUT_S),
                max_json_bytes=MAX_LIST_BYTES,
            )
        )
        running, waiting = (as_list(queue.get(f"queue_{name}")) for name in ("running", "pending"))
        waiting.sort(key=_number)
        return [_id_and_extra(one)[0] for one in running], [
            _id_and_extra(one)[0] for one in waiting
        ]

    async def _call(
        self, method: str, path: str, *, read_timeout_s: float = LOOK_TIMEOUT_S, **rest: Any
    ) -> Any:
        url = f"{self.service.base_url}/{path}"
        return await self.service.call(method, url, read_timeout_s=read_timeout_s, **rest)

    async def _tell(self, path: str, body: Mapping[str, Any]) -> None:
        # The answer to an order is empty, and so no JSON.
        with contextlib.suppress(BadProviderImage):
            await self._call("POST", path, body=body)

    def _job(self, job_id: str) -> RemoteJob:
        return RemoteJob(remote_id=job_id, url=f"{self.service.base_url}/history/{job_id}")


def _mark(request: ImageRequest) -> dict[str, Any]:
    """What a request is known by among the jobs of the queue."""
    return {
        "prompt": request.prompt,
        "seed": request.seed,
        "width": request.width,
        "height": request.height,
    }


def _id_and_extra(item: object) -> tuple[str, Mapping[str, Any]]:
    """Of a job in the queue: a list of number, id, graph, further data and more."""
    parts: Sequence[Any] = as_list(item)
    if len(parts) < 4 or not isinstance(parts[1], str):
        return "", {}
    return parts[1], as_object(parts[3])


def _number(item: object) -> float:
    """The smaller, the sooner."""
    number = next(iter(as_list(item)), None)
    return float(number) if isinstance(number, int | float) and abs(number) < 1e15 else 0.0


def _messages(told: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for message in map(as_list, as_list(told)):
        if len(message) == 2 and isinstance(message[0], str):
            yield message[0], as_object(message[1])


def _gpu_seconds(messages: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    began = messages.get("execution_start", {}).get("timestamp")
    ended = messages.get("execution_success", {}).get("timestamp")
    if not isinstance(began, int) or not isinstance(ended, int) or not 0 <= ended - began < 1e9:
        return {}
    return {"gpu_seconds": (ended - began) / 1000}


def _pictures(outputs: object) -> Iterator[dict[str, str]]:
    """The pictures a graph has left, those that are kept before those that are only shown."""
    found = [
        {name: picture.get(name, "") for name in ("filename", "subfolder", "type")}
        for node in as_object(outputs).values()
        for picture in map(as_object, as_list(as_object(node).get("images")))
    ]
    named = [one for one in found if all(isinstance(part, str) for part in one.values())]
    yield from sorted(
        (one for one in named if one["filename"]), key=lambda one: one["type"] != "output"
    )


def _gone(job: RemoteJob) -> ProviderUnavailable:
    return ProviderUnavailable(
        f"ComfyUI no longer knows job {job.remote_id}: it was removed, or ComfyUI was started again"
    )
