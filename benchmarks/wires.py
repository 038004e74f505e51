"""CPU time of writing a request with twenty pictures, against base64 and JSON alone."""

from __future__ import annotations

import base64
import os
import statistics
import time
from collections.abc import Callable
from functools import partial

import msgspec

from limner.wires.base import HANDLE_URL, WIRES, ModelPicture, Prompt, wire

PICTURES = 20
PICTURE_BYTES = 500 * 1024
ROUNDS = 21


def cpu_ms(work: Callable[[], object]) -> float:
    times: list[float] = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return statistics.median(times) * 1000


def main() -> None:
    pictures = {
        f"{number:064x}": ModelPicture(mime="image/png", data=os.urandom(PICTURE_BYTES))
        for number in range(PICTURES)
    }
    looks = [{"type": "input_image", "image_url": HANDLE_URL + handle} for handle in pictures]
    question = {"type": "input_text", "text": "What is different?"}
    prompt = Prompt(
        items=[{"type": "message", "role": "user", "content": [*looks, question]}],
        pictures=pictures,
    )
    floor = cpu_ms(
        lambda: msgspec.json.encode(
            [base64.b64encode(sight.data).decode() for sight in pictures.values()]
        )
    )
    print(f"base64 and JSON alone: {floor:.1f} ms")
    for api in WIRES:
        took = cpu_ms(partial(wire(api).request, "model", prompt))
        print(f"{api}: {took:.1f} ms, {took / floor:.2f} of that")


if __name__ == "__main__":
    main()
