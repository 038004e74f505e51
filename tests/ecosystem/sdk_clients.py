"""The official Python SDK, in four releases -> what each client gets from `limner mcp`.

make ecosystem ARGS="--only clients"
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from datetime import UTC, datetime

from tests.ecosystem.environments import ALONE, environment
from tests.ecosystem.pages import Page
from tests.ecosystem.report import SdkClient
from tests.ecosystem.runs import mcp_tools

VERSIONS = ("1.2.0", "1.9.4", "1.30.0", "2.3.0")
LIMIT_S = 300
# These import a part of pydantic that its later releases do not have.
ALSO: dict[str, tuple[str, ...]] = dict.fromkeys(("1.2.0", "1.9.4"), ("pydantic<2.11",))
# It runs in the environment of the release. Names are camelCase in the first, snake_case later.
CLIENT = """\
import asyncio, json, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

def either(value, one, other):
    return getattr(value, one) if hasattr(value, one) else getattr(value, other)

async def call(session, name, arguments):
    try:
        result = await asyncio.wait_for(session.call_tool(name, arguments), 120)
    except Exception as error:
        return {"raised": str(error)}
    kinds = [
        either(one, "mimeType", "mime_type") if one.type == "image" else one.type
        for one in result.content
    ]
    said = [one.text for one in result.content if one.type == "text"]
    return {"failed": either(result, "isError", "is_error"), "kinds": kinds, "said": said}

async def main():
    about = json.loads(sys.argv[1])
    async with stdio_client(StdioServerParameters(**about)) as streams:
        async with ClientSession(*streams) as session:
            opened = await session.initialize()
            listed = await session.list_tools()
            drawn = await call(session, "image_generate", {"prompt": "a red fox"})
            path = json.loads(drawn["said"][0])["path"]
            question = {"path": path, "question": "How large is it?"}
            found = {
                "revision": either(opened, "protocolVersion", "protocol_version"),
                "tools": [tool.name for tool in listed.tools],
                "drawn": drawn,
                "inspected": await call(session, "inspect_image", question),
                "refused": await call(session, "image_generate", {"prompt": ""}),
                "unknown": await call(session, "nothing", {}),
            }
            print(json.dumps(found))

asyncio.run(main())
"""


def run() -> tuple[SdkClient, ...]:
    """Run the client of each release."""
    clients = tuple(map(_run, VERSIONS))
    for client in clients:
        print(client.line(), flush=True)
    return clients


def _run(version: str) -> SdkClient:
    page = Page(
        name=f"mcp-{version}", title="mcp", packages=(f"mcp=={version}", *ALSO.get(version, ()))
    )
    python = environment(page, has_limner=False)
    with tempfile.TemporaryDirectory(prefix="limner-ecosystem-") as home:
        env = {"PATH": os.environ["PATH"], "HOME": home}
        about = {
            "command": str(environment(ALONE).with_name("limner")),
            "args": ["mcp"],
            "env": env,
        }
        done = subprocess.run(
            [str(python), "-c", CLIENT, json.dumps(about)],
            cwd=home,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    refused = json.loads(found["refused"]["said"][0]) if found["refused"]["failed"] else {}
    inspected = found["inspected"]
    unknown = found["unknown"].get("raised") or " ".join(found["unknown"]["said"])
    return SdkClient(
        version=version,
        revision=found["revision"],
        tools=len({*found["tools"]} & {*mcp_tools()}),
        offered=len(mcp_tools()),
        drawn=", ".join(found["drawn"]["kinds"]),
        inspected="failed" if inspected["failed"] else "answered",
        refused=refused.get("error", {}).get("code", "no error"),
        unknown=unknown,
        day=datetime.now(UTC).date().isoformat(),
    )
