"""What the tests of the MCP server share with those of the other doors."""

from __future__ import annotations

from tests.acceptance.conftest import openai, replicate, studio

__all__ = ["openai", "replicate", "studio"]
