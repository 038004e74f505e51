"""Requests of MCP clients -> responses; heavy modules load with the first request."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from limner import __version__
from limner.errors import LimnerError
from limner.frontends.mcp import tool_list
from limner.frontends.mcp.quirks import takes_structure, without_output_schema, without_structure

if TYPE_CHECKING:
    from limner.frontends.mcp.request_handler import RequestHandler

INSTRUCTIONS = (
    "limner draws pictures, changes them and answers questions about them. Results carry the "
    "picture itself, its path and its handle; the handle names it in later calls. A slow call "
    "returns a job: image_job returns its picture. Costs are in dollars; spend shows them."
)
REQUEST_HANDLER = "limner.frontends.mcp.request_handler"
TASKS = "io.modelcontextprotocol/tasks"
REFUSE = "limner/refuse"
_HOUR = CacheHint(ttl_ms=3_600_000, scope="public")


class McpFrontend:
    """Creates the request handler on the first request, so that the server starts fast.

    Args:
        env: contains settings, keys and base URLs.
        cwd: the folder in which the server was started.
        folders: more folders that calls may use; None means those that the client names.
    """

    def __init__(
        self, *, env: Mapping[str, str], cwd: Path, folders: tuple[Path, ...] | None
    ) -> None:
        self._env, self._cwd, self._folders = env, cwd, folders
        self._handler: RequestHandler | None = None

    @property
    def handler(self) -> RequestHandler:
        """The request handler, created on first use.

        Raises:
            MCPError: the settings are wrong; the message says how.
        """
        handler = self._handler
        if handler is None:
            try:
                handler = import_module(REQUEST_HANDLER).RequestHandler(
                    env=self._env, cwd=self._cwd, folders=self._folders
                )
            except LimnerError as error:
                raise MCPError(
                    code=types.INTERNAL_ERROR,
                    message=" ".join(filter(None, (error.message, error.hint))),
                    data=error.as_json(),
                ) from error
            self._handler = handler
        return handler

    async def aclose(self) -> None:
        """Wait for calls that may be paid for, and close."""
        if self._handler is not None:
            await self._handler.aclose()


Context: TypeAlias = ServerRequestContext[McpFrontend, Any]


class TaskParams(types.RequestParams):
    """The id of a task."""

    task_id: str


class RefusedParams(types.RequestParams):
    """The reason why a message was rejected unread."""

    why: str


def build_server(
    *, env: Mapping[str, str], cwd: Path, folders: tuple[Path, ...] | None = None
) -> Server[McpFrontend]:
    """Build the server for any transport; see `McpFrontend`."""

    @asynccontextmanager
    async def lifespan(_: Server[McpFrontend]) -> AsyncGenerator[McpFrontend]:
        frontend = McpFrontend(env=env, cwd=cwd, folders=folders)
        try:
            yield frontend
        finally:
            await frontend.aclose()

    server = Server(
        "limner",
        version=__version__,
        title="limner",
        instructions=INSTRUCTIONS,
        cache_hints={"tools/list": _HOUR, "resources/templates/list": _HOUR},
        lifespan=lifespan,
        get_tool_input_schema=tool_list.schema_of,
        on_list_tools=_list_tools,
        on_list_resources=_list_resources,
        on_list_resource_templates=_list_templates,
        on_read_resource=_read_resource,
    )
    server.add_request_handler("tools/call", types.CallToolRequestParams, _call_tool)
    server.add_request_handler("tasks/get", TaskParams, _get_task)
    server.add_request_handler("tasks/cancel", TaskParams, _cancel_task)
    server.add_request_handler("tasks/update", TaskParams, _update_task)
    server.add_request_handler(REFUSE, RefusedParams, _refuse)
    server.extensions[TASKS] = {}
    return server


async def _list_tools(
    context: Context, _: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    tools = tool_list.offered().values()
    if not takes_structure(context.session):
        return types.ListToolsResult(tools=[without_output_schema(tool) for tool in tools])
    return types.ListToolsResult(tools=[*tools])


async def _list_resources(
    _: Context, __: types.PaginatedRequestParams | None
) -> types.ListResourcesResult:
    # A client knows only the handles in its own results, so the server lists none.
    return types.ListResourcesResult(resources=[])


async def _list_templates(
    _: Context, __: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=tool_list.templates())


async def _read_resource(
    context: Context, params: types.ReadResourceRequestParams
) -> types.ReadResourceResult:
    return await context.lifespan_context.handler.read(context, params.uri)


async def _call_tool(context: Context, params: types.CallToolRequestParams) -> HandlerResult:
    answer = await context.lifespan_context.handler.call(context, params)
    if isinstance(answer, types.CallToolResult) and not takes_structure(context.session):
        return without_structure(answer)
    return answer


async def _get_task(context: Context, params: TaskParams) -> HandlerResult:
    return await context.lifespan_context.handler.tasks.get(params.task_id)


async def _cancel_task(context: Context, params: TaskParams) -> HandlerResult:
    return context.lifespan_context.handler.tasks.cancel(params.task_id)


async def _update_task(context: Context, params: TaskParams) -> HandlerResult:
    return context.lifespan_context.handler.tasks.update(params.task_id)


async def _refuse(_: Context, params: RefusedParams) -> HandlerResult:
    raise MCPError(code=types.INVALID_REQUEST, message=params.why)
