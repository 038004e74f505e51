"""diffusers: a request -> a process that draws with the user's own weights -> a picture."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import msgspec

from limner.errors import (
    BadProviderImage,
    MissingExtra,
    ProviderBadRequest,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    UserError,
)
from limner.imaging import pipe
from limner.imaging.facts import Preview
from limner.imaging.pool import Imaging
from limner.net.failures import MAX_MESSAGE_CHARS
from limner.net.redaction import redact
from limner.net.sink import Sink
from limner.pictures.request import (
    ImageRequest,
    Progress,
    ProviderCallbacks,
    Receipt,
    SourceImage,
)
from limner.providers.base import Connection
from limner.providers.local_server import parse_fraction
from limner.providers.specs import BUILT_IN

SPEC = BUILT_IN["diffusers"]
MODEL_ENV, DEVICE_ENV = SPEC.variables
WORKER = "limner.providers.diffusers_worker"
NEEDED = ("torch", "diffusers", "transformers", "accelerate")
MAX_PICTURE_BYTES = 256 * 1024 * 1024
# The worker takes 128 MiB in all, and no pipeline draws larger pictures.
MAX_EDGE = 4096
EXIT_TIMEOUT_S = 10.0

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_DEVICE = re.compile(r"cpu|mps|(cuda|xpu)(:[0-9]+)?")
# The variables that the process gets. The hub's key is the only key among them.
_PASSED_ON = re.compile(
    r"PATH|HOME|USER|USERPROFILE|LOCALAPPDATA|SYSTEMROOT|TMPDIR|TEMP|TMP|LANG|SSL_CERT_FILE"
    r"|LD_LIBRARY_PATH|DYLD_LIBRARY_PATH|(?:HTTPS?|ALL|NO)_PROXY"
    r"|(?:HF|HUGGINGFACE|TORCH|PYTORCH|CUDA|NVIDIA|ROCR?|HIP|HSA|OMP|MKL|XDG)_\w+",
    re.IGNORECASE,
)
_FAILURES: Mapping[str, tuple[type[ProviderError], str | None]] = {
    "unusable": (ProviderBadRequest, f"Name another model, or another folder in {MODEL_ENV}."),
    "refused": (ProviderRefused, "Describe the picture in other words."),
    "out of memory": (ProviderUnavailable, "Ask for a smaller picture, or a smaller model."),
    "failed": (ProviderUnavailable, None),
}


class _Event(msgspec.Struct, frozen=True, kw_only=True):
    """A message of the process."""

    event: str
    message: str = ""
    step: int = 0
    of: int = 0
    device: str = ""
    gpu_seconds: float = 0.0
    load_seconds: float = 0.0


class Diffusers:
    """Draws with weights on this machine, each picture in its own process.

    Args:
        worker: the command that draws; the default is limner's own worker.
    """

    def __init__(self, connection: Connection, *, worker: Sequence[str] | None = None) -> None:
        self._variables = connection.variables
        self._clock = connection.clock
        self._worker = worker

    async def generate(
        self, request: ImageRequest, sink: Sink, callbacks: ProviderCallbacks
    ) -> Receipt:
        """Draw one picture and write its bytes to the sink; raises as `Provider.generate`.

        Raises:
            MissingExtra: torch and diffusers are not installed.
            UserError: no model is named, or the model does not exist.
        """
        seed = secrets.randbelow(2**31) if request.seed is None else request.seed
        header, payload = await self._message(request, seed)
        command = self._worker or _own_worker()
        started = self._clock.now()
        async with _running(command) as process:
            try:
                await asyncio.to_thread(_send, process, header, payload)
                while True:
                    head, picture = await asyncio.to_thread(_receive, process)
                    event = _parse(head)
                    if event.event == "drawn":
                        break
                    callbacks.progress(_progress(event, self._clock.now() - started))
            except asyncio.CancelledError:
                # The end of the block kills the process, and it costs nothing.
                callbacks.withdraw()
                raise
        sink.write(picture)
        extras = {
            "seed": seed,
            "device": event.device[:40],
            "gpu_seconds": event.gpu_seconds,
            "load_seconds": event.load_seconds,
        }
        return Receipt(prompt_used=request.prompt, cost_nano=0, extras=extras)

    async def _message(self, request: ImageRequest, seed: int) -> tuple[dict[str, Any], bytes]:
        model, is_folder = self._model(request.model)
        device = self._device()
        source = await _decode(request.sources[0] if request.sources else None)
        mask = await _decode(request.mask)
        parts = [
            request.prompt.encode("utf-8", "replace"),
            (request.negative_prompt or "").encode("utf-8", "replace"),
            source.rgb,
            mask.rgb,
        ]
        header = {
            "model": model,
            "is_folder": is_folder,
            "device": device,
            "width": request.width,
            "height": request.height,
            "seed": seed,
            "steps": int(SPEC.models[0].qualities[request.quality]),
            "lengths": [len(part) for part in parts],
            "sizes": [[source.width, source.height], [mask.width, mask.height]],
        }
        return header, b"".join(parts)

    def _model(self, name: str) -> tuple[str, bool]:
        """A folder or the id of a model on the hub, and whether it is a folder."""
        if name == SPEC.models[0].id:
            name = self._variables.get(MODEL_ENV, "").strip()
            if not name:
                raise UserError(
                    "No model is named.",
                    hint=f"Name a folder, or a model on the hub (owner/name), or set {MODEL_ENV}.",
                )
        folder = Path(os.path.expanduser(name))  # noqa: PTH111 - Path.expanduser raises for an unknown user
        if folder.is_dir():
            return str(folder.absolute()), True
        if _HUB_ID.fullmatch(name):
            return name, False
        raise UserError(
            f"There is no folder {name[:200]!r}, and it is not a name of a model on the hub.",
            hint="Name a folder, or a model on the hub: owner/name.",
        )

    def _device(self) -> str:
        device = self._variables.get(DEVICE_ENV, "").strip()
        if device and not _DEVICE.fullmatch(device):
            raise UserError(
                f"{DEVICE_ENV} is not a device: {device[:40]!r}",
                hint="Set it to cuda, cuda:1, mps or cpu, or unset it.",
            )
        return device


async def _decode(picture: SourceImage | None) -> Preview:
    """The pixels of a picture. The process that draws is in no sandbox, so it decodes no file."""
    if picture is None:
        return Preview(width=0, height=0, rgb=b"")
    columns, rows = min(picture.width, MAX_EDGE), min(picture.height, MAX_EDGE)
    async with Imaging(workers=1) as imaging:
        return await imaging.preview(picture.data, columns=columns, rows=rows)


def _own_worker() -> Sequence[str]:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise MissingExtra(
            f"drawing with diffusers needs {' and '.join(missing)}",
            hint='Run: pip install "limner[diffusers]"',
        )
    return [sys.executable, "-P", "-m", WORKER]


@contextlib.asynccontextmanager
async def _running(command: Sequence[str]) -> AsyncGenerator[subprocess.Popen[bytes]]:
    """The process; it is killed when the block ends."""
    process = _start(command)
    try:
        yield process
    finally:
        process.kill()
        await asyncio.shield(asyncio.to_thread(_reap, process))


def _start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            # Ctrl-C at the terminal goes to limner only, which decides about the job.
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except OSError as error:
        raise ProviderUnavailable(
            f"The diffusers worker could not be started: {error}", extras={"provider": SPEC.name}
        ) from error


def _reap(process: subprocess.Popen[bytes]) -> None:
    """Wait until a killed process has ended and the GPU's memory is free."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(EXIT_TIMEOUT_S)
    for stream in (process.stdin, process.stdout):
        # The buffer may still hold bytes that cannot be written.
        with contextlib.suppress(OSError):
            _open(stream).close()


def _environment() -> dict[str, str]:
    passed_on = {name: value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name)}
    search = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
    return {**passed_on, "PYTHONPATH": search, "HF_HUB_DISABLE_TELEMETRY": "1"}


def _open(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


def _send(process: subprocess.Popen[bytes], header: Mapping[str, Any], payload: bytes) -> None:
    try:
        pipe.send(_open(process.stdin), header, payload)
    except OSError:
        raise _worker_ended(process) from None


def _receive(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    try:
        return pipe.receive(_open(process.stdout), max_payload_bytes=MAX_PICTURE_BYTES)
    except (EOFError, OSError, ValueError):
        raise _worker_ended(process) from None
    except OverflowError:
        raise _bad_message() from None


def _parse(head: bytes) -> _Event:
    try:
        event = msgspec.json.decode(head, type=_Event)
    except msgspec.DecodeError:
        raise _bad_message() from None
    if event.event in _FAILURES:
        kind, hint = _FAILURES[event.event]
        reason = redact(event.message.encode("utf-8", "replace").decode())[:MAX_MESSAGE_CHARS]
        text = f"diffusers could not draw: {reason or event.event}"
        raise kind(text, hint=hint, extras={"provider": SPEC.name})
    return event


def _progress(event: _Event, elapsed_s: float) -> Progress:
    messages = {
        "waiting": "Another picture is being drawn on this machine",
        "loading": "diffusers is loading the model",
    }
    message = messages.get(event.event, "diffusers is drawing")
    return Progress(
        message=message, elapsed_s=elapsed_s, fraction=parse_fraction(event.step, event.of)
    )


def _worker_ended(process: subprocess.Popen[bytes]) -> ProviderUnavailable:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(EXIT_TIMEOUT_S)
    return ProviderUnavailable(
        f"The diffusers worker ended with status {process.poll()}; nothing was drawn",
        hint="It may have run out of memory: ask for a smaller picture, or a smaller model.",
        extras={"provider": SPEC.name},
    )


def _bad_message() -> BadProviderImage:
    return BadProviderImage(
        "The diffusers worker sent a message that is not valid", extras={"provider": SPEC.name}
    )
