"""A file -> the app-server, with a profile of its main thread between two signals in that file."""

from __future__ import annotations

import asyncio
import cProfile
import signal
import sys
from pathlib import Path

from limner.frontends.cli.main import main as run_limner

BEGIN, END = signal.SIGUSR1, signal.SIGUSR2


def main(record: Path) -> None:
    profile = cProfile.Profile()

    def end() -> None:
        profile.disable()
        # The file must never be there with only a part of its content.
        profile.dump_stats(record.with_suffix(".part"))
        record.with_suffix(".part").rename(record)

    class Loop(asyncio.SelectorEventLoop):
        def run_forever(self) -> None:
            self.add_signal_handler(BEGIN, profile.enable)
            self.add_signal_handler(END, end)
            super().run_forever()

    asyncio.DefaultEventLoopPolicy._loop_factory = Loop  # pyright: ignore[reportAttributeAccessIssue]
    sys.argv = ["limner", "app-server"]
    run_limner()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
