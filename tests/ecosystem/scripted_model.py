"""A request of any model API -> the next step of a script, and a record of what the model received.

One server speaks Chat Completions, Responses, Messages and generateContent, and draws pictures as
OpenAI's images API does. So a real agent, with limner inside, works without any network.
"""

from __future__ import annotations

import base64
import binascii
import io
import itertools
import json
import re
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace
from PIL import Image
from tests.servers.chat_server import ChatServer

from limner.testing.servers.anthropic_server import AnthropicServer
from limner.testing.servers.gemini_server import GeminiServer
from limner.testing.servers.http_server import Gate, LocalServer, ReceivedRequest, Reply, json_reply
from limner.testing.servers.model_server import (
    ModelAnswer,
    ModelServer,
    ScriptedCall,
    ServerEvent,
)
from limner.testing.servers.openai_server import OpenAIServer, error_reply
from limner.testing.servers.responses_server import ResponsesServer

# So many base64 characters in a row inside of a text are a picture that was sent as text.
LEAK = re.compile(r"[A-Za-z0-9+/]{400,}")
DATA_URL = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)
ANNOUNCED = re.compile(r"mcp__\w*limner\w*")
# However many times the JSON was quoted.
JOB = re.compile(r'"job\\*": ?\\*"(\w[\w-]*)\\*", ?\\*"status\\*": ?\\*"(?:running|queued)')
COST = re.compile(r'"cost_usd\\*": ?([\d.]+)')
# How often the model waits for a server that is not ready.
MAX_WAITS = 3
RESULTS = {"function_call_output", "custom_tool_call_output", "tool_result"}


class SeenPicture(msgspec.Struct, frozen=True, kw_only=True):
    """A picture that the model received, decoded; an address that is no data URL has no size.

    ``in_result`` is False if it is in a message of the user, beside the result of the tool.
    """

    mime: str
    size_bytes: int = 0
    width: int = 0
    height: int = 0
    in_result: bool = False

    def words(self) -> str:
        """The picture as a cell of a table."""
        return f"{self.mime} {self.width}x{self.height}, {self.size_bytes:,} B"


class SeenRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What one request showed the model.

    Attributes:
        wire: the API.
        tools: the names of the tools that the model may call.
        announced: the names of tools that only the text has; the model searches for these.
        saw_error: an error of a tool is in the request.
        pictures: the pictures, in order.
        leaked_chars: the base64 characters inside of texts.
        size_bytes: the size of the request.
        last_result: the last result of a tool as JSON, shortened.
        job: the id of a job that the last result names, because the picture takes longer.
        cost_usd: the largest cost that the request names.
    """

    wire: str
    tools: tuple[str, ...]
    announced: tuple[str, ...]
    saw_error: bool
    pictures: tuple[SeenPicture, ...]
    leaked_chars: int
    size_bytes: int
    last_result: str = ""
    job: str | None = None
    cost_usd: float = 0

    def tools_of(self, offered: Collection[str]) -> set[str]:
        """The tools among those offered that the model knows; clients add a prefix to names."""
        known = (*self.tools, *self.announced)
        return {
            name
            for name in offered
            if any(re.search(rf"(?:^|[^a-z]){name}$", one) for one in known)
        }


class ScriptedModel(LocalServer):
    """Calls the tools of a script one after the other, then says that it is done.

    Args:
        script: the calls, each a tool and its arguments. A tool is found by the end of its name.
        picture: the PNG that the image service draws.
        image_wait_s: how long the image service draws.
    """

    def __init__(
        self,
        script: Sequence[tuple[str, Mapping[str, Any]]],
        *,
        picture: bytes,
        image_wait_s: float = 0,
        port: int = 0,
    ) -> None:
        super().__init__(port=port)
        self.seen: list[SeenRequest] = []
        self.drawn = 0
        self._script, self._image_wait_s = script, image_wait_s
        self._images = OpenAIServer(picture)
        self._wires: dict[str, ModelServer] = {
            "chat": ChatServer(),
            "responses": _Responses(),
            "messages": AnthropicServer(),
            "gemini": GeminiServer(),
        }
        self._histories: dict[str, list[Any]] = {}
        self._step, self._has_searched = 0, False
        self._ids, self._waits = itertools.count(1), itertools.count()

    def answer(self, seen: ReceivedRequest) -> Reply:
        """Answer as the service of the path."""
        if "/images/" in seen.path:
            return self._draw(seen)
        wire = _wire_of(seen.path)
        if wire is None or seen.method != "POST":
            return json_reply({"object": "list", "data": [], "models": []})
        server = self._wires[wire]
        body = self._with_history(seen.json())
        seen = replace(seen, body=json.dumps(body).encode())
        request = read_request(wire, body, size_bytes=len(seen.body))
        if request.tools:
            self.seen.append(request)
        path = re.sub(r"^.*?(/v1(beta)?/)", r"\1", seen.target)
        problem = _picture_problem(wire, body) or server.objection(replace(seen, target=path))
        if problem is not None:
            return problem
        answer = self._next(request)
        if wire == "responses":
            output = server.whole(answer, body)["output"]
            self._histories[f"resp_1-{len(self.seen)}"] = [*_as_list(body["input"]), *output]
        return _with_new_ids(server.reply_with(answer, seen), len(self.seen))

    def _with_history(self, body: dict[str, Any]) -> dict[str, Any]:
        """The request with the whole history, also if the client names the last response."""
        earlier = self._histories.get(body.get("previous_response_id") or "")
        if earlier is None:
            return body
        return {**body, "input": [*earlier, *_as_list(body["input"])]}

    def _draw(self, seen: ReceivedRequest) -> Reply:
        self.drawn += 1
        reply = self._images.answer(seen)
        if not self._image_wait_s:
            return reply
        gate = Gate()
        threading.Timer(self._image_wait_s, gate.open).start()
        return replace(reply, hold=gate)

    def _next(self, request: SeenRequest) -> ModelAnswer:
        # Codex in code mode goes on to run a script that takes long.
        if cell := re.search(r"Script running with cell ID (\w+)", request.last_result):
            return self._call("functions/wait", {"cell_id": cell[1], "yield_time_ms": 30_000})
        if request.job is not None:
            wanted, arguments = "image_job", {"job": request.job}
        elif not request.tools or self._step >= len(self._script):
            return self._say("Done: I saw the picture.", request)
        else:
            wanted, arguments = self._script[self._step]
        if "functions/exec" in request.tools:  # Codex in code mode
            return self._run_code(wanted, arguments, request)
        names = request.tools if not self._has_searched else (*request.tools, *request.announced)
        found = [name for name in names if name.endswith(wanted)]
        if found:
            self._step += request.job is None
            return self._call(found[0], arguments)
        announced = [name for name in request.announced if name.endswith(wanted)]
        if "ToolSearch" in request.tools and announced:  # Claude Code
            self._has_searched = True
            return self._call("ToolSearch", {"query": f"select:{announced[0]}"})
        if "WaitForMcpServers" in request.tools and next(self._waits) < MAX_WAITS:  # Claude Code
            return self._call("WaitForMcpServers", {})
        return self._say(f"There is no tool {wanted}.", request)

    def _run_code(
        self, wanted: str, arguments: Mapping[str, Any], request: SeenRequest
    ) -> ModelAnswer:
        if not self._has_searched:
            self._has_searched = True
            return self._call("exec", "text(ALL_TOOLS.filter(t => t.name.includes('limner')))")
        name = next((one for one in request.announced if one.endswith(wanted)), None)
        if name is None:
            return self._say(f"There is no tool {wanted}.", request)
        self._step += request.job is None
        call = f"const r = await tools.{name}({json.dumps(arguments)}); text(r.content[0].text);"
        return self._call("exec", f"{call} if (r.content[1]) image(r.content[1]);")

    def _say(self, text: str, request: SeenRequest) -> ModelAnswer:
        if "final_answer" in request.tools:  # smolagents
            return self._call("final_answer", {"answer": text})
        return ModelAnswer(pieces=(text,))

    def _call(self, name: str, arguments: Mapping[str, Any] | str) -> ModelAnswer:
        given = arguments if isinstance(arguments, str) else json.dumps(arguments)
        call = ScriptedCall(name=name, arguments=given, call_id=f"call_{next(self._ids)}")
        return ModelAnswer(pieces=("Let me see.",), calls=(call,))


class _Responses(ResponsesServer):
    """Without the event of the future, which not every framework ignores; with Codex's code."""

    def whole(self, answer: ModelAnswer, body: Any) -> Any:
        return _as_codex(super().whole(answer, body))

    def events(self, answer: ModelAnswer, body: Any) -> Any:
        before, after = super().events(answer, body)
        if any(call.name == "exec" for call in answer.calls):
            after = [one for one in after if "function_call" not in str(one.name)]
        after = [ServerEvent(name=one.name, data=_as_codex(one.data)) for one in after]
        return [one for one in before if "future" not in str(one.name)], after


def _as_codex(value: Any) -> Any:
    """JSON with calls as Codex wants them: ``exec`` is a custom tool, other tools have spaces."""
    if isinstance(value, list):
        return [_as_codex(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") == "function_call":
        space, _, name = value["name"].rpartition("/")
        if name == "exec":
            rest = {name: one for name, one in value.items() if name != "arguments"}
            return {**rest, "type": "custom_tool_call", "input": value["arguments"]}
        return {**value, "name": name} | ({"namespace": space} if space else {})
    return {name: _as_codex(one) for name, one in value.items()}


def _picture_problem(wire: str, body: Mapping[str, Any]) -> Reply | None:
    """As OpenAI refuses it; newer models accept the request and do not see the picture."""
    for at, message in enumerate(body.get("messages", ()) if wire == "chat" else ()):
        if message["role"] != "user" and any(list(_pictures(one)) for one in _objects(message)):
            role = message["role"]
            return error_reply(
                400,
                f"Invalid 'messages[{at}]'. Image URLs are only allowed for messages with role"
                f" 'user', but this message with role '{role}' contains an image URL.",
            )
    return None


def _with_new_ids(reply: Reply, number: int) -> Reply:
    """Every answer has ids of its own: a framework may take a known id for the same message."""
    body = b"".join(piece for piece in reply.pieces if isinstance(piece, bytes))
    for old in (b'"resp_1"', b'"msg_1"', b'"chatcmpl-1"', b'"r1"'):
        body = body.replace(old, b'%s-%d"' % (old[:-1], number))
    return replace(reply, pieces=(body,))


def _wire_of(path: str) -> str | None:
    ends = {"/chat/completions": "chat", "/responses": "responses", "/messages": "messages"}
    if path.endswith(("enerateContent",)):
        return "gemini"
    return next((wire for end, wire in ends.items() if path.endswith(end)), None)


def read_request(wire: str, body: Mapping[str, Any], *, size_bytes: int) -> SeenRequest:
    """What a request of any API shows the model."""
    shown = {name: value for name, value in body.items() if name != "tools"}
    objects = list(_objects(shown))
    # Codex in code mode has its tools in the conversation.
    additions = [one["tools"] for one in objects if one.get("type") == "additional_tools"]
    text = json.dumps(shown).replace("\\n", " ")
    results = [one for one in objects if _is_result(one)]
    last = json.dumps(results[-1]) if results else ""
    inside = [other for one in results for other in _objects(one)]
    texts = [text for one in objects for text in _texts(one)]
    return SeenRequest(
        wire=wire,
        tools=tuple(_tool_names([*(body.get("tools") or ()), *itertools.chain(*additions)])),
        announced=tuple(dict.fromkeys(ANNOUNCED.findall(text))),
        saw_error="INPUT_INVALID" in text,
        pictures=tuple(
            replace(picture, in_result=any(one is other for other in inside))
            for one in objects
            for picture in _pictures(one)
        ),
        leaked_chars=sum(len(run) for text in texts for run in LEAK.findall(text)),
        size_bytes=size_bytes,
        last_result=last[:600],
        job=job[-1] if (job := JOB.findall(last)) else None,
        cost_usd=max(map(float, COST.findall(text)), default=0),
    )


def _as_list(given: Any) -> list[Any]:
    return given if isinstance(given, list) else [{"role": "user", "content": given}]


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
        for one in value.values():
            yield from _objects(one)
    elif isinstance(value, list):
        for one in value:
            yield from _objects(one)


def _is_result(one: Mapping[str, Any]) -> bool:
    return one.get("type") in RESULTS or one.get("role") == "tool" or "functionResponse" in one


def _texts(one: Mapping[str, Any]) -> Iterator[str]:
    """The texts of an object, but not the bytes of a picture that is sent as one."""
    is_bytes = _mime(one) is not None
    for name, value in one.items():
        for text in value if isinstance(value, list) else [value]:
            is_picture = (is_bytes and name == "data") or name in ("image_url", "url")
            if isinstance(text, str) and not (is_picture and " " not in text):
                yield text


def _mime(one: Mapping[str, Any]) -> str | None:
    return one.get("mimeType") or one.get("mime_type") or one.get("media_type")


def _pictures(one: Mapping[str, Any]) -> Iterator[SeenPicture]:
    if isinstance(one.get("data"), str) and (mime := _mime(one)) is not None:
        yield _picture(mime, one["data"])
    address = one.get("image_url")
    if isinstance(address, Mapping):
        address = address.get("url")
    if isinstance(address, str):
        found = DATA_URL.fullmatch(address)
        yield _picture(*found.groups()) if found else SeenPicture(mime=address[:60])


def _picture(mime: str, encoded: str) -> SeenPicture:
    try:
        data = base64.b64decode(encoded.translate({45: "+", 95: "/"}))
        width, height = Image.open(io.BytesIO(data)).size
    except (OSError, binascii.Error):
        return SeenPicture(mime=f"broken {mime}")
    return SeenPicture(mime=mime, size_bytes=len(data), width=width, height=height)


def _tool_names(tools: Any, space: str = "") -> Iterator[str]:
    for one in tools:
        if one.get("type") == "namespace":
            yield from _tool_names(one["tools"], f"{one['name']}/")
        elif "name" in one or isinstance(one.get("function"), Mapping):
            yield space + (one.get("name") or one["function"]["name"])
        yield from _tool_names(one.get("functionDeclarations") or ())
