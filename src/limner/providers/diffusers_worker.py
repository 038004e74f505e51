"""The diffusers worker: one job on standard input -> progress and one picture on standard output.

Only this process imports torch. It ends after one picture, so that the GPU's memory is free
between two pictures. It also ends as soon as its parent process ends. Only one worker of a user
draws at a time; the others wait.

Weights are loaded as data only: no pickle and no program code. Pictures arrive as pixels, which a
sandboxed worker has decoded.
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

MAX_JOB_BYTES = 128 * 1024 * 1024
# The coarsest step that a pipeline's latent pixels need.
STEP_PIXELS = 16
NEAREST, LANCZOS = 0, 1


class DiffusersJob(msgspec.Struct, frozen=True, kw_only=True):
    """What to draw. The texts and the pixels of source and mask follow it.

    ``lengths`` are the bytes of each, and ``sizes`` the width and height of the two pictures.
    """

    model: str
    is_folder: bool
    device: str
    width: int
    height: int
    seed: int
    steps: int
    lengths: tuple[int, int, int, int]
    sizes: tuple[tuple[int, int], tuple[int, int]]


class _Parts(msgspec.Struct, frozen=True):
    prompt: str
    negative_prompt: str
    source: bytes
    mask: bytes


class _Unusable(Exception):
    """The model cannot do the job; the text says why."""


class _Refused(Exception):
    """The model refuses to show the picture."""


class _Reporter:
    """Sends progress messages on the pipe."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def send(self, event: str, payload: bytes = b"", **facts: Any) -> None:
        pipe.send(self._stream, {"event": event, **facts}, payload)


def main() -> None:
    """Draw the job on standard input, and report on standard output."""
    jobs = os.fdopen(os.dup(0), "rb")
    # Libraries print to standard output; that must not mix with the messages.
    reporter = _Reporter(os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)
    head, payload = pipe.receive(jobs, max_payload_bytes=MAX_JOB_BYTES)
    job = msgspec.json.decode(head, type=DiffusersJob)
    threading.Thread(target=_exit_with_parent, args=(jobs,), daemon=True).start()
    try:
        with _gpu_lock(reporter):
            _draw(job, _parts(job, payload), reporter)
    except _Unusable as error:
        reporter.send("unusable", message=str(error))
    except _Refused as error:
        reporter.send("refused", message=str(error))
    except Exception as error:  # the outermost loop of this process
        is_memory = "OutOfMemory" in type(error).__name__ or isinstance(error, MemoryError)
        event = "out of memory" if is_memory else "failed"
        reporter.send(event, message=f"{type(error).__name__}: {error}"[:2000])


def _exit_with_parent(jobs: IO[bytes]) -> None:
    """Exit when the parent process closes its end of the pipe, or dies."""
    jobs.read()
    os._exit(1)


def _parts(job: DiffusersJob, payload: bytes) -> _Parts:
    pieces: list[bytes] = []
    for length in job.lengths:
        pieces.append(payload[:length])
        payload = payload[length:]
    prompt, negative_prompt, source, mask = pieces
    return _Parts(prompt.decode(), negative_prompt.decode(), source, mask)


@contextlib.contextmanager
def _gpu_lock(reporter: _Reporter) -> Generator[None]:
    """Let only one worker of this user draw at a time. Windows has no lock."""
    if sys.platform == "win32":
        yield
        return
    path = Path(tempfile.gettempdir()) / f"limner-gpu-{os.getuid()}.lock"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            reporter.send("waiting")
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _draw(job: DiffusersJob, parts: _Parts, reporter: _Reporter) -> None:
    reporter.send("loading")
    started = time.monotonic()
    folder = _folder(job)
    torch: Any = import_module("torch")
    device = job.device or _best_device(torch)
    pipeline = _load_pipeline(folder, parts, device, torch)
    loaded = time.monotonic()
    image = _run_pipeline(pipeline, job, parts, reporter, torch)
    drawn = time.monotonic()
    png = BytesIO()
    image.save(png, "PNG")
    reporter.send(
        "drawn",
        png.getvalue(),
        device=device,
        gpu_seconds=round(drawn - loaded, 3),
        load_seconds=round(loaded - started, 3),
    )


def _best_device(torch: Any) -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _number_type(device: str, torch: Any) -> Any:
    if device.startswith("cuda"):
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    return torch.float16 if device == "mps" else torch.float32


def _load_pipeline(folder: Path, parts: _Parts, device: str, torch: Any) -> Any:
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
    """Translate what diffusers raises for missing or invalid weights."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _Unusable(f"{model} cannot be loaded: {error}"[:2000]) from error


def _folder(job: DiffusersJob) -> Path:
    """The folder of the weights: the named one, or downloaded from the hub.

    A folder may contain program code that diffusers would run; such a folder is refused.
    """
    folder = Path(job.model)
    if not job.is_folder:
        hub: Any = import_module("diffusers").DiffusionPipeline
        with _loading(job.model):
            folder = Path(hub.download(job.model, use_safetensors=True))
    code = next((path.name for depth in ("*.py", "*/*.py") for path in folder.glob(depth)), None)
    if code is not None:
        raise _Unusable(f"{job.model} contains program code ({code}), which limner does not run")
    if not (folder / "model_index.json").is_file():
        raise _Unusable(f"{job.model} is not a pipeline of diffusers: it has no model_index.json")
    return folder


def _run_pipeline(
    pipeline: Any, job: DiffusersJob, parts: _Parts, reporter: _Reporter, torch: Any
) -> Any:
    parameters = inspect.signature(pipeline.__call__).parameters
    width, height = _round_up(job.width), _round_up(job.height)

    def report_step(pipeline: Any, step: int, _time: Any, kept: Mapping[str, Any]) -> Any:
        reporter.send("step", step=step + 1, of=int(getattr(pipeline, "num_timesteps", job.steps)))
        return kept

    arguments: dict[str, Any] = {
        "prompt": parts.prompt,
        "num_inference_steps": job.steps,
        "width": width,
        "height": height,
        "generator": torch.Generator("cpu").manual_seed(job.seed),
        "callback_on_step_end": report_step,
    }
    required = {"prompt"}
    if parts.negative_prompt:
        arguments["negative_prompt"] = parts.negative_prompt
    if parts.source:
        arguments["image"] = _picture(parts.source, job.sizes[0], (width, height), LANCZOS)
    if parts.mask:
        arguments["mask_image"] = _picture(parts.mask, job.sizes[1], (width, height), NEAREST)
    required |= arguments.keys() & {"negative_prompt", "image", "mask_image"}
    if missing := sorted(required.difference(parameters)):
        raise _Unusable(f"{type(pipeline).__name__} takes no {missing[0].replace('_', ' ')}")
    with torch.inference_mode():
        answer = pipeline(
            **{name: value for name, value in arguments.items() if name in parameters}
        )
    if any(getattr(answer, "nsfw_content_detected", None) or ()):
        raise _Refused("the pipeline's own filter found the picture unsafe")
    return answer.images[0]


def _picture(rgb: bytes, size: tuple[int, int], to: tuple[int, int], resample: int) -> Any:
    """A picture for a pipeline, scaled to cover the size and cropped at its centre."""
    image: Any = import_module("PIL.Image").frombytes("RGB", size, rgb)
    scale = min(image.width / to[0], image.height / to[1])
    across, down = to[0] * scale, to[1] * scale
    left, top = (image.width - across) / 2, (image.height - down) / 2
    return image.resize(to, resample, box=(left, top, left + across, top + down))


def _round_up(edge: int) -> int:
    return -(-edge // STEP_PIXELS) * STEP_PIXELS


if __name__ == "__main__":
    main()
