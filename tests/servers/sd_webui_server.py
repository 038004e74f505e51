"""Stable Diffusion WebUI's API on this machine, oddities included."""

from __future__ import annotations

import base64
import json
from typing import Any

from limner.testing.servers.http_server import LocalServer, ReceivedRequest, Reply, json_reply

CHECKPOINTS = ("sd_xl_base_1.0.safetensors [31e35c80fc]", "flux1-dev-bnb-nf4.safetensors")


def error_reply(
    status: int, detail: Any = "", *, error: str = "HTTPException", errors: str = ""
) -> Reply:
    """An error as the program's own handler words it."""
    return json_reply(
        {"error": error, "detail": detail, "body": "", "errors": errors}, status=status
    )


def out_of_memory() -> Reply:
    """What a card that is too small ends in."""
    return error_reply(
        500, error="OutOfMemoryError", errors="CUDA out of memory. Tried to allocate 2.00 GiB."
    )


class SdWebuiServer(LocalServer):
    """Draws the same picture every time. Routes: "draw", "task", "progress", "interrupt", "models".

    Attributes:
        states: what a task looked at by its name says, one after the other; the last stays.
        auth: ``user:password``, where the program was started with one.
        api_only: the program has no page, and so no progress by the name of a task.
    """

    def __init__(self, picture: bytes, **rest: Any) -> None:
        super().__init__(**rest)
        self.picture = picture
        self.states: list[dict[str, Any]] = [{"active": True, "progress": 0.0}]
        self.auth: str | None = None
        self.api_only = False
        self.loaded = CHECKPOINTS[0]

    @property
    def base_url(self) -> str:
        return self.origin

    def route(self, seen: ReceivedRequest) -> str:
        routes = {
            "/sdapi/v1/txt2img": "draw",
            "/sdapi/v1/img2img": "draw",
            "/sdapi/v1/progress": "progress",
            "/sdapi/v1/interrupt": "interrupt",
            "/sdapi/v1/sd-models": "models",
            "/internal/progress": "task",
        }
        return routes.get(seen.path, "unknown")

    def answer(self, seen: ReceivedRequest) -> Reply:
        route = self.route(seen)
        if route == "task":
            return self._task()
        if self.auth is not None and seen.headers.get("authorization") != self._basic:
            return error_reply(401, "Incorrect username or password")
        match route:
            case "draw":
                return self._draw(seen)
            case "progress":
                return self._progress(seen)
            case "interrupt":
                return json_reply({})
            case "models":
                return json_reply([_checkpoint(title) for title in CHECKPOINTS])
            case _:
                return json_reply({"detail": "Not Found"}, status=404)

    @property
    def _basic(self) -> str:
        return f"Basic {base64.b64encode((self.auth or '').encode()).decode()}"

    def _draw(self, seen: ReceivedRequest) -> Reply:
        asked = seen.json()
        if seen.path.endswith("img2img") and not asked.get("init_images"):
            return error_reply(404, "Init image not found")
        wish = asked.get("override_settings", {}).get("sd_model_checkpoint")
        # A checkpoint that is not there is ignored without a word.
        drawn_with = wish if wish in CHECKPOINTS else self.loaded
        seed = 4_000_000_000 if asked["seed"] == -1 else asked["seed"]
        name = drawn_with.partition(".safetensors")[0]
        info = {
            "prompt": asked["prompt"],
            "seed": seed,
            "sd_model_name": name,
            "steps": asked["steps"],
        }
        unset = {"init_images": None, "mask": None}
        return json_reply(
            {
                "images": [base64.b64encode(self.picture).decode()],
                "parameters": asked | unset,
                "info": json.dumps(info),
            }
        )

    def _task(self) -> Reply:
        if self.api_only:
            return json_reply({"detail": "Not Found"}, status=404)
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        unsaid = {"active": False, "queued": False, "completed": False, "progress": None}
        unsaid |= {"eta": None, "live_preview": None, "id_live_preview": -1, "textinfo": None}
        return json_reply(unsaid | state)

    def _progress(self, seen: ReceivedRequest) -> Reply:
        skip = seen.query["skip_current_image"] == ["true"]
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        picture = None if skip else base64.b64encode(b"a preview").decode()
        return json_reply(
            {
                "progress": state["progress"],
                "eta_relative": 1.5,
                "state": {"job": "scripts_txt2img", "job_count": 1 if state["active"] else 0},
                "current_image": picture,
                "textinfo": None,
            }
        )


def _checkpoint(title: str) -> dict[str, Any]:
    name, _, shorthash = title.removesuffix("]").partition(" [")
    return {
        "title": title,
        "model_name": name.removesuffix(".safetensors"),
        "hash": shorthash or None,
        "sha256": None,
        "filename": f"/home/somebody/webui/models/Stable-diffusion/{name}",
        "config": None,
    }
