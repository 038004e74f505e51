"""One span for each call, by the conventions for generative AI, with no word of what was said."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from tests.wires.wire_prompts import FULL, LOOK

from limner.errors import ProviderUnavailable
from limner.models.remote import RemoteModel
from limner.testing.servers.gemini_server import GeminiServer
from limner.testing.servers.model_server import ModelAnswer, StreamError

EXPORTER = InMemorySpanExporter()


@pytest.fixture
def spans() -> Iterator[Callable[[], list[ReadableSpan]]]:
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(EXPORTER))
        trace.set_tracer_provider(provider)
    EXPORTER.clear()
    yield lambda: list(EXPORTER.get_finished_spans())
    EXPORTER.clear()


async def test_a_call_is_one_span_with_names_and_numbers(
    spans: Callable[[], list[ReadableSpan]], connect: Callable[..., RemoteModel]
) -> None:
    with GeminiServer() as server:
        await connect("gemini-generate-content", server.base_url).ask(FULL)
    (span,) = spans()
    assert (span.name, span.kind) == ("chat gemini-3.8-flash", SpanKind.CLIENT)
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.request.model": "gemini-3.8-flash",
        "gen_ai.request.max_tokens": 500,
        "gen_ai.response.model": "gemini-test-001",
        "gen_ai.response.finish_reasons": ("end",),
        "gen_ai.usage.input_tokens": 1200,
        "gen_ai.usage.output_tokens": 45,
        "gen_ai.usage.cache_read.input_tokens": 1024,
        "gen_ai.usage.reasoning.output_tokens": 20,
        "limner.kind": "test",
    }
    assert span.status.status_code is StatusCode.UNSET


async def test_a_failure_is_told_by_its_code_and_not_by_its_words(
    spans: Callable[[], list[ReadableSpan]], connect: Callable[..., RemoteModel]
) -> None:
    with GeminiServer() as server:
        server.model_answer = ModelAnswer(
            error=StreamError(code="UNAVAILABLE", message="secret words")
        )
        with pytest.raises(ProviderUnavailable):
            await connect("gemini-generate-content", server.base_url).ask(LOOK)
    (span,) = spans()
    assert span.attributes is not None
    assert span.attributes["error.type"] == "MODEL_UNAVAILABLE"
    assert span.attributes["gen_ai.response.finish_reasons"] == ("error",)
    assert span.attributes["gen_ai.usage.input_tokens"] == 1200
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
    assert span.events == ()
    assert "secret" not in span.to_json()


def test_a_program_without_opentelemetry_does_not_load_it() -> None:
    script = """
import sys
from limner.models import telemetry
with telemetry.span(provider="p", model="m", kind="k", max_tokens=1) as record:
    record.attributes["x"] = 1
print([name for name in sys.modules if name.startswith("opentelemetry.")])
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
