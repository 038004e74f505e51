"""The locked dependencies -> their known vulnerabilities, if the database can be reached.

``make audit`` runs it. A vulnerability ends it with status 1. Without the database it says that
nothing was checked, and ends with status 0.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NOT_CHECKED = "The vulnerability database cannot be reached: nothing was checked."


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = str(Path(folder, "bin", "python"))
        install = [python, "-m", "pip", "install", "--quiet", "--require-hashes", "-r"]
        if subprocess.run([*install, ROOT / "requirements/tools.txt"], check=False).returncode:
            print("pip-audit cannot be installed here.", NOT_CHECKED, sep="\n")
            return 0
        locked = sorted(path for path in ROOT.glob("requirements/*.txt"))
        return check(locked, program=[python, "-m", "pip_audit"])


def check(locked: Sequence[Path], *, program: Sequence[str]) -> int:
    """Run pip-audit on the files, and print what it found; the status of this program."""
    words = ["--require-hashes", "--disable-pip", "--progress-spinner", "off", "--format", "json"]
    files = [word for path in locked for word in ("--requirement", str(path))]
    done = subprocess.run([*program, *words, *files], check=False, capture_output=True, text=True)
    try:
        packages: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        print(done.stderr.strip()[-2000:], NOT_CHECKED, sep="\n")
        return 0
    # A mirror without the database leaves packages out, and pip-audit ends well all the same.
    checked = [package for package in packages if "skip_reason" not in package]
    for package in checked:
        for found in package["vulns"]:
            fixed = ", ".join(found["fix_versions"]) or "no version"
            print(f"{package['name']} {package['version']}: {found['id']}, fixed in {fixed}")
    print(f"{len(checked)} of {len(packages)} packages were checked.")
    if not checked:
        print(NOT_CHECKED)
    return int(any(package["vulns"] for package in checked))


if __name__ == "__main__":
    sys.exit(main())
