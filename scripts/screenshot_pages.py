"""The pages of tests/eyes -> one screenshot each, made by headless Chromium.

``python scripts/screenshot_pages.py [FILE.html …]`` needs ``chromium`` and the fonts Liberation and
DejaVu. The screenshots are committed, so the tests need neither.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EYES = Path(__file__).parents[1] / "tests" / "eyes"
DEFAULT_SIZE = 1000, 560
SIZES = {"sign-up-form": (700, 640), "receipt": (448, 430), "settings-toggles": (760, 500)}


def main() -> None:
    files = [Path(one).resolve() for one in sys.argv[1:]] or sorted(EYES.glob("*/*.html"))
    for file in files:
        width, height = SIZES.get(file.stem, DEFAULT_SIZE)
        picture = file.with_suffix(".png")
        command = [
            *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *("--force-device-scale-factor=1", f"--window-size={width},{height}"),
            *(f"--screenshot={picture}", file.as_uri()),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        print(picture.name)


if __name__ == "__main__":
    main()
