"""ComfyUI: a workflow filled in, queued, waited for, listened to, called off."""

from __future__ import annotations

import asyncio
import functools
import json
import time as wall
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.providers.drawn import impatient
from tests.servers.comfyui_server import ComfyServer, invalid_prompt, preview
from tests.servers.samples import PICTURE
from tests.settings.trusting import trust_folder

from limner.errors import (
    BadProviderImage,
    ProviderBadRequest,
    ProviderUnavailable,
    SettingsError,
    UserError,
)
from limner.pictures.request import ImageRequest, Progress, Receipt, RemoteJob, SourceImage
from limner.providers import comfyui
from limner.providers.base import Connection, Resumable
from limner.providers.comfyui import ComfyUI
from limner.testing import FakeClock, FakeDesk, FakeSink, ProviderContract
from limner.testing.servers.http_server import (
    Gate,
    Reply,
    cut_short,
    dropped,
    html_reply,
    json_reply,
)
from limner.testing.stage import LocalStage

REQUEST = ImageRequest(prompt="a fox", model="workflow", width=1001, height=768, seed=42)
SOURCE = SourceImage(handle="ab" * 32, mime="image/jpeg", width=64, height=64, data=b"a source")
MASK = SourceImage(handle="cd" * 32, mime="image/png", width=64, height=64, data=b"a mask")
JOB_ID = "00000000-0000-4000-8000-000000000001"
EXTRAS = {"seed": 42, "checkpoint": "sd_xl_base_1.0.safetensors", "gpu_seconds": 3.5}


class ComfyStage(LocalStage):
    def break_off(self, picture: bytes) -> None:
        answer = json_reply({"prompt_id": JOB_ID, "number": 0, "node_errors": {}})
        self._server.always("create", cut_short(answer))


class TestComfyUI(ProviderContract):
    spec = replace(comfyui.SPEC, build=functools.partial(impatient(ComfyUI), listens=False))
    can_find_jobs = True

    @contextmanager
    def stage(self) -> Iterator[LocalStage]:
        with ComfyServer(b"") as server:
            stage = ComfyStage(server, buying="create")
            stage.base_url = server.base_url
            yield stage


class TestComfyUIWithItsSocket(TestComfyUI):
    spec = replace(comfyui.SPEC, build=functools.partial(impatient(ComfyUI), listens=True))


@pytest.fixture
def server() -> Iterator[ComfyServer]:
    with ComfyServer(PICTURE) as server:
        yield server


class Drawn:
    """One drawing, and everything around it."""

    def __init__(self, connection: Connection, **rest: Any) -> None:
        self.provider = ComfyUI(connection, **({"listens": False} | rest))
        self.sink, self.desk = FakeSink(), FakeDesk()

    async def generate(self, request: ImageRequest = REQUEST) -> Receipt:
        return await self.provider.generate(request, self.sink, self.desk.callbacks)


@pytest.fixture
def comfy(server: ComfyServer, connect: Callable[..., Connection]) -> Callable[..., Drawn]:
    def build(*, listens: bool = False, **variables: str) -> Drawn:
        connection = connect(server.base_url, key="", variables=variables)
        return Drawn(connection, listens=listens)

    return build


def job(server: ComfyServer, job_id: str = JOB_ID) -> RemoteJob:
    return RemoteJob(remote_id=job_id, url=f"{server.base_url}/history/{job_id}")


def graph(server: ComfyServer) -> dict[str, Any]:
    (seen,) = server.sent("create")
    return seen.json()["prompt"]


async def test_a_prompt_is_filled_into_a_graph_that_any_checkpoint_draws(
    server: ComfyServer, comfy: Callable[..., Drawn]
) -> None:
    drawn = comfy()
    receipt = await drawn.generate(replace(REQUEST, negative_prompt="fog"))
    assert receipt == Receipt(prompt_used="a fox", cost_nano=0, extras=EXTRAS)
    assert bytes(drawn.sink.data) == PICTURE
    assert drawn.desk.jobs == [job(server)]
    filled = graph(server)
    assert filled["checkpoint"]["inputs"] == {"ckpt_name": "sd_xl_base_1.0.safetensors"}
    assert filled["prompt"]["inputs"] == {"text": "a fox", "clip": ["checkpoint", 1]}
    assert filled["negative_prompt"]["inputs"]["text"] == "fog"
    assert filled["empty"]["inputs"] == {"width": 1008, "height": 768, "batch_size": 1}
    assert filled["sampled"]["inputs"] == {
        "model": ["checkpoint", 0],
        "positive": ["prompt", 0],
        "negative": ["negative_prompt", 0],
        "latent_image": ["empty", 0],
        "seed": 42,
        "steps": 20,
        "cfg": 7.0,
        "sampler_name": "euler",
        "scheduler": "normal",
        "denoise": 1.0,
    }
    (file,) = server.sent("file")
    assert file.query == {"filename": ["limner_00001_.png"], "type": ["output"]}


@pytest.mark.parametrize("masked", [False, True])
async def test_a_picture_to_change_is_brought_before_the_graph_that_names_it(
    masked: bool, server: ComfyServer, comfy: Callable[..., Drawn]
) -> None:
    request = replace(REQUEST, sources=(SOURCE,), mask=MASK if masked else None, quality="hd")
    assert (await comfy().generate(request)).cost_nano == 0
    filled, uploads = graph(server), server.sent("upload")
    assert [b"a source" in seen.body or b"a mask" in seen.body for seen in uploads] == [True] * (
        1 + masked
    )
    assert all(b'name="overwrite"\r\n\r\ntrue' in seen.body for seen in uploads)
    name = filled["source"]["inputs"]["image"]
    assert f'name="image"; filename="{name}"'.encode() in uploads[0].body
    assert name.endswith(".jpg")
    assert filled["sampled"]["inputs"]["latent_image"] == ["masked" if masked else "encoded", 0]
    assert (filled["sampled"]["inputs"]["steps"], filled["sampled"]["inputs"]["denoise"]) == (
        40,
        0.75,
    )
    if masked:
        assert filled["mask"]["inputs"]["image"].encode() in uploads[1].body
        assert filled["marked"]["inputs"]["channel"] == "red"


@pytest.mark.parametrize("name", ["flux/dev-fp8.safetensors", "flux/dev-fp8"])
async def test_a_model_is_a_checkpoint_by_its_name(
    name: str, server: ComfyServer, comfy: Callable[..., Drawn]
) -> None:
    receipt = await comfy().generate(replace(REQUEST, model=name))
    assert graph(server)["checkpoint"]["inputs"] == {"ckpt_name": "flux/dev-fp8.safetensors"}
    assert receipt.extras["checkpoint"] == "flux/dev-fp8.safetensors"


@pytest.mark.parametrize(
    ("name", "names", "hint"),
    [
        ("sdxl_base", None, "Did you mean 'sd_xl_base_1.0.safetensors'?"),
        ("workflow", [], "It has none: put a checkpoint into its models folder."),
    ],
)
async def test_a_checkpoint_that_is_not_there_is_refused_before_anything_is_queued(
    name: str, names: Any, hint: str, server: ComfyServer, comfy: Callable[..., Drawn]
) -> None:
    server.names = server.names if names is None else names
    with pytest.raises(ProviderBadRequest) as caught:
        await comfy().generate(replace(REQUEST, model=name))
    assert (caught.value.hint, server.sent("create")) == (hint, [])


OWN = {
    "6": {
        "class_type": "CLIPTextEncode",
        "inputs": {"text": "{{prompt}}, by night, {{width}} wide"},
    },
    "25": {"class_type": "RandomNoise", "inputs": {"noise_seed": "{{ seed }}", "kept": ["6", 0]}},
}


@pytest.fixture
def own(tmp_path: Path) -> Callable[[Any], str]:
    def write(workflow: Any) -> str:
        path = tmp_path / "workflow.json"
        path.write_text(workflow if isinstance(workflow, str) else json.dumps(workflow))
        return str(path)

    return write


async def test_a_workflow_of_ones_own_is_filled_in_once_and_as_it_stands(
    own: Callable[[Any], str], server: ComfyServer, comfy: Callable[..., Drawn]
) -> None:
    hostile = 'a fox", {{seed}} {{model}} \\ "'
    drawn = comfy(COMFYUI_WORKFLOW=own(OWN))
    receipt = await drawn.generate(replace(REQUEST, prompt=hostile))
    assert graph(server) == {
        "6": {
            "class_type": "CLIPTextEncode",
            "inputs": {"text": f"{hostile}, by night, 1008 wide"},
        },
        "25": {"class_type": "RandomNoise", "inputs": {"noise_seed": 42, "kept": ["6", 0]}},
    }
    assert (receipt.extras, server.sent("models")) == ({"seed": 42, "gpu_seconds": 3.5}, [])


@pytest.mark.parametrize(
    ("workflow", "said"),
    [
        ("no json", "not a workflow in ComfyUI's API format"),
        ("[" * 5000, "not a workflow in ComfyUI's API format"),
        ({"nodes": [], "links": []}, "not a workflow in ComfyUI's API format"),
        ({"1": {"class_type": "X", "inputs": {}}}, "has no {{prompt}}"),
        (
            {"1": {"class_type": "X", "inputs": {"a": "{{prompt}} {{lora}}"}}},
            "unknown placeholders: lora",
        ),
        (" " * (1024 * 1024 + 1), "more than 1,048,576 bytes"),
    ],
)
async def test_a_workflow_that_cannot_be_used_is_a_wrong_setting(
    workflow: Any, said: str, own: Callable[[Any], str], comfy: Callable[..., Drawn]
) -> None:
    with pytest.raises(SettingsError) as caught:
        await comfy(COMFYUI_WORKFLOW=own(workflow)).generate()
    assert said in caught.value.message


async def test_a_workflow_of_the_working_folder_is_used_only_as_it_was_trusted(
    own: Callable[[Any], str],
    comfy: Callable[..., Drawn],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = Path(own(OWN)).name
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIMNER_HOME", str(tmp_path / "home"))
    with pytest.raises(SettingsError, match="a file of the working folder, which is not trusted"):
        await comfy(COMFYUI_WORKFLOW=name).generate()
    trust_folder(tmp_path / "home", tmp_path, name)
    await comfy(COMFYUI_WORKFLOW=name).generate()
    own(json.dumps(OWN) + " ")
    with pytest.raises(SettingsError, match="a file of the working folder, which is not trusted"):
        await comfy(COMFYUI_WORKFLOW=name).generate()


async def test_a_workflow_that_is_not_there_is_a_wrong_setting(
    tmp_path: Path, comfy: Callable[..., Drawn]
) -> None:
    with pytest.raises(
        SettingsError, match="COMFYUI_WORKFLOW names a workflow that cannot be read"
    ):
        await comfy(COMFYUI_WORKFLOW=str(tmp_path / "gone.json")).generate()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": "flux/dev-fp8"}, "has no place for the model."),
        ({"negative_prompt": "fog"}, "has no place for the negative prompt."),
    ],
)
async def test_what_a_workflow_has_no_place_for_is_refused(
    changes: Any, said: str, own: Callable[[Any], str], comfy: Callable[..., Drawn]
) -> None:
    with pytest.raises(UserError) as caught:
        await comfy(COMFYUI_WORKFLOW=own(OWN)).generate(replace(REQUEST, **changes))
    assert caught.value.message.endswith(said)


async def test_a_workflow_for_changing_pictures_is_named_apart(
    own: Callable[[Any], str], server: ComfyServer, comfy: Callable[..., Drawn]
) -> None:
    loading = {
        "1": {"class_type": "LoadImage", "inputs": {"image": "{{image}}", "p": "{{prompt}}"}}
    }
    path = own(loading)
    edit = replace(REQUEST, sources=(SOURCE,))
    await comfy(COMFYUI_EDIT_WORKFLOW=path).generate(edit)
    assert graph(server)["1"]["inputs"]["image"].startswith("limner-")
    with pytest.raises(UserError, match="draws from a picture, and there is none"):
        await comfy(COMFYUI_WORKFLOW=path).generate()
    with pytest.raises(UserError, match="no place for the mask"):
        await comfy(COMFYUI_EDIT_WORKFLOW=path).generate(replace(edit, mask=MASK))


async def test_without_a_socket_the_queue_is_looked_at(
    server: ComfyServer, comfy: Callable[..., Drawn]
) -> None:
    server.looks, server.waiting = 2, 1
    server.add("somebody-elses")
    server._looked["somebody-elses"] = -100
    drawn = comfy()
    assert (await drawn.generate()).extras == EXTRAS
    assert [told.message for told in drawn.desk.progress] == [
        "ComfyUI is drawing",
        "ComfyUI has 1 to draw before this",
        "ComfyUI is drawing",
    ]
    assert server.sent("ws") == []


class Listening:
    """A drawing that is listened to; its pauses would last for ever."""

    def __init__(
        self, server: ComfyServer, connect: Callable[..., Connection], **changes: Any
    ) -> None:
        self.server = server
        clock = FakeClock()

        async def sleep(seconds: float) -> None:
            await asyncio.Event().wait()

        clock.sleep = sleep  # type: ignore[method-assign]
        self.drawn = Drawn(connect(server.base_url, key="", clock=clock.clock), listens=True)
        gate = Gate()
        server.script("create", replace(server.answer_create(), hold=gate))
        self.drawing = asyncio.ensure_future(self.drawn.generate(replace(REQUEST, **changes)))
        self._gate = gate

    async def begin(self) -> None:
        await self.server.wait_until("ws")
        self._gate.open()
        while not self.drawn.desk.progress:
            await asyncio.wait([self.drawing], timeout=0.01)

    def say(self, kind: str, **data: Any) -> None:
        self.server.say({"type": kind, "data": {"prompt_id": JOB_ID} | data})

    async def heard(self, count: int) -> list[Progress]:
        while len(self.drawn.desk.progress) < count + 1:
            await asyncio.wait([self.drawing], timeout=0.01)
        return self.drawn.desk.progress[1:]


async def test_what_is_said_on_the_socket_is_told_and_ends_the_waiting(
    server: ComfyServer, connect: Callable[..., Connection]
) -> None:
    listening = Listening(server, connect, partial_pictures=1)
    await listening.begin()
    server.say(
        preview(b"too early"), b"", b"\x00\x00\x00\x01", b"\x00\x00\x00\x03odd text of a node"
    )
    server.say({"type": "progress", "data": {"prompt_id": "another", "value": 1, "max": 2}})
    listening.say("progress", value=5, max=20)
    server.say(preview(b"not yet"))
    for odd in ({"value": "x", "max": 2}, {"value": 1, "max": 0}, {}, {"value": 10**400, "max": 1}):
        listening.say("progress", **odd)
    listening.say("progress", value=10, max=20)
    server.say(preview(b"half a fox"), preview(b"one too many"))
    listening.say("progress", value=30, max=20)
    drawing = "ComfyUI is drawing"
    assert await listening.heard(4) == [
        Progress(message=drawing, elapsed_s=0.0, fraction=0.25),
        Progress(message=drawing, elapsed_s=0.0, fraction=0.5),
        Progress(message=drawing, elapsed_s=0.0, fraction=0.5, picture=b"half a fox"),
        Progress(message=drawing, elapsed_s=0.0, fraction=1.0),
    ]
    listening.say("executing", node="3")
    listening.say("executing", node=None)
    assert await listening.drawing == Receipt(prompt_used="a fox", cost_nano=0, extras=EXTRAS)
    (socket,), (create,) = server.sent("ws"), server.sent("create")
    assert socket.query == {"clientId": [create.json()["client_id"]]}


@pytest.mark.parametrize(
    "answer", [dropped(), html_reply(), json_reply({}, status=403)], ids=["dropped", "page", "403"]
)
async def test_a_socket_that_fails_costs_nothing_but_the_news(
    answer: Reply, server: ComfyServer, comfy: Callable[..., Drawn]
) -> None:
    server.always("ws", answer)
    server.looks = 1
    assert (await comfy(listens=True).generate()).extras == EXTRAS


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        (
            [
                (
                    "execution_error",
                    {"exception_message": "CUDA out of memory\n", "node_type": "KSampler"},
                )
            ],
            "ComfyUI failed in KSampler: CUDA out of memory",
        ),
        ([("execution_interrupted", {})], "A user stopped the drawing in ComfyUI"),
        ([("execution_error", {"exception_message": 7})], "ComfyUI failed: no reason given"),
        ([], "ComfyUI failed: no reason given"),
    ],
)
async def test_a_graph_that_fails_says_why(
    messages: Any, said: str, server: ComfyServer, comfy: Callable[..., Drawn]
) -> None:
    server.status, server.messages = "error", messages
    with pytest.raises(ProviderUnavailable) as caught:
        await comfy().generate()
    assert (caught.value.message, caught.value.may_be_billed) == (said, False)
    assert caught.value.extras == {"provider": "comfyui", "remote_id": JOB_ID}


async def test_a_graph_that_is_not_accepted_says_what_is_wrong_with_it(
    server: ComfyServer, comfy: Callable[..., Drawn]
) -> None:
    server.always("create", invalid_prompt("* KSampler 3:\n  - Value not in list: sampler_name"))
    with pytest.raises(ProviderBadRequest, match="Value not in list: sampler_name") as caught:
        await comfy().generate()
    assert caught.value.extras["provider_code"] == "prompt_outputs_failed_validation"


@pytest.mark.parametrize(
    "outputs",
    [None, [], {}, {"9": {"text": ["x"]}}, {"9": {"images": [{"filename": 7}, {}, "odd"]}}],
)
async def test_a_graph_that_leaves_no_picture_is_a_bad_answer(
    outputs: Any, server: ComfyServer, comfy: Callable[..., Drawn]
) -> None:
    server.outputs = outputs
    with pytest.raises(BadProviderImage, match="without a picture"):
        await comfy().generate()


@pytest.mark.parametrize("hostile", ["../../system_stats", "a/b", "", 7, None, "x" * 200])
async def test_an_id_that_would_change_the_address_is_a_bad_answer(
    hostile: Any, server: ComfyServer, comfy: Callable[..., Drawn]
) -> None:
    server.always("create", json_reply({"prompt_id": hostile}))
    with pytest.raises(BadProviderImage, match="has no job id"):
        await comfy().generate()
    assert server.sent("history") == []


async def test_a_comfyui_that_was_started_again_has_forgotten_its_jobs(
    server: ComfyServer, comfy: Callable[..., Drawn]
) -> None:
    server.always("create", json_reply({"prompt_id": "forgotten"}))
    with pytest.raises(ProviderUnavailable, match="no longer knows job forgotten") as caught:
        await comfy().generate()
    assert (caught.value.retryable, caught.value.may_be_billed) == (True, False)


async def test_after_two_minutes_the_job_is_left_running_and_can_be_recovered(
    server: ComfyServer, comfy: Callable[..., Drawn]
) -> None:
    server.looks = 10**9
    drawn = comfy()
    with pytest.raises(ProviderUnavailable) as caught:
        await drawn.generate()
    assert caught.value.message == (
        "ComfyUI has not finished after 120 s; it may be drawing all the same, and was not asked "
        f"again. Job {JOB_ID} at ComfyUI goes on"
    )
    # So the journal keeps the job.
    assert (caught.value.may_be_billed, drawn.desk.jobs) == (True, [job(server)])
    assert server.sent("order") == []


async def give_up(server: ComfyServer, drawn: Drawn) -> list[tuple[str, Any]]:
    """Cancel at the first look; what ComfyUI was told then."""
    server.script("history", Reply(hold=Gate()))
    drawing = asyncio.ensure_future(drawn.generate())
    await server.wait_until("history")
    drawing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await drawing
    assert drawn.desk.withdrawn == 1
    return [(seen.path, seen.json()) for seen in server.sent("order")]


async def test_giving_up_takes_a_waiting_job_out_of_the_queue(
    server: ComfyServer, comfy: Callable[..., Drawn]
) -> None:
    server.looks = 9
    assert await give_up(server, comfy()) == [("/queue", {"delete": [JOB_ID]})]


async def test_giving_up_stops_a_job_only_while_it_is_the_one_that_runs(
    server: ComfyServer, comfy: Callable[..., Drawn]
) -> None:
    server.looks, server.waiting = 9, -1
    assert await give_up(server, comfy()) == [
        ("/queue", {"delete": [JOB_ID]}),
        ("/interrupt", {"prompt_id": JOB_ID}),
    ]


async def test_a_job_is_resumed_to_its_picture(
    server: ComfyServer, comfy: Callable[..., Drawn]
) -> None:
    server.add("mine")
    server.looks = 2
    drawn = comfy(COMFYUI_WORKFLOW="/gone")
    assert isinstance(drawn.provider, Resumable)
    receipt = await drawn.provider.resume(
        job(server, "mine"), REQUEST, drawn.sink, drawn.desk.callbacks
    )
    assert receipt == Receipt(
        prompt_used="a fox", cost_nano=0, extras={"seed": 42, "gpu_seconds": 3.5}
    )
    assert bytes(drawn.sink.data) == PICTURE


async def test_a_job_whose_id_never_arrived_is_found_in_the_queue_or_the_history(
    server: ComfyServer, comfy: Callable[..., Drawn]
) -> None:
    now_ms = int(wall.time() * 1000)
    mark = {"prompt": "a fox", "seed": 42, "width": 1001, "height": 768}
    server.add("other", limner=mark | {"seed": 43}, create_time=now_ms)
    server.add("old", limner=mark, create_time=now_ms - 60_000)
    server.add("a/b", limner=mark)
    server.jobs["odd"], server._looked["odd"] = [7, "odd"], 0
    server.looks = 9
    find = comfy().provider.find
    assert await find(REQUEST, since_ms=now_ms - 1000) == []
    server.add("mine", limner=mark, create_time=now_ms)
    assert await find(REQUEST, since_ms=now_ms - 1000) == [job(server, "mine")]
    server.looks = -1
    assert await find(REQUEST, since_ms=now_ms - 1000) == [job(server, "mine")]
    assert await find(replace(REQUEST, seed=None), since_ms=now_ms - 1000) == []


async def test_a_request_is_found_again_by_what_was_sent_with_it(
    server: ComfyServer, comfy: Callable[..., Drawn]
) -> None:
    mark = {"prompt": "a fox", "seed": 42, "width": 1001, "height": 768}
    server.script("create", cut_short(server.answer_create(limner=mark)))
    drawn = comfy()
    await drawn.generate()
    assert [sent.json()["extra_data"] for sent in server.sent("create")] == [{"limner": mark}]
    assert drawn.desk.jobs == [job(server), job(server)]
