"""A real PostgreSQL server in a temporary folder: started once by each process of the tests."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from tests.servers.components import skipped_without

# Debian keeps the programs of each version in a folder of its own.
FOLDERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
INITDB = shutil.which("initdb", path=os.pathsep.join([*map(str, FOLDERS), os.environ["PATH"]]))
MISSING = [
    name for name, there in (("postgresql", INITDB), ("psycopg", find_spec("psycopg"))) if not there
]
needs_postgres = skipped_without(MISSING)
ACCESS = """\
local all guarded scram-sha-256
local all all trust
"""


class PostgresServer:
    """A server on a Unix socket. It asks only the user `guarded` for a password."""

    def __init__(self, folder: Path, *, pid: int) -> None:
        self.folder, self._pid = folder, pid

    def url(
        self,
        *,
        user: str = "limner",
        database: str = "postgres",
        schema: str = "",
        host: str | None = None,
    ) -> str:
        """The address of a database; its tables are in the schema, and TCP leads to a ``host``."""
        options = f"&options={quote(f'-csearch_path={schema}')}" if schema else ""
        place = quote(host or str(self.folder), safe="")
        return f"postgresql://{user}@/{database}?host={place}{options}"

    def new_url(self) -> str:
        """The address of a new schema without tables."""
        return self.url(schema=self.new_schema())

    def new_schema(self) -> str:
        """The name of a new schema without tables."""
        schema = f"t_{secrets.token_hex(6)}"
        self.run(f"CREATE SCHEMA {schema}")
        return schema

    def cpu_s(self) -> float:
        """The processor time of the server and of the connections that were closed."""
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def run(self, statement: str, *, url: str | None = None) -> list[tuple[object, ...]]:
        """Run a statement and return its rows."""
        import psycopg

        with psycopg.connect(url or self.url(), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return [] if cursor.description is None else cursor.fetchall()


@contextmanager
def running_postgres(*, listen: Sequence[str] = (), fsync: str = "off") -> Iterator[PostgresServer]:
    """Run a server until the block ends; it listens at these addresses too."""
    assert INITDB is not None, "PostgreSQL is not installed"
    folder = Path(tempfile.mkdtemp(prefix="limner-pg-"))
    folder.chmod(0o711)  # a client in another user namespace needs its socket
    # PostgreSQL refuses to run as root.
    user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
    user = [*user, "--pdeathsig=QUIT"] if os.geteuid() == 0 else []
    if user:
        shutil.chown(folder, "nobody", "nogroup")
    data = folder / "data"
    made = ["--username=limner", "--auth=trust", "--locale=C.UTF-8", "--encoding=UTF8", "--no-sync"]
    subprocess.run([*user, INITDB, "-D", data, *made], check=True, capture_output=True, cwd=folder)
    remote = "".join(f"host all all {address}/24 trust\n" for address in listen)
    (data / "pg_hba.conf").write_text(ACCESS + remote)
    addresses = ",".join(listen)
    facts = {"listen_addresses": addresses, "unix_socket_directories": folder, "fsync": fsync}
    options = [word for key, value in facts.items() for word in ("-c", f"{key}={value}")]
    program = [*user, Path(INITDB).with_name("postgres"), "-D", data, *options]
    with subprocess.Popen(program, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = ""
            while "ready to accept connections" not in said:
                said = process.stderr.readline()
                assert said, f"PostgreSQL ended with {process.wait()}"
            # What it says from here on must not fill the pipe.
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield PostgresServer(folder, pid=process.pid)
        finally:
            # The clients that a test left behind are cut off.
            process.send_signal(signal.SIGINT)
            process.wait(30)
    shutil.rmtree(folder, ignore_errors=True)
