"""A call that costs more than the threshold asks the user, by whatever way the client has."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.session import ClientRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import FileUrl
from tests.acceptance.conftest import Studio, picture
from tests.acceptance.test_mcp_slow import held
from tests.servers.mcp_process import Mode, by_pipes, inside, listening

from limner.testing.servers.http_server import Gate
from limner.testing.servers.openai_server import OpenAIServer

pytestmark = pytest.mark.slow

FOX = {"prompt": "a fox"}
TASKS = "io.modelcontextprotocol/tasks"


class User:
    """Answers every question in the same way, and remembers them."""

    def __init__(self, action: Literal["accept", "decline", "cancel"]) -> None:
        self.action: Literal["accept", "decline", "cancel"] = action
        self.asked = list[str]()

    async def __call__(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestFormParams)
        assert params.requested_schema == {"type": "object", "properties": {}}
        self.asked.append(params.message)
        return types.ElicitResult(action=self.action, content={})


def value_of(result: types.CallToolResult) -> Any:
    assert isinstance(result.content[0], types.TextContent)
    return json.loads(result.content[0].text)


@pytest.fixture
def careful(studio: Studio, openai: OpenAIServer) -> Studio:
    """Every cent is asked for."""
    studio.connect(openai).env["LIMNER_APPROVAL_ABOVE_USD"] = "0"
    return studio


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_picture_above_the_threshold_is_drawn_after_the_user_said_yes(
    careful: Studio, openai: OpenAIServer, mode: Mode
) -> None:
    user = User("accept")
    async with inside(careful, mode=mode, elicitation_callback=user) as client:
        drawn = await client.call_tool("image_generate", FOX)
    assert value_of(drawn)["path"] == str(careful.files[0])
    (question,) = user.asked
    assert question.startswith("A picture from openai-image costs $0.0")
    assert len(openai.sent("generate")) == 1


@pytest.mark.parametrize("way", ["pipes", "http"])
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_question_reaches_the_user_over_every_wire(
    careful: Studio, openai: OpenAIServer, way: str, mode: Mode
) -> None:
    user = User("accept")
    if way == "pipes":
        async with by_pipes(careful, mode=mode, elicitation_callback=user) as client:
            drawn = await client.call_tool("image_generate", FOX)
    else:
        async with (
            listening(careful) as server,
            Client(server.url, mode=mode, elicitation_callback=user) as client,
        ):
            drawn = await client.call_tool("image_generate", FOX)
    assert value_of(drawn)["path"] == str(careful.files[0])
    assert (len(user.asked), len(openai.sent("generate"))) == (1, 1)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_nothing_is_sent_where_the_user_did_not_say_yes(
    careful: Studio, openai: OpenAIServer, mode: Mode, action: Literal["decline", "cancel"]
) -> None:
    user = User(action)
    async with inside(careful, mode=mode, elicitation_callback=user) as client:
        refused = await client.call_tool("image_generate", FOX)
    assert refused.is_error
    assert value_of(refused)["error"]["code"] == "APPROVAL_DENIED"
    assert len(user.asked) == 1
    assert openai.requests == []


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_where_nobody_can_be_asked_the_refusal_names_the_amount_and_the_setting(
    careful: Studio, openai: OpenAIServer, mode: Mode
) -> None:
    async with inside(careful, mode=mode) as client:
        refused = await client.call_tool("image_generate", FOX)
    error = value_of(refused)["error"]
    assert refused.is_error
    assert (error["code"], error["billed"]) == ("APPROVAL_DENIED", False)
    assert "$0.0" in error["message"]
    assert "approval.above_usd" in error["hint"]
    assert openai.requests == []


async def test_a_changed_price_is_asked_again(careful: Studio, openai: OpenAIServer) -> None:
    """An answer is to one question: a yes to a small picture is none to a large one."""
    user = User("accept")
    async with inside(careful, elicitation_callback=user) as client:
        await client.call_tool("image_generate", FOX)
        await client.call_tool("image_generate", {**FOX, "quality": "hd"})
    assert len(set(user.asked)) == 2
    assert len(openai.sent("generate")) == 2


async def test_a_server_without_a_folder_of_its_own_works_in_the_roots_of_its_client(
    studio: Studio, tmp_path: Path
) -> None:
    project = tmp_path / "my project"
    project.mkdir()

    async def roots(_: ClientRequestContext) -> types.ListRootsResult:
        folders = (Path("/"), project, Path("/etc"))
        return types.ListRootsResult(
            roots=[types.Root(uri=FileUrl(one.as_uri())) for one in folders]
        )

    studio.cwd = Path("/")
    async with inside(studio, mode="legacy", list_roots_callback=roots) as client:
        drawn = await client.call_tool(
            "image_generate", {"prompt": "a robot", "output_path": "robot.png"}
        )
        denied = [
            await client.call_tool("image_generate", {"prompt": "a robot", "output_path": path})
            for path in ("/robot.png", "/etc/robot.png", "/srv/robot.png")
        ]
    assert value_of(drawn)["path"] == str(project / "robot.png")
    assert [value_of(one)["error"]["code"] for one in denied] == ["OUTPUT_PATH_DENIED"] * 3


# --- after content from outside ---


@pytest.fixture
def desk(studio: Studio, openai: OpenAIServer) -> Studio:
    """A folder with a photo, a service that draws for money, and limner's own eyes."""
    (studio.cwd / "photo.png").write_bytes(picture(80, 60))
    studio.env["LIMNER_MODEL_ROLES_VISION"] = "limner/eyes"
    return studio.connect(openai)


LOOK = {"path": "photo.png", "question": "What does it say?"}
HERE = {"prompt": "a fox", "output_path": "fox.png"}


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_after_a_picture_from_outside_a_client_that_cannot_ask_neither_pays_nor_writes(
    desk: Studio, openai: OpenAIServer, mode: Mode
) -> None:
    async with inside(desk, mode=mode) as client:
        assert not (await client.call_tool("inspect_image", LOOK)).is_error
        refused = [await client.call_tool("image_generate", one) for one in (FOX, HERE)]
    errors = [value_of(one)["error"] for one in refused]
    assert [error["code"] for error in errors] == ["APPROVAL_DENIED"] * 2
    assert "after content from outside was read" in errors[0]["message"]
    assert "budget.session_usd" in errors[0]["hint"]
    assert "saved in the generated folder" in errors[1]["hint"]
    assert (openai.requests, desk.files, (desk.cwd / "fox.png").exists()) == ([], [], False)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_after_a_picture_from_outside_the_user_decides(
    desk: Studio, openai: OpenAIServer, mode: Mode
) -> None:
    user = User("accept")
    async with inside(desk, mode=mode, elicitation_callback=user) as client:
        await client.call_tool("inspect_image", LOOK)
        drawn = await client.call_tool("image_generate", HERE)
    assert value_of(drawn)["path"] == str(desk.cwd / "fox.png")
    assert all(text.startswith("Content from outside was read") for text in user.asked)
    assert len(openai.sent("generate")) == 1


async def test_money_that_was_set_aside_is_spent_also_after_a_picture_from_outside(
    desk: Studio, openai: OpenAIServer
) -> None:
    desk.env["LIMNER_BUDGET_SESSION_USD"] = "1"
    async with inside(desk) as client:
        await client.call_tool("inspect_image", LOOK)
        assert not (await client.call_tool("image_generate", FOX)).is_error
    assert len(openai.sent("generate")) == 1


async def test_what_limner_drew_is_looked_at_and_drawn_again_without_a_question(
    desk: Studio, openai: OpenAIServer
) -> None:
    async with inside(desk) as client:
        await client.call_tool("image_generate", HERE)
        look = {"path": "fox.png", "question": "Is it red?"}
        assert not (await client.call_tool("inspect_image", look)).is_error
        again = await client.call_tool("image_generate", {**HERE, "output_path": "fox2.png"})
    assert value_of(again)["path"] == str(desk.cwd / "fox2.png")


async def test_a_file_that_is_refused_and_a_picture_that_is_read_mark_the_session_too(
    desk: Studio,
) -> None:
    (desk.cwd / "broken.png").write_text("not a picture")
    async with inside(desk) as client:
        await client.call_tool("image_fit", {"image": "broken.png"})
        refused = await client.call_tool("image_generate", FOX)
        assert value_of(refused)["error"]["code"] == "APPROVAL_DENIED"
    async with inside(desk) as client:
        fitted = value_of(await client.call_tool("image_fit", {"image": "photo.png"}))
    async with inside(desk) as client:
        await client.read_resource(f"limner://image/{fitted['image']}")
        refused = await client.call_tool("image_generate", FOX)
        assert value_of(refused)["error"]["code"] == "APPROVAL_DENIED"


async def test_each_http_session_has_a_mark_of_its_own(desk: Studio) -> None:
    async with (
        listening(desk) as server,
        Client(server.url, mode="legacy") as reader,
        Client(server.url, mode="legacy") as other,
    ):
        await reader.call_tool("inspect_image", LOOK)
        refused = await reader.call_tool("image_generate", FOX)
        assert value_of(refused)["error"]["code"] == "APPROVAL_DENIED"
        assert not (await other.call_tool("image_generate", FOX)).is_error


class Task(types.Result):
    """What a client with the tasks extension gets for a slow call."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    ttl_ms: int | None
    poll_interval_ms: int


class TaskState(types.Result):
    """What it is told when it asks."""

    task_id: str
    status: str
    result: dict[str, Any] | None = None


class Tasks(ClientExtension):
    """The tasks extension, as a client has it."""

    identifier = TASKS

    def __init__(self, gate: Gate) -> None:
        self.gate, self.states = gate, list[str]()

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return [
            ResultClaim(
                result_type="task",
                model=Task,
                resolve=self.resolve,
                protocol_versions=frozenset(MODERN_PROTOCOL_VERSIONS),
            )
        ]

    async def resolve(self, task: Task, context: ClaimContext) -> types.CallToolResult:
        self.states.append(task.status)
        while True:
            request = types.GetTaskRequest(params=types.GetTaskRequestParams(task_id=task.task_id))
            state = await context.session.send_request(request, TaskState)
            if state.status != self.states[-1]:
                self.states.append(state.status)
            if state.result is not None:
                return types.CallToolResult.model_validate(state.result)
            self.gate.open()


async def test_a_client_with_the_tasks_extension_polls_by_itself(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.connect(openai).env["LIMNER_MCP_ANSWER_WITHIN_S"] = "0.5"
    tasks = Tasks(held(openai))
    async with listening(studio) as server, Client(server.url, extensions=[tasks]) as client:
        drawn = await client.call_tool("image_generate", FOX)
    assert [block.type for block in drawn.content] == ["text", "image"]
    assert value_of(drawn)["path"] == str(studio.files[0])
    assert tasks.states == ["working", "completed"]
    assert len(openai.sent("generate")) == 1
