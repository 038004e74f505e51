"""What every test may rely on, wherever the tests are started from."""

from __future__ import annotations

import signal

# Started in the background of a shell script, the tests would inherit deafness to Ctrl-C, and with
# them the programs whose answer to Ctrl-C they examine.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
