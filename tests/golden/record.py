"""What others rely on, as files: `python -m tests.golden.record` writes them anew.

Each snapshot is computed from the package as its users meet it. A test compares it with its file.
Structure and the words that specifications fix are recorded; other wording is not.
"""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.golden import api, flags, protocols, runs, seeds

FOLDER = Path(__file__).parent

SNAPSHOTS: dict[str, Callable[[], Any]] = {
    "tools": api.tools,
    "mcp": protocols.mcp_listing,
    "cli_flags": flags.flags,
    "cli_exit_codes": runs.exit_codes,
    "cli_json": runs.json_fields,
    "chat_stream": runs.stream_events,
    "app_server_schemas": protocols.app_server_schemas,
    "app_server_methods": protocols.app_server_methods,
    "settings": api.settings,
    "errors": api.error_classes,
    "public_api": api.public_api,
    "seed_texts": seeds.seed_texts,
}


def check(name: str) -> None:
    """Compare a snapshot with its file; a difference fails the test and is shown whole."""
    recorded = _file(name).read_text(encoding="utf-8").splitlines()
    now = _text(name).splitlines()
    lines = list(difflib.unified_diff(recorded, now, "recorded", "now", lineterm="", n=6))
    if lines:
        again = f"If this is meant, record it again: python -m tests.golden.record {name}"
        pytest.fail("\n".join([f"{_file(name).name} differs. {again}", *lines]), pytrace=False)


def _file(name: str) -> Path:
    return FOLDER / f"{name}.json"


def _text(name: str) -> str:
    value = SNAPSHOTS[name]()
    return json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for snapshot in sys.argv[1:] or SNAPSHOTS:
        _file(snapshot).write_text(_text(snapshot), encoding="utf-8")
