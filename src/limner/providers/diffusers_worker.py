"""The process that draws with diffusers: one order in, news and one picture out, then it ends.

Nothing else of limner ever imports torch. The process ends with its work, so that the memory of
the GPU is free between two pictures, and ends at once when the program that began it is gone. One
of a user's processes draws at a time; the others wait for it.

Weights are read as data only: no pickle and no program code, whoever chose the folder.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Mapping
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import msgspec

from limner.imaging import pipe

if sys.platform != "win32":
    import fcntl

MAX_ORDER_BYTES = 128 * 1024 * 1024
# The coarsest step that a pipeline's latent pixels need.
STEP_PIXELS = 16
NEAREST, LANCZOS = 0, 1


class DiffusersJob(msgspec.Struct, frozen=True, kw_only=True):
    """What to draw. The texts and pictures come behind it, each as long as ``lengths`` says."""

    model: str
    is_folder: bool
    device: str
    width: int
    height: int
    seed: int
    steps: int
    lengths: tuple[int, int, int, int]


class _Parts(msgspec.Struct, frozen=True):
    prompt: str
    negative_prompt: str
    source: bytes
    mask: bytes


class _Unusable(Exception):
    """The model cannot do what is asked; the text says why."""


class _Refused(Exception):
    """The model will not show what it has drawn."""


class _Reporter:
    """Says on the pipe how the work is getting on."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def say(self, event: str, payload: bytes = b"", **facts: Any) -> None:
        pipe.send(self._stream, {"event": event, **facts}, payload)


def main() -> None:
    """Draw the order on standard input, and report on standard output."""
    orders = os.fdopen(os.dup(0), "rb")
    # Libraries print; what they print must not get among the messages.
    reporter = _Reporter(os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)
    head, payload = pipe.receive(orders, max_payload_bytes=MAX_ORDER_BYTES)
    order = msgspec.json.decode(head, type=DiffusersJob)
    threading.Thread(target=_end_with_host, args=(orders,), daemon=True).start()
    try:
        with _only_one(reporter):
            _draw(order, _parts(order, payload), reporter)
    except _Unusable as error:
        reporter.say("unusable", message=str(error))
    except _Refused as error:
        reporter.say("refused", message=str(error))
    except Exception as error:  # the outermost loop of this process
        is_memory = "OutOfMemory" in type(error).__name__ or isinstance(error, MemoryError)
        event = "out of memory" if is_memory else "failed"
        reporter.say(event, message=f"{type(error).__name__}: {error}"[:2000])


def _end_with_host(orders: IO[bytes]) -> None:
    """Wait for the host to close its end, which it does at the latest by dying."""
    orders.read()
    os._exit(1)


def _parts(order: DiffusersJob, payload: bytes) -> _Parts:
    pieces: list[bytes] = []
    for length in order.lengths:
        pieces.append(payload[:length])
        payload = payload[length:]
    prompt, negative_prompt, source, mask = pieces
    return _Parts(prompt.decode(), negative_prompt.decode(), source, mask)


@contextlib.contextmanager
def _only_one(reporter: _Reporter) -> Generator[None]:
    """Be the only one of this user's processes that draws. Windows goes without."""
    if sys.platform == "win32":
        yield
        return
    path = Path(tempfile.gettempdir()) / f"limner-gpu-{os.getuid()}.lock"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            reporter.say("waiting")
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _draw(order: DiffusersJob, parts: _Parts, reporter: _Reporter) -> None:
    reporter.say("loading")
    began = time.monotonic()
    folder = _folder(order)
    torch: Any = import_module("torch")
    device = order.device or _best_device(torch)
    pipeline = _loaded(folder, parts, device, torch)
    loaded = time.monotonic()
    image = _drawn(pipeline, order, parts, reporter, torch)
    drawn = time.monotonic()
    png = BytesIO()
    image.save(png, "PNG")
    reporter.say(
        "drawn",
        png.getvalue(),
        device=device,
        gpu_seconds=round(drawn - loaded, 3),
        load_seconds=round(loaded - began, 3),
    )


def _best_device(torch: Any) -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _number_type(device: str, torch: Any) -> Any:
    if device.startswith("cuda"):
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    return torch.float16 if device == "mps" else torch.float32


def _loaded(folder: Path, parts: _Parts, device: str, torch: Any) -> Any:
    diffusers: Any = import_module("diffusers")
    kind = diffusers.DiffusionPipeline
    if parts.source:
        kind = diffusers.AutoPipelineForImage2Image
    if parts.mask:
        kind = diffusers.AutoPipelineForInpainting
    with _loading(folder):
        pipeline = kind.from_pretrained(
            str(folder),
            torch_dtype=_number_type(device, torch),
            use_safetensors=True,
            local_files_only=True,
        )
    pipeline.set_progress_bar_config(disable=True)
    return pipeline.to(device)


@contextlib.contextmanager
def _loading(model: object) -> Generator[None]:
    """What diffusers raises for weights that are not there or not what they should be."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _Unusable(f"{model} cannot be loaded: {error}"[:2000]) from error


def _folder(order: DiffusersJob) -> Path:
    """Where the weights are: in the folder that was named, or fetched from the hub.

    A folder may bring program code that diffusers would run. This one's does not.
    """
    folder = Path(order.model)
    if not order.is_folder:
        hub: Any = import_module("diffusers").DiffusionPipeline
        with _loading(order.model):
            folder = Path(hub.download(order.model, use_safetensors=True))
    code = next((path.name for depth in ("*.py", "*/*.py") for path in folder.glob(depth)), None)
    if code is not None:
        raise _Unusable(f"{order.model} holds program code ({code}), which is not run here")
    if not (folder / "model_index.json").is_file():
        raise _Unusable(f"{order.model} is not a pipeline of diffusers: it has no model_index.json")
    return folder


def _drawn(
    pipeline: Any, order: DiffusersJob, parts: _Parts, reporter: _Reporter, torch: Any
) -> Any:
    takes = inspect.signature(pipeline.__call__).parameters
    width, height = _up(order.width), _up(order.height)

    def ended_step(pipeline: Any, step: int, _time: Any, kept: Mapping[str, Any]) -> Any:
        reporter.say("step", step=step + 1, of=int(getattr(pipeline, "num_timesteps", order.steps)))
        return kept

    asked: dict[str, Any] = {
        "prompt": parts.prompt,
        "num_inference_steps": order.steps,
        "width": width,
        "height": height,
        "generator": torch.Generator("cpu").manual_seed(order.seed),
        "callback_on_step_end": ended_step,
    }
    wanted = {"prompt"}
    if parts.negative_prompt:
        asked["negative_prompt"] = parts.negative_prompt
    if parts.source:
        asked["image"] = _picture(parts.source, width, height, LANCZOS)
    if parts.mask:
        asked["mask_image"] = _picture(parts.mask, width, height, NEAREST)
    wanted |= asked.keys() & {"negative_prompt", "image", "mask_image"}
    if missing := sorted(wanted.difference(takes)):
        raise _Unusable(f"{type(pipeline).__name__} takes no {missing[0].replace('_', ' ')}")
    with torch.inference_mode():
        answer = pipeline(**{name: value for name, value in asked.items() if name in takes})
    if any(getattr(answer, "nsfw_content_detected", None) or ()):
        raise _Refused("the pipeline's own filter found the picture unsafe")
    return answer.images[0]


def _picture(data: bytes, width: int, height: int, resample: int) -> Any:
    """A picture for a pipeline, scaled to cover a size and cut to it from its middle."""
    load_image = import_module("diffusers.utils").load_image
    with tempfile.TemporaryDirectory(prefix="limner-") as folder:
        path = Path(folder) / "source"
        path.write_bytes(data)
        image: Any = load_image(str(path))
    scale = min(image.width / width, image.height / height)
    across, down = width * scale, height * scale
    left, top = (image.width - across) / 2, (image.height - down) / 2
    return image.resize((width, height), resample, box=(left, top, left + across, top + down))


def _up(edge: int) -> int:
    return -(-edge // STEP_PIXELS) * STEP_PIXELS


if __name__ == "__main__":
    main()
