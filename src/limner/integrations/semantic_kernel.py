"""Semantic Kernel: the tools are a plug-in that returns text; the chat service shows pictures."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any, Unpack

from limner.integrations import needs
from limner.integrations.toolset import SHOWN, Toolset, ToolsetOptions, data_url, schema_of
from limner.tools.base import Tool

with needs("semantic-kernel"):
    from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
    from semantic_kernel.contents import (
        AuthorRole,
        ChatHistory,
        ChatMessageContent,
        FunctionResultContent,
        ImageContent,
        TextContent,
    )
    from semantic_kernel.functions import (
        FunctionResult,
        KernelFunctionFromMethod,
        KernelParameterMetadata,
        KernelPlugin,
        kernel_function,
    )


def limner_plugin(**options: Unpack[ToolsetOptions]) -> KernelPlugin:
    """The plug-in for a kernel; ``metadata["limner"]`` of a result has the cost and the handles."""
    own = Toolset(**options)

    def adapt(tool: Tool) -> KernelFunctionFromMethod:
        schema = schema_of(tool)

        @kernel_function(name=tool.name, description=tool.description)
        async def run(**arguments: Any) -> FunctionResult:
            answer = await own.call(tool.name, arguments)
            shown = [data_url(one) for one in answer.pictures]
            known = {"limner": answer.facts, "limner_pictures": shown}
            return FunctionResult(function=made.metadata, value=answer.words, metadata=known)

        parameters = [
            KernelParameterMetadata(
                name=name,
                description=one.get("description"),
                is_required=name in schema.get("required", ()),
                schema_data=one,
            )
            for name, one in schema["properties"].items()
        ]
        made = KernelFunctionFromMethod(run, "limner", parameters=parameters)
        return made

    return KernelPlugin("limner", functions=[adapt(tool) for tool in own.tools])


class PictureChat(OpenAIChatCompletion):
    """OpenAI's chat service, which shows the model the pictures of tools after their results."""

    def _prepare_chat_history_for_request(self, chat_history: ChatHistory, **keys: Any) -> Any:
        shown = ChatHistory(messages=list(_with_pictures(chat_history.messages)))
        return super()._prepare_chat_history_for_request(shown, **keys)


def _with_pictures(messages: list[ChatMessageContent]) -> Iterable[ChatMessageContent]:
    for role, group in groupby(messages, lambda one: one.role):
        some = list(group)
        yield from some
        results = [one for message in some for one in message.items]
        shown = [
            ImageContent(data_uri=address)
            for one in results
            if role is AuthorRole.TOOL and isinstance(one, FunctionResultContent)
            for address in one.metadata.get("limner_pictures", ())
        ]
        if shown:
            yield ChatMessageContent(role=AuthorRole.USER, items=[TextContent(text=SHOWN), *shown])
