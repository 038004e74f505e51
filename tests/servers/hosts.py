"""Names -> hosts on this machine: network, process table, boot, disk and host name of their own.

A host reaches only this machine, by a link that a test can cut. It needs root and iproute2.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.servers.components import skipped_without

CAN_MAKE_HOSTS = os.name == "posix" and os.geteuid() == 0 and shutil.which("ip") is not None
needs_hosts = skipped_without([] if CAN_MAKE_HOSTS else ["root and iproute2"])
# What a process of a host sees: its own boot id, host name and folder.
SCRIPT = """\
set -e
mount --make-rprivate /
mount --bind "$0/boot_id" /proc/sys/kernel/random/boot_id
mount --bind "$0/disk" "$1"
hostname "$2"
cd "$1"
shift 2
exec "$@"
"""


class Host:
    """One host. ``hub`` is the address of this machine in its network.

    Attributes:
        folder: the path of its disk, which is the same on every host and different on each.
    """

    def __init__(self, name: str, number: int, *, place: Path, folder: Path) -> None:
        self.name, self.hub, self.folder = name, f"10.77.{number}.1", folder
        self._namespace = f"limner-{secrets.token_hex(3)}"
        self._link = f"lim{secrets.token_hex(3)}"
        self._address = f"10.77.{number}.2"
        self._place = place
        (place / "disk").mkdir(parents=True)
        (place / "boot_id").write_text(secrets.token_hex(16))

    def command(self, words: Sequence[str]) -> list[str]:
        """A command that runs on this host, in a process table of its own."""
        script = [SCRIPT, str(self._place), str(self.folder), self.name]
        apart = ["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
        return [*self._inside(), *apart, "sh", "-c", *script, *words]

    def cut(self) -> None:
        """Lose what is on its way, without an error on either side."""
        _ip("link", "set", self._link, "down")

    def restore(self) -> None:
        """Let the link work again."""
        _ip("link", "set", self._link, "up")

    @contextmanager
    def running(self) -> Iterator[None]:
        """Make the network of the host, and remove it."""
        ns, link = self._namespace, self._link
        _ip("netns", "add", ns)
        try:
            _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", ns)
            _ip("address", "add", f"{self.hub}/24", "dev", link)
            _ip("link", "set", link, "up")
            _ip("-n", ns, "address", "add", f"{self._address}/24", "dev", "eth0")
            _ip("-n", ns, "link", "set", "eth0", "up")
            _ip("-n", ns, "link", "set", "lo", "up")
            yield
        finally:
            # The link is an end of a pair, and goes with the other end.
            _ip("netns", "delete", ns)

    @contextmanager
    def reaching(self, ports: Sequence[int]) -> Iterator[None]:
        """Let servers of this machine's loopback answer at the loopback of the host too."""
        inside = [f"127.0.0.1:{port}={self.hub}:{port}" for port in ports]
        outside = [f"{self.hub}:{port}=127.0.0.1:{port}" for port in ports]
        relay = [sys.executable, "-m", "tests.servers.tcp_relay"]
        with _process([*relay, *outside]), _process([*self._inside(), *relay, *inside]):
            yield

    def _inside(self) -> list[str]:
        return ["ip", "netns", "exec", self._namespace]


@contextmanager
def running_hosts(names: Sequence[str], *, folder: Path) -> Iterator[list[Host]]:
    """Hosts that cannot reach each other; ``folder`` gets what is on their disks."""
    disk = folder / "disk"
    disk.mkdir()
    with ExitStack() as stack:
        hosts: list[Host] = []
        for number, name in enumerate(names, start=secrets.randbelow(200) + 1):
            host = Host(name, number, place=folder / name, folder=disk)
            stack.enter_context(host.running())
            hosts.append(host)
        yield hosts


@contextmanager
def _process(words: Sequence[str]) -> Iterator[None]:
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline(), "the relay did not start"
            yield
        finally:
            process.terminate()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
