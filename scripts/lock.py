"""The dependencies of pyproject.toml -> a file with versions and hashes for each group of them.

``make lock`` keeps the versions that still fit, ``make lock ARGS=--upgrade`` takes the newest. The
files hold for every Python, system and processor that limner supports.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "requirements"
HEADER = "# Made by `make lock` from pyproject.toml.\n"
PACKAGE = re.compile(r"^\S+==.*\n(?:    --hash.*\n)+", re.MULTILINE)
# torch comes in builds for each kind of hardware, under one version and with different hashes; and
# which of these libraries it needs depends on the build. So pip chooses them when it installs.
BUILT_FOR_HARDWARE = re.compile(r"(?:torch|triton|cuda-\S+|nvidia-\S+)==")


def inputs() -> dict[str, list[str]]:
    """Each file, and the words by which uv knows what belongs in it."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = declared["project"]["optional-dependencies"]
    groups = declared["dependency-groups"]
    return {
        "runtime": ["pyproject.toml"],
        **{f"extra-{name}": ["pyproject.toml", "--extra", name] for name in extras},
        **{name: ["pyproject.toml", "--group", name] for name in groups},
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = Path(folder, "bin", "python")
        # By its hash, like everything else. The group `tools` of pyproject.toml names its version.
        tools = FOLDER / "tools.txt"
        (uv,) = [one for one in PACKAGE.findall(tools.read_text("utf-8")) if one.startswith("uv==")]
        pinned = Path(folder, "uv.txt")
        pinned.write_text(uv, encoding="utf-8")
        install = [python, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", pinned]
        subprocess.run(install, check=True)

        def compiled(out: Path, *words: str) -> list[str]:
            how = ["--universal", "--python-version", "3.11", "--generate-hashes"]
            shape = ["--no-header", "--no-annotate", "--quiet", "--output-file", str(out)]
            command = [python, "-m", "uv", "pip", "compile", *how, *shape, *words]
            subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
            return PACKAGE.findall(out.read_text(encoding="utf-8"))

        # First everything at once, so that all files agree. What is there already is kept.
        together = Path(folder, "together.txt")
        old = [path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.txt"))]
        together.write_text("".join(PACKAGE.findall("".join(old))), encoding="utf-8")
        groups = [word for words in inputs().values() if "--group" in words for word in words[1:]]
        compiled(together, "pyproject.toml", "--all-extras", *groups, *sys.argv[1:])

        runtime: list[str] = []
        for name, words in inputs().items():
            out = Path(folder, f"{name}.txt")
            packages = compiled(out, *words, "--constraint", str(together))
            kept = [p for p in packages if p not in runtime and not BUILT_FOR_HARDWARE.match(p)]
            header = HEADER
            if name == "runtime":
                runtime = packages
            else:
                header += "-r runtime.txt\n"
            (FOLDER / f"{name}.txt").write_text(header + "".join(kept), encoding="utf-8")


if __name__ == "__main__":
    main()
