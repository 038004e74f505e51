"""The endpoint for Prometheus: closed without a token, and right about what was paid."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path

import pytest
from tests.batches.conftest import drawings, lim, services, store_url
from tests.servers.codex_messages import LIMNER
from tests.servers.components import needs

from limner import Limner
from limner.frontends.metrics_option import metrics_served
from limner.metrics import FAMILIES, render
from limner.storage.home import Home
from limner.testing import FakeServices

__all__ = ["lim", "services", "store_url"]

TOKEN = "a-token-of-this-test"
pytestmark = needs("uvicorn")


def get(
    port: int, path: str = "/metrics", *, method: str = "GET", headers: Mapping[str, str]
) -> tuple[int, str | None, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, headers=dict(headers))
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.getheader("content-type"), text


def port_in(said: str) -> int:
    found = re.search(r"limner: metrics at http://127\.0\.0\.1:(\d+)/metrics\n", said)
    assert found, said
    return int(found[1])


def samples(text: str) -> dict[str, float]:
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


async def test_only_a_program_with_the_token_reads_the_metrics(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIMNER_METRICS_TOKEN", TOKEN)
    has_token = {"Authorization": f"Bearer {TOKEN}"}
    plain = "text/plain; charset=utf-8"
    async with metrics_served(("127.0.0.1", 0), home=Home(tmp_path)):
        port = port_in(capsys.readouterr().err)

        async def ask(
            path: str = "/metrics", *, method: str = "GET", headers: Mapping[str, str]
        ) -> tuple[int, str | None, str]:
            return await asyncio.to_thread(get, port, path, method=method, headers=headers)

        refused = (401, plain, "A bearer token is needed.\n")
        assert await ask(headers={}) == refused
        assert await ask(headers={"Authorization": "Bearer another"}) == refused
        assert await ask("/", headers={}) == refused
        page = {**has_token, "Origin": "https://example.com"}
        assert await ask(headers=page) == (403, plain, "Web pages are not served here.\n")
        assert await ask("/", headers=has_token) == (404, plain, "There is only /metrics.\n")
        assert await ask(method="POST", headers=has_token) == (405, plain, "Use GET.\n")
        status, kind, text = await ask(headers=has_token)
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    declared = [line for line in text.splitlines() if line.startswith("# TYPE")]
    assert declared == [f"# TYPE {family.name} {family.kind}" for family in FAMILIES]
    with pytest.raises(ConnectionRefusedError):
        get(port, headers=has_token)


async def test_the_metrics_of_a_batch_are_those_of_its_ledger(
    services: FakeServices, lim: Limner
) -> None:
    def now() -> dict[str, float]:
        return samples(render(FAMILIES))

    before = now()
    services.images.refuse()
    status = await lim.batch(drawings(3), budget_usd=1)
    changed = {
        name: value - before.get(name, 0)
        for name, value in now().items()
        if value != before.get(name, 0)
    }
    (model,) = {re.findall('model="(.*?)"', name)[0] for name in changed if "model=" in name}
    calls = f'limner_calls_total{{provider="openai-image",model="{model}"'
    usd = f'limner_ledger_usd_total{{provider="openai-image",model="{model}"'
    assert changed[f'{calls},outcome="ok"}}'] == 2
    assert changed[f'{calls},outcome="IMAGE_GEN_REJECTED"}}'] == 1
    assert changed[f'{usd},state="settled"}}'] == pytest.approx(status.spent_nano / 1e9)
    assert changed[f'{usd},state="released"}}'] > 0
    assert changed['limner_call_seconds_count{provider="openai-image"}'] == 3
    assert changed['limner_pictures_stored_total{made="drawn"}'] == 2
    assert changed['limner_batch_rows_ended_total{outcome="done"}'] == 2
    assert changed['limner_batch_rows_ended_total{outcome="failed"}'] == 1
    assert changed['limner_service_responses_total{provider="openai-image",status="200"}'] == 2
    assert changed['limner_store_transaction_seconds_count{kind="write",outcome="ok"}'] > 6
    assert {"limner_calls_in_flight{}", "limner_reserved_usd{}"}.isdisjoint(changed)
    assert now()['limner_batch_rows{state="done"}'] == 2
    assert now()['limner_batch_rows{state="failed"}'] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["work", "--wait"],
        ["mcp", "--http", "127.0.0.1:0"],
        ["app-server", "--listen", "unix://"],
        ["studio", "--no-open", "--port", "0"],
    ],
    ids=lambda words: words[0],
)
def test_every_server_and_worker_serves_its_metrics_until_it_ends(
    services: FakeServices, words: list[str]
) -> None:
    process = subprocess.Popen(
        [*LIMNER, *words, "--metrics", "127.0.0.1:0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env=services.env,
        cwd=services.folder,
    )
    with process as started:
        assert started.stderr is not None
        port = port_in(started.stderr.readline())
        file = Path(started.stderr.readline().rpartition(" ")[2].strip())
        text = get(port, headers={"Authorization": f"Bearer {file.read_text()}"})[2]
        started.send_signal(signal.SIGINT)
        started.stderr.read()
    assert samples(text)["limner_start_time_seconds{}"] > 1_700_000_000
    assert not file.exists()
