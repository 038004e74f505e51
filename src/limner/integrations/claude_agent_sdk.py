"""Claude Agent SDK: the tools are an MCP server inside of this process."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from typing import Any, Unpack

from limner.integrations import needs
from limner.integrations.toolset import Toolset, ToolsetOptions, encode, schema_of
from limner.tools.base import Tool

with needs("claude-agent-sdk"):
    from claude_agent_sdk import McpSdkServerConfig, SdkMcpTool, create_sdk_mcp_server


def limner_server(**options: Unpack[ToolsetOptions]) -> McpSdkServerConfig:
    """The server for ``mcp_servers``; the text of a tool's result has the cost and the handle."""
    own = Toolset(**options)

    def adapt(tool: Tool) -> SdkMcpTool[Any]:
        async def run(arguments: dict[str, Any]) -> dict[str, Any]:
            answer = await own.call(tool.name, arguments)
            shown = [
                {"type": "image", "data": encode(one), "mimeType": one.mime}
                for one in answer.pictures
            ]
            words = {"type": "text", "text": answer.words}
            return {"content": [words, *shown], "is_error": not answer.ok}

        return SdkMcpTool(tool.name, tool.description, schema_of(tool), run)

    return create_sdk_mcp_server("limner", tools=[adapt(tool) for tool in own.tools])
