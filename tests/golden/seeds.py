"""The two tools and the app-server, brought into each state that a specification has words for.

-> each statement of a specification that fixes words, with the words that are really said.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from tests.golden.forked import Runner
from tests.golden.protocols import published
from tests.golden.runs import KEY, desk_in, picture

import limner
from limner.testing.servers.http_server import Gate, json_reply
from limner.testing.servers.model_server import ModelAnswer, StreamError
from limner.testing.servers.openai_server import OpenAIServer, error_reply
from limner.testing.servers.replicate_server import ReplicateServer
from limner.testing.servers.responses_server import ResponsesServer

GENERATE, INSPECT, TOOLS = "image_generate", "inspect_image", "dynamic tool output"
MODEL = "openai/gpt-5.5"
# Before DALL·E 3 was retired: the time that the specification of `image_generate` speaks of.
SPRING = datetime(2026, 4, 1, 12, tzinfo=UTC)
AUTUMN = datetime(2026, 11, 15, 12, tzinfo=UTC)

# Words of the specification at which a description of a parameter begins, or which it is.
DESCRIPTIONS = {
    "prompt": "Text description of the image to generate.",
    "output_path": "File path to save the PNG.",
    "size": "One of 512x512 (Flux only), 1024x1024, 1024x1792, 1792x1024",
    "quality": "standard or hd.",
    "provider": "openai-dalle,",
}

Row = dict[str, Any]


class Place:
    """A home, a folder and an environment, and the words that were found in it."""

    def __init__(self, folder: Path) -> None:
        self.cwd = folder / "work"
        self.cwd.mkdir()
        self.home = folder / "limner-home"
        self.env = {"HOME": str(folder), "LIMNER_HOME": str(self.home)}
        self.rows: list[Row] = []

    def limner(self, *, at: datetime = AUTUMN, **env: str) -> limner.Limner:
        return limner.Limner(env={**self.env, **env}, cwd=self.cwd, clock=lambda: at)

    def put(self, name: str, data: bytes) -> None:
        (self.cwd / name).write_bytes(data)

    async def draw(self, *, at: datetime = SPRING, arguments: Row, **env: Any) -> Any:
        async with self.limner(at=at, **env) as lim:
            return await call(lim, GENERATE, {"prompt": "a fox", **arguments})

    async def look(self, *, arguments: Row | None = None, **env: Any) -> Any:
        async with self.limner(**env) as lim:
            return await call(lim, INSPECT, arguments or {})

    def say(self, seed: str, statement: str, text: Any, observed: str) -> None:
        self.rows.append({"seed": seed, "statement": statement, "text": text, "observed": observed})

    def failed(self, statement: str, result: Any) -> None:
        """An error that `inspect_image` has the words for."""
        assert not result.ok, result
        self.say(INSPECT, statement, result.error, "ToolResult.error")


async def call(lim: limner.Limner, tool: str, arguments: Row, **context: Any) -> Any:
    """What a tool returns for a call by a model."""
    if tool == INSPECT:
        arguments = {"path": "pic.png", "question": "What is it?", **arguments}
    made = limner.ToolCall(name=tool, arguments=arguments)
    (result,) = await lim.registry().execute_parallel([made], replace(lim.person(), **context))
    return result


def seed_texts() -> list[Row]:
    """Every statement whose words a specification fixes, with the words that are said."""
    rows: list[Row] = []
    parts: tuple[Callable[[Place], Awaitable[None]], ...] = (
        _generate_surface,
        _generate_errors,
        _generate_results,
        _inspect_models,
        _inspect_files,
        _inspect_answers,
    )
    for part in parts:
        with _place() as place:
            asyncio.run(part(place))  # pyright: ignore[reportArgumentType]
        rows += place.rows
    return [*rows, _footer(), *_dynamic_tools()]


@contextmanager
def _place() -> Iterator[Place]:
    with tempfile.TemporaryDirectory() as folder:
        yield Place(Path(folder).resolve())


# --- image_generate ---


async def _generate_surface(place: Place) -> None:
    (tool,) = (one for one in place.limner().tools() if one.name == GENERATE)
    surface = [tool.name, tool.toolset, tool.max_result_chars]
    place.say(GENERATE, "Name, toolset, maxResultChars", surface, "Limner.tools()")
    schema: Mapping[str, Any] = tool.schema
    for name, words in DESCRIPTIONS.items():
        found = schema["properties"][name]["description"]
        text = words if found.startswith(words) else found
        place.say(GENERATE, f"Parameter {name}: description begins", text, "schema")
        default = schema["properties"][name].get("default")
        place.say(GENERATE, f"Parameter {name}: default", default, "schema")


async def _generate_errors(place: Place) -> None:
    def failed(code: str, result: Any) -> None:
        found = {"code": result.domain_code, "kind": result.code}
        place.say(GENERATE, f"Error code {code}", found, "ToolResult")

    nobody = await place.draw(arguments={}, LIMNER_IMAGES_EMBEDDED="false")
    failed("IMAGE_GEN_NO_PROVIDER", nobody)
    place.say(GENERATE, "Meaning of IMAGE_GEN_NO_PROVIDER", nobody.error, "ToolResult.error")
    with OpenAIServer(picture(1024, 1024)) as openai:
        place.env |= {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": openai.base_url}
        small = {"size": "512x512", "provider": "openai-dalle"}
        failed("INVALID_SIZE_FOR_PROVIDER", await place.draw(arguments=small))
        refused = error_reply(400, "Rejected.", code="content_policy_violation")
        openai.script("generate", refused)
        failed("IMAGE_GEN_REJECTED", await place.draw(arguments={}))
        openai.script("generate", error_reply(429, "No quota.", code="insufficient_quota"))
        failed("IMAGE_GEN_QUOTA_EXCEEDED", await place.draw(arguments={}))
        openai.script("generate", json_reply({"error": {"message": "boom"}}, status=500))
        failed("IMAGE_GEN_PROVIDER_UNAVAILABLE", await place.draw(arguments={}))
        outside = {"output_path": "/etc/fox.png"}
        failed("OUTPUT_PATH_DENIED", await place.draw(arguments=outside))


async def _generate_results(place: Place) -> None:
    with OpenAIServer(picture(1024, 1024)) as openai:
        openai.revised_prompt = "A serene fox"
        where: dict[str, Any] = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": openai.base_url}
        drawn = json.loads((await place.draw(arguments={}, **where)).value)
    _result(place, "openai-dalle", drawn)
    with ReplicateServer(picture(1024, 1024)) as replicate:
        where = {"REPLICATE_API_TOKEN": KEY, "REPLICATE_BASE_URL": replicate.base_url}
        drawn = json.loads((await place.draw(arguments={}, **where)).value)
    _result(place, "replicate-flux", drawn)


def _result(place: Place, provider: str, drawn: Mapping[str, Any]) -> None:
    generated = place.home / "generated"
    shown = {**drawn, "path": str(Path(drawn["path"]).relative_to(generated))}
    shown["path"] = shown["path"].replace(str(int(SPRING.timestamp() * 1000)), "<timestamp>")
    five = [[name, shown[name]] for name in list(drawn)[:5]]
    place.say(GENERATE, f"Return shape for {provider}, in its order", five, "ToolResult.value")


# --- inspect_image ---


def _eyes(place: Place, model: ResponsesServer) -> None:
    place.env |= {
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": model.base_url,
        "LIMNER_MODEL_ROLES_VISION": MODEL,
    }
    place.put("pic.png", picture(60, 40))


async def _inspect_models(place: Place) -> None:
    place.failed(
        "Settings gate: images.blockImages", await place.look(LIMNER_IMAGES_BLOCK_IMAGES="true")
    )
    async with place.limner() as lim:
        lim.components.inspector = replace(lim.inspector, registry=None)
        place.failed("Model registry is unavailable", await call(lim, INSPECT, {}))
    place.failed("No models available", await place.look(LIMNER_IMAGES_EMBEDDED="false"))
    place.put("pic.png", picture(60, 40))
    async with place.limner() as lim:
        try:
            await lim.inspect("pic.png", "What is it?", model="nobody/nothing")
        except limner.LimnerError as error:
            place.say(INSPECT, "Unable to resolve a model", error.message, "Limner.inspect")
    place.failed(
        "Resolved model does not support image input",
        await place.look(OPENAI_API_KEY=KEY, LIMNER_MODEL_ROLES_VISION="openai/o3-mini"),
    )
    place.failed("No API key available", await place.look(LIMNER_MODEL_ROLES_VISION=MODEL))


async def _inspect_files(place: Place) -> None:
    with ResponsesServer() as model:
        _eyes(place, model)
        place.put("large.png", picture(60, 40))
        os.truncate(place.cwd / "large.png", 23_383_245)
        place.failed("Image file too large", await place.look(arguments={"path": "large.png"}))
        place.put("text.png", b"hello, I am text")
        place.failed("Unsupported type", await place.look(arguments={"path": "text.png"}))


async def _inspect_answers(place: Place) -> None:
    with ResponsesServer() as model:
        _eyes(place, model)
        model.model_answer = ModelAnswer(pieces=("A fox.",))
        result = await place.look()
        value = json.loads(result.value)
        details = list(value["details"].items())[:3]
        shown = [[name, str(text).replace(f"{place.cwd}{os.sep}", "")] for name, text in details]
        place.say(INSPECT, "Outputs: content", [part.text for part in result.content], "ToolResult")
        place.say(INSPECT, "Outputs: details, in their order", shown, "ToolResult.value")
        model.model_answer = ModelAnswer(is_whole=False)
        place.failed("The request failed without a message", await place.look())
        model.model_answer = ModelAnswer(
            error=StreamError(code="server_error", message="The model fell over.")
        )
        place.failed("A message of the provider is passed through", await place.look())
        model.model_answer = ModelAnswer(pieces=(" ", "\n"))
        place.failed("No text output", await place.look())
        model.model_answer = ModelAnswer(gate=Gate())
        cancel = asyncio.Event()

        def watch(news: limner.Progress) -> None:
            if "hello" in news.message:
                cancel.set()

        async with place.limner() as lim:
            aborted = await call(lim, INSPECT, {}, cancel=cancel, progress=watch)
        place.failed("The request was aborted", aborted)


def _footer() -> Row:
    with Runner() as runner, desk_in(runner) as desk, ResponsesServer() as model:
        desk.env |= {
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": model.base_url,
            "LIMNER_MODEL_ROLES_VISION": MODEL,
        }
        told = desk.run("inspect", "cat.png", "What is it?").err.splitlines()[0]
    where = "standard error of `limner inspect`"
    return {"seed": INSPECT, "statement": "Footer", "text": told, "observed": where}


# --- pictures in the output of a dynamic tool ---


def _dynamic_tools() -> list[Row]:
    files = published()
    response = files["DynamicToolCallResponse.json"]
    kinds = {
        tag: sorted(one["properties"])
        for one in response["definitions"].values()
        for tag in one.get("properties", {}).get("type", {}).get("enum", ())
    }
    found = {
        "members": sorted(response["properties"]),
        "required": sorted(response["required"]),
        "inputText": kinds.get("inputText"),
        "inputImage": kinds.get("inputImage"),
    }
    statement = "New shape: contentItems of inputText and inputImage, success"
    return [
        {
            "seed": TOOLS,
            "statement": statement,
            "text": found,
            "observed": "DynamicToolCallResponse.json",
        }
    ]
