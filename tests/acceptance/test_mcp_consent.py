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
from tests.acceptance.conftest import Studio
from tests.acceptance.test_mcp_slow import held
from tests.servers.mcp_process import Mode, by_pipes, inside, listening

from limner.testing.servers.http_server import Gate
from limner.testing.servers.openai_server import OpenAIServer

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


@pytest.mark.slow
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


@pytest.mark.slow
async def test_a_client_with_the_tasks_extension_polls_by_itself(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.connect(openai).env["LIMNER_MCP_ANSWER_WITHIN_S"] = "0.5"
    tasks = Tasks(held(openai))
    async with listening(studio) as server, Client(server.url, extensions=[tasks]) as client:
        drawn = await client.call_tool("image_generate", FOX)
    assert [block.type for block in drawn.content] == ["text", "image", "resource_link"]
    assert value_of(drawn)["path"] == str(studio.files[0])
    assert tasks.states == ["working", "completed"]
    assert len(openai.sent("generate")) == 1
