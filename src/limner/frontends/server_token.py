"""The token options of a server on TCP -> the token that its clients must send, or None.

Every user of a machine can connect to its TCP ports, also on a loopback address. So a server on TCP
has a token: the user gives one, or the server makes one and keeps it in a file that only its owner
can read. Standard streams and Unix sockets need none.
"""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import os
import re
import secrets
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from limner.content import Discreet
from limner.errors import UserError
from limner.storage.files import write_new
from limner.storage.home import Home

MIN_TOKEN_CHARS = 16
MAX_TOKEN_FILE_BYTES = 16 * 1024
_NOT_IN_A_NAME = re.compile(r"[^\w.-]+")


class ServerToken(Discreet, frozen=True, kw_only=True):
    """The secret of one server. ``file`` contains it if the server made it."""

    unshown = ("value",)

    value: str
    file: Path | None = None

    def matches(self, text: str) -> bool:
        """Whether a client sent this token; the comparison takes the same time for any text."""
        return hmac.compare_digest(text.encode(errors="surrogateescape"), self.value.encode())

    def authorizes(self, headers: Sequence[str]) -> bool:
        """Whether the ``Authorization`` headers of a request are one, with this token."""
        if len(headers) != 1:
            return False
        scheme, _, value = headers[0].partition(" ")
        return scheme.lower() == "bearer" and self.matches(value.strip())


class TokenOptions(Discreet, frozen=True, kw_only=True):
    """What the user said about the token: ``given`` is one to use; ``is_off`` means none at all.

    Raises:
        UserError: the user said both, or the token is too short.
    """

    unshown = ("given",)

    given: str | None = None
    is_off: bool = False

    def __post_init__(self) -> None:
        if self.given is None:
            return
        if self.is_off:
            raise UserError("--no-token contradicts the token that is given")
        if len(self.given) < MIN_TOKEN_CHARS:
            raise UserError(
                f"the token has fewer than {MIN_TOKEN_CHARS} characters",
                hint="Leave it out, and the server makes one.",
            )

    @classmethod
    def read(
        cls, *, file: Path | None, variable: str, env: Mapping[str, str], is_off: bool
    ) -> TokenOptions:
        """Take the token from the file, or else from the variable.

        Raises:
            UserError: the file cannot be read or contains no token, or as the class.
        """
        given = env.get(variable, "").strip() if file is None else _read(file)
        return cls(given=given or None, is_off=is_off)


@contextmanager
def open_token(
    options: TokenOptions, *, home: Home, server: str, host: str, port: int
) -> Generator[ServerToken | None]:
    """The token of a server while it listens. A token that is made here ends with the block.

    Raises:
        UserError: the user wants none, but other machines can connect.
        StorageError: the file of the token cannot be written.
    """
    if options.is_off:
        if not is_loopback(host):
            raise UserError(
                f"{host} can be reached from other machines, so clients need a token",
                hint="Leave out --no-token, or listen on 127.0.0.1.",
            )
        yield None
    elif options.given is not None:
        yield ServerToken(value=options.given)
    else:
        name = _NOT_IN_A_NAME.sub("_", f"{server}-{host}-{port}")
        file = Path(os.path.realpath(home.tokens)) / name
        token = ServerToken(value=secrets.token_urlsafe(32), file=file)
        write_new(file, token.value.encode(), overwrite=True, mode=0o600)
        try:
            yield token
        finally:
            # A server in another container may have replaced it.
            with contextlib.suppress(OSError):
                if token.matches(file.read_text(encoding="utf-8")):
                    file.unlink()


def describe(token: ServerToken | None) -> str | None:
    """The line that says where clients find a token that was made."""
    if token is None or token.file is None:
        return None
    return f"clients send the bearer token in {token.file}"


def is_loopback(host: str) -> bool:
    """Whether an address can be reached only from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            token = file.read(MAX_TOKEN_FILE_BYTES).decode("ascii").strip()
    except (OSError, ValueError) as error:
        raise UserError(f"the token file {path} cannot be read: {error}") from error
    if not token:
        raise UserError(f"the token file {path} contains no token")
    return token
