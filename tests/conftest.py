"""What every test may rely on, wherever the tests are started from."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from tests.fuzz import IS_LONG
from tests.servers.codex_messages import RECORDS, check_records, drop_records
from tests.servers.message_record import record_messages

pytest_plugins = ["tests.databases", "tests.left_out"]

# A busy machine is slow, which is no fault of the code: no property test has a deadline.
calm = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
# The same code gets the same examples: a run that fails is never a matter of luck.
settings.register_profile("day", calm, max_examples=50, derandomize=True)
# `make fuzz` looks longer wherever a property does not set a number of its own.
settings.register_profile("long", calm, max_examples=5_000)
settings.load_profile("long" if IS_LONG else "day")

# Started in the background of a shell script, the tests would inherit deafness to Ctrl-C, and with
# them the programs whose answer to Ctrl-C they examine.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

record_messages(RECORDS)


@pytest.fixture(autouse=True)
def messages_as_in_codex(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every message that an app-server or a client of ours exchanges is one by Codex's schemas."""
    yield
    marked = {marker.name for marker in request.node.iter_markers()}
    if "no_app_server" in marked:
        drop_records()
    else:
        check_records(invalid_answers="invalid_answers" in marked)


@pytest.fixture
def many_files() -> Iterator[None]:
    """Room for a thousand clients in this process."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
