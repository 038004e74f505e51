"""Give the picture tools to a model of your own, and answer its calls."""

import asyncio
import json

import limner

# What your model API gets as its list of tools.
tools = limner.create_image_tools()
definitions = [
    {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    for tool in tools
]

# What the model asked for: two calls in one turn.
calls = [
    limner.ToolCall(name="image_generate", arguments={"prompt": "a fox under the moon"}),
    limner.ToolCall(name="image_generate", arguments={"prompt": ""}),
]


async def main() -> None:
    registry = limner.ToolRegistry(tools)
    for result in await registry.execute_parallel(calls, limner.ToolContext()):
        if result.ok:
            print(json.loads(result.value)["path"], f"${result.cost_usd}")
        else:
            print(result.code, result.error)


asyncio.run(main())
