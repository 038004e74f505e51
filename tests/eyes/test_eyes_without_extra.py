from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from eyes_screens import png
from PIL import Image

import limner

# Packages of the extra: OCR and the code scanner.
EXTRA = ("rapidocr", "onnxruntime", "zxingcpp")


WITHOUT = """
import asyncio, json, sys
from limner.errors import MissingExtra
from limner.eyes import Eyes
from limner.frontends.cli.main import main as run
from limner.imaging.pool import Imaging

async def main():
    picture = sys.stdin.buffer.read()
    async with Imaging(workers=1) as imaging:
        try:
            await imaging.read_page(picture)
        except MissingExtra as error:
            refusal = error.as_json()
        eyes = Eyes(imaging)
        answers = [await eyes.see([picture], question) for question in sys.argv[1:]]
    print(json.dumps([refusal, *answers]))

asyncio.run(main())
statuses = [
    run(["inspect", "picture.png", "--csv", "--json"]),
    run(["check", "picture.png", "--expect", "shows 'Save'", "--json"]),
]
print(statuses)
"""


@pytest.mark.skipif(os.name == "nt", reason="links to packages need rights on Windows")
def test_without_the_extra_pixels_still_answer_and_the_command_is_named(tmp_path: Path) -> None:
    encoded = png(Image.new("RGB", (300, 100), "white"))
    # A Python that has every package of this one but those of the extra.
    for site in {Path(entry) for entry in sys.path if entry.endswith("site-packages")}:
        for package in site.iterdir():
            if not package.name.startswith(EXTRA) and not (tmp_path / package.name).exists():
                (tmp_path / package.name).symlink_to(package)
    (tmp_path / "picture.png").write_bytes(encoded)
    source = Path(limner.__file__).parent.parent
    done = subprocess.run(
        [sys._base_executable, "-c", WITHOUT, "What does it say?", "Any QR code?", "How wide?"],  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        input=encoded,
        capture_output=True,
        env={
            "PYTHONPATH": f"{tmp_path}{os.pathsep}{source}",
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
        },
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    (refusal, text, codes, width), no_tables, checked, statuses = lines
    assert (refusal["code"], refusal["hint"]) == ("MISSING_EXTRA", "pip install 'limner[eyes]'")
    assert text.startswith(
        "Answer: The text cannot be read here: reading text needs limner[eyes]; "
        "run: pip install 'limner[eyes]'."
    )
    assert codes.startswith("Answer: Codes cannot be decoded here")
    assert "run: pip install 'limner[eyes]'" in codes
    assert width.startswith("Answer: The picture is 300 x 100 pixels")
    command = "reading text needs limner[eyes]; run: pip install 'limner[eyes]'"
    assert statuses == [2, 6]
    assert no_tables["error"]["message"] == f"the tables cannot be read: {command}"
    assert f"The text was not read: {command}." in checked["criteria"][0]["evidence"]
