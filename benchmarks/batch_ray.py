"""Post one request a row with Ray Data's HTTP processor -> rows a second, printed.

It runs in an environment that has Ray and no limner. Its arguments: the address of the server, the
number of rows, how many requests at once, and the request as JSON.
"""

from __future__ import annotations

import json
import sys
import time

import ray
from ray.data.llm import HttpRequestProcessorConfig, build_processor


def main(url: str, rows: int, concurrency: int, body: dict[str, object]) -> None:
    """Run it, and print how long it took."""
    ray.init(address="local", include_dashboard=False, log_to_driver=False, num_cpus=4)
    config = HttpRequestProcessorConfig(
        url=f"{url}/chat/completions", batch_size=concurrency, concurrency=1, max_retries=0
    )
    processor = build_processor(
        config,
        preprocess=lambda _: {"payload": body},
        postprocess=lambda row: {"answer": row["http_response"]["id"]},
    )
    began_s = time.perf_counter()
    done = processor(ray.data.range(rows)).materialize().count()
    took_s = time.perf_counter() - began_s
    assert done == rows
    print(f"{rows / took_s:.0f} rows/s, {took_s:.0f} s with its start")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4]))
