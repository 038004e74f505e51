"""Evidence and a question -> the answer as text: answer, key evidence, caveats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from limner.eyes.evidence import Evidence, Finding
from limner.eyes.report import report
from limner.eyes.rules import findings

WHO_ANSWERS = "Answered by limner/eyes from measurements, not by a model that sees."


def look(pictures: Sequence[Evidence], question: str) -> str:
    """Answer a question about one picture or several; it says so where it cannot."""
    answered = [findings(evidence, question) or [report(evidence)] for evidence in pictures]
    parts = [_body(found) for found in answered]
    if len(parts) > 1:
        parts = [f"Picture {number}\n{part}" for number, part in enumerate(parts, start=1)]
    said = (caveat for found in answered for finding in found for caveat in finding.caveats)
    return "\n\n".join([*parts, _list("Caveats", [*dict.fromkeys(said), WHO_ANSWERS])])


def _body(found: Sequence[Finding]) -> str:
    answer = "\n".join(finding.answer for finding in found)
    evidence = list(dict.fromkeys(line for finding in found for line in finding.evidence))
    body = f"Answer: {answer}"
    return f"{body}\n\n{_list('Key evidence', evidence)}" if evidence else body


def _list(title: str, lines: Iterable[str]) -> str:
    return "\n".join([f"{title}:", *(f"- {line}" for line in lines)])
