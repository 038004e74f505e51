"""What every test may rely on, wherever the tests are started from."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

# `make fuzz` looks longer wherever a property does not set a number of its own.
settings.register_profile("long", max_examples=5_000, deadline=None)
if os.environ.get("LIMNER_FUZZ") == "long":
    settings.load_profile("long")

# Started in the background of a shell script, the tests would inherit deafness to Ctrl-C, and with
# them the programs whose answer to Ctrl-C they examine.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
