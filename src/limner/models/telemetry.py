"""A model call -> one span, by OpenTelemetry's conventions for generative AI.

limner does not load OpenTelemetry: it records spans in a program that has loaded it, because only
such a program can have set up what receives them. A span has names, numbers and codes, but no text
of a prompt or an answer, and no picture.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from limner import __version__
from limner.errors import LimnerError
from limner.wires.base import Answer, Usage

# The conventions have their own names for some services.
_PROVIDER_NAMES = {"google": "gcp.gemini"}


class SpanRecord:
    """Collects the attributes of one call."""

    def __init__(self) -> None:
        self.attributes: dict[str, Any] = {}

    def add_answer(self, answer: Answer) -> None:
        """Add the facts of the answer."""
        self.attributes["gen_ai.response.finish_reasons"] = (answer.stop,)
        if answer.model is not None:
            self.attributes["gen_ai.response.model"] = answer.model
        if answer.usage is not None:
            self.attributes |= _counts(answer.usage)


@contextmanager
def span(*, provider: str, model: str, kind: str, max_tokens: int) -> Generator[SpanRecord]:
    """Record the call inside the block; ``kind`` is its purpose."""
    record = SpanRecord()
    if sys.modules.get("opentelemetry.trace") is None:
        yield record
        return
    name = _PROVIDER_NAMES.get(provider, provider)
    known = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": name,
        "gen_ai.request.model": model,
        "gen_ai.request.max_tokens": max_tokens,
        "limner.kind": kind,
    }
    # An extra, and loaded already.
    from opentelemetry.trace import SpanKind, Status, StatusCode, get_tracer  # noqa: PLC0415

    with get_tracer("limner", __version__).start_as_current_span(
        f"chat {model}",
        kind=SpanKind.CLIENT,
        attributes=known,
        # OpenTelemetry would record messages of exceptions, which may contain anything.
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        try:
            yield record
        except BaseException as error:
            current.set_attribute("error.type", _error_type(error))
            current.set_status(Status(StatusCode.ERROR))
            raise
        finally:
            current.set_attributes(record.attributes)


def _error_type(error: BaseException) -> str:
    return error.code if isinstance(error, LimnerError) else type(error).__name__


def _counts(usage: Usage) -> dict[str, int]:
    counts = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }
    return {name: count for name, count in counts.items() if count is not None}
