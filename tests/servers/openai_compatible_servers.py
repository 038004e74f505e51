"""Servers that speak OpenAI's images API, each in its own way, as people really run them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from limner.testing.servers.http_server import ReceivedRequest, Reply, json_reply
from limner.testing.servers.openai_server import OpenAIServer, error_reply


class LocalAIServer(OpenAIServer):
    """Wants no key and no model, answers by an address of its own unless asked otherwise."""

    def is_allowed(self, headers: Mapping[str, str]) -> bool:
        return "authorization" not in headers and "api-key" not in headers

    def drawn(self, body: Mapping[str, Any], *, kind: str = "image_generation") -> Reply:
        if body.get("response_format") == "b64_json":
            return super().drawn(body, kind=kind)
        counts = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
        item = {"embedding": None, "index": 0, "url": f"{self.origin}/files/b6476.png"}
        return json_reply({"created": 1, "id": "1d01", "data": [item], "usage": counts})


class GatewayServer(OpenAIServer):
    """Has a GPT Image model under a name of its own, which knows no ``response_format``."""

    def drawn(self, body: Mapping[str, Any], *, kind: str = "image_generation") -> Reply:
        if "response_format" in body:
            message = "Unknown parameter: 'response_format'."
            return error_reply(400, message, code="unknown_parameter", param="response_format")
        return super().drawn(body, kind=kind)


class AzureServer(GatewayServer):
    """One deployment of Azure OpenAI, by its dated API."""

    prefix = "/openai/deployments/drawer"

    def answer(self, seen: ReceivedRequest) -> Reply:
        if self.route(seen) != "file" and seen.query.get("api-version") != ["2025-04-01-preview"]:
            return json_reply(
                {"error": {"code": "404", "message": "Resource not found"}}, status=404
            )
        return super().answer(seen)

    def is_allowed(self, headers: Mapping[str, str]) -> bool:
        return "api-key" in headers and "authorization" not in headers
