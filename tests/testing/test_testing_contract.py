"""The contract suite on providers that each break one rule: the failure says which, and how."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from limner.testing import ProviderContract

BROKEN = Path(__file__).with_name("broken_providers.py")
EXAMPLE = Path(__file__).parents[2] / "examples" / "plug_in"
GOOD = "a good response with a picture of 204,800 bytes"
STATUS_402 = (
    'status 402, body b\'{"error": {"message": "1500 characters, 429, 503 timeout"}}\', '
    "headers {'Location': 'https://example.com/'}"
)
ECHO_400 = (
    'status 400, body b\'{"error": {"message": "sk-contract/0123456789+abcdef", "code": '
    '"sk-contract/0123456789+abcdef"}, "detail": "sk-contract/0123456789+abcdef"}\', '
    "headers {'X-Request-Id': 'sk-contract/0123456789+abcdef'}"
)
REQUEST = "a drawing by brush-1, 1024x1024"
BOUGHT = "how many requests that buy a picture arrived"


def said(rule: str, *facts: tuple[str, str]) -> str:
    lines = [f"  {name + ':':10}{text}" for name, text in (*facts, ("request", REQUEST))]
    return "\n".join([f"AssertionError: Rule broken: {rule}", *lines])


# The only failure of each provider.
FAILURES = {
    "Speechless": said(
        "a picture arrives whole and with a receipt",
        ("checked", "the prompt_used of the receipt"),
        ("expected", "a text"),
        ("found", "' '"),
        ("played", GOOD),
    ),
    "Wasteful": said(
        "a picture arrives whole and with a receipt",
        ("checked", "the bytes in the sink"),
        ("expected", "the picture, 204,800 bytes"),
        ("found", "204,804 bytes"),
        ("played", GOOD),
    ),
    "Uniform": said(
        "each quality is sent in the words of the service",
        ("checked", "the quality 'standard' in the requests"),
        ("expected", "'broad brush'"),
        ("found", "'not there'"),
        ("played", GOOD),
    ),
    "Confused": said(
        "every status is the right error and is sent once",
        ("checked", "the error of generate"),
        ("expected", "ProviderPaymentRequired"),
        ("found", "ProviderBadRequest: no"),
        ("played", STATUS_402),
    ),
    "Crashing": said(
        "every status is the right error and is sent once",
        ("checked", "the error of generate"),
        ("expected", "ProviderPaymentRequired"),
        ("found", "KeyError: 'credit'"),
        ("played", STATUS_402),
    ),
    "Talkative": said(
        "no failure shows the key",
        ("checked", "the hint of the error"),
        ("expected", "a text without the key"),
        ("found", "'The key is sk-contract/0123456789+abcdef.'"),
        ("played", ECHO_400),
        ("error", "ProviderBadRequest: Atelier answered 400: •••"),
    ),
    "Leaky": said(
        "no debug output shows the key",
        ("checked", "the debug output"),
        ("expected", "no key"),
        ("found", "'…n the snow, key •••/0123456789+'"),
        ("played", GOOD),
    ),
    "Hasty": said(
        "a rate limit is waited for and then reported",
        ("checked", BOUGHT),
        ("expected", "2 or more"),
        ("found", "1"),
        ("played", "status 429, body b'{}', headers {}"),
        ("error", "ProviderRateLimited: Atelier answered 429: Too Many Requests"),
    ),
    "Gloomy": said(
        "a service that cannot be reached costs nothing",
        ("checked", "error.may_be_billed"),
        ("expected", "False"),
        ("found", "True"),
        ("played", "no server listens at the base URL"),
        (
            "error",
            "ProviderUnavailable: Atelier cannot be reached (ConnectError); nothing was sent",
        ),
    ),
    "Insistent": said(
        "silence may be billed and is not resent",
        ("checked", BOUGHT),
        ("expected", "1"),
        ("found", "2"),
        ("played", "no response to the request that buys the picture"),
        (
            "error",
            "ProviderUnavailable: Atelier did not answer in time; the request may be billed and "
            "was not sent again",
        ),
    ),
    "Careless": said(
        "an answer that breaks off may be billed and is not resent",
        ("checked", "error.may_be_billed"),
        ("expected", "True"),
        ("found", "False"),
        ("played", "the first half of a good response, then the connection closes"),
        (
            "error",
            "ProviderUnavailable: The connection to Atelier broke off; the request may be billed "
            "and was not sent again",
        ),
    ),
    "Trusting": said(
        "a web page instead of an answer is a bad answer",
        ("checked", "the error of generate"),
        ("expected", "BadProviderImage"),
        ("found", "ProviderUnavailable: try later"),
        (
            "played",
            'status 200, body b\'<!DOCTYPE html><html><body>{"data": [{"b64_json": "AAAA"}]}'
            "</body></html>', headers {'Content-Type': 'text/html'}",
        ),
    ),
    "Overflowing": said(
        "a sink that is full stops the picture",
        ("checked", "the error of generate"),
        ("expected", "ImageTooLarge"),
        ("found", "BadProviderImage: too long"),
        ("played", GOOD),
    ),
    "Stubborn": said(
        "giving up stops the request",
        ("checked", "the end of a generate that is cancelled"),
        ("expected", "CancelledError"),
        (
            "found",
            "Receipt(prompt_used='done anyway', cost_nano=None, cost_source='table', extras={}, "
            "scene=None)",
        ),
        ("played", "no response to the request that buys the picture"),
    ),
}


def shown(failure: ElementTree.Element) -> str:
    """The last error that pytest shows for a failure."""
    lines = [line[4:] for line in (failure.text or "").splitlines() if line.startswith("E   ")]
    first = max(number for number, line in enumerate(lines) if line.startswith("AssertionError"))
    return "\n".join(lines[first:])


@pytest.mark.slow
def test_each_broken_provider_fails_the_test_of_its_rule_and_no_other(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for file in (BROKEN, *EXAMPLE.glob("*.py")):
        shutil.copy(file, tmp_path)
    words = ["-q", "--tb=short", "-p", "no:cacheprovider", f"--junitxml={report}", BROKEN.name]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        env={"HOME": str(tmp_path), "PATH": os.defpath},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    cases = list(ElementTree.parse(report).iter("testcase"))
    found = {
        (case.attrib["classname"].rpartition(".Test")[2], case.attrib["name"]): shown(failure)
        for case in cases
        if (failure := case.find("failure")) is not None
    }
    assert {name: message for (name, _), message in found.items()} == FAILURES
    assert len(found) == len(FAILURES)
    for (_, test), message in found.items():
        rule = test.removeprefix("test_").removesuffix("[drawing]").replace("_", " ")
        assert message.startswith(f"AssertionError: Rule broken: {rule}\n")
    # The traceback shows the line that raised the error.
    assert "    raise self.changed(error) from error\n" in done.stdout


def test_every_rule_is_broken_once() -> None:
    rules = {
        name.removeprefix("test_").replace("_", " ")
        for name in vars(ProviderContract)
        if name.startswith("test_")
    }
    broken = {text.splitlines()[0].partition("Rule broken: ")[2] for text in FAILURES.values()}
    assert broken == rules
