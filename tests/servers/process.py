"""One of the fake services as a process: `python -m tests.servers.process openai --help`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from pathlib import Path

from limner.testing.servers.http_server import Gate, LocalServer, Reply
from limner.testing.servers.openai_server import OpenAIServer
from limner.testing.servers.replicate_server import ReplicateServer

# The routes of the paid requests.
PAID = {"openai": ["generate", "edit"], "replicate": ["create"]}


def main() -> None:
    """Print the port on standard output, then serve until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("service", choices=PAID)
    parser.add_argument("--port", type=int, default=0, help="0 chooses a free one")
    parser.add_argument("--picture", required=True, help="the file that is drawn every time")
    parser.add_argument("--hold", action="store_true", help="never answer the paid request")
    parser.add_argument("--looks", type=int, default=0, help="looks before a prediction ends")
    args = parser.parse_args()
    server = _server(args.service, Path(args.picture).read_bytes(), args)
    for route in PAID[args.service] if args.hold else []:
        server.always(route, Reply(hold=Gate()))
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(server.serve(announce=_announce))


def _server(service: str, picture: bytes, args: argparse.Namespace) -> LocalServer:
    if service == "openai":
        return OpenAIServer(picture, port=args.port)
    replicate = ReplicateServer(picture, port=args.port)
    replicate.looks = args.looks
    return replicate


def _announce(port: int) -> None:
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
