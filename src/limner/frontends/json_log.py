"""The option ``--log-json FILE`` of commands that run for long -> their log as lines of JSON."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from limner.errors import UserError
from limner.log_fields import current_fields
from limner.net.redaction import redact

if TYPE_CHECKING:
    from argparse import ArgumentParser

MAX_CHARS = 8_000


def add_log_option(parser: ArgumentParser) -> None:
    """Add the option to a command."""
    parser.add_argument(
        "--log-json",
        type=Path,
        metavar="FILE",
        help="append the log to a file, one JSON object on each line; /dev/stderr is a file too",
    )


def log_to(file: Path | None) -> None:
    """Write the log of this process to a file from now on; None leaves everything as it is.

    Raises:
        UserError: the file cannot be written.
    """
    if file is None:
        return
    from logging.handlers import WatchedFileHandler  # noqa: PLC0415 - few ask for it

    try:
        # It notices if a log rotation has moved the file.
        handler = WatchedFileHandler(file, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UserError(f"the log {file} cannot be written: {error.strerror}") from error
    handler.setFormatter(JsonLines())
    ours = logging.getLogger("limner")
    ours.setLevel(logging.INFO)
    # Warnings of other libraries belong into the same file.
    logging.getLogger().addHandler(handler)


class JsonLines(logging.Formatter):
    """A record as one line: time, level, logger, message, and the ids of its work."""

    def format(self, record: logging.LogRecord) -> str:
        """The line. Everything that looks like a secret is hidden."""
        import json  # noqa: PLC0415 - few log so, and each start would wait for it

        facts = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **current_fields(),
        }
        if record.exc_info:
            facts["traceback"] = self.formatException(record.exc_info)
        return json.dumps({name: redact(text)[:MAX_CHARS] for name, text in facts.items()})
