"""A kind of worker -> what it gets when it turns against this process.

The host and the worker become the same ordinary user, since the kernel hides little from root.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
from pathlib import Path

import msgspec
from compromised_worker import ORDINARY_USER, SECRET, Target

from limner.imaging.limits import OCR_LIMITS, WorkerLimits
from limner.imaging.process import WorkerJob, WorkerProcess

PR_SET_DUMPABLE, PR_SET_PTRACER, ANY = 4, 0x59616D61, -1


def main(kind: str, way: str, home: Path) -> None:
    module = f"compromised_{kind}"
    (home / f"{module}.py").write_text(
        f"from compromised_worker import main\nmain({kind!r}, {way!r})\n"
    )
    sys.path.append(str(home))
    plant(home)
    tcp, udp = socket.create_server(("127.0.0.1", 0)), socket.socket(type=socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    unix, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    abstract_name = f"\0limner-{os.getpid()}"
    for server, name in ((unix, str(home / "socket")), (abstract, abstract_name)):
        server.bind(name)
        server.listen()
    secret = ctypes.create_string_buffer(SECRET)
    worker = WorkerProcess(OCR_LIMITS if kind == "ocr" else WorkerLimits(), module)
    become_ordinary(home)
    target = Target(
        home=str(home),
        host=os.getpid(),
        address=ctypes.addressof(secret),
        tcp_port=tcp.getsockname()[1],
        udp_port=udp.getsockname()[1],
        abstract=abstract_name,
    )
    job = WorkerJob(header={"op": "attack", "target": msgspec.to_builtins(target)}, payload=b"")
    value = worker.do(job).value
    worker.close()
    report = {**value, "protections": msgspec.to_builtins(worker.protections)}
    sys.stdout.write(json.dumps(report))


def plant(home: Path) -> None:
    for name in (".ssh/id_ed25519", ".limner/keys.toml", "victim", "doomed"):
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_bytes(SECRET)


def become_ordinary(home: Path) -> None:
    if os.getuid() == 0:
        for path in (home, *home.rglob("*")):
            os.chown(path, ORDINARY_USER, ORDINARY_USER)
        os.setgroups([])
        os.setgid(ORDINARY_USER)
        os.setuid(ORDINARY_USER)
    # A program that uses limner as a library: other programs of its user may look into it.
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    libc.prctl(PR_SET_PTRACER, ANY, 0, 0, 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
