"""The pages of tests/eyes/pages -> one screenshot each, made by headless Chromium.

``python scripts/screenshot_pages.py [NAME …]`` needs ``chromium`` and the fonts Liberation and
DejaVu. The screenshots are committed, so the tests need neither.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PAGES = Path(__file__).parents[1] / "tests" / "eyes" / "pages"
DEFAULT_SIZE = 1000, 560
SIZES = {"sign-up-form": (700, 640), "receipt": (448, 430), "settings-toggles": (760, 500)}


def main() -> None:
    names = sys.argv[1:] or sorted(page.stem for page in PAGES.glob("*.html"))
    for name in names:
        width, height = SIZES.get(name, DEFAULT_SIZE)
        command = [
            *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *("--force-device-scale-factor=1", f"--window-size={width},{height}"),
            f"--screenshot={PAGES / name}.png",
            (PAGES / f"{name}.html").as_uri(),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        print(f"{name}.png")


if __name__ == "__main__":
    main()
