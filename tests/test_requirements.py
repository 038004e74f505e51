"""The locked dependencies are those that pyproject.toml declares."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RUNTIME = PYPROJECT["project"]["dependencies"]
EXTRAS: dict[str, list[str]] = PYPROJECT["project"]["optional-dependencies"]
OURS = PYPROJECT["project"]["name"]


def expanded(wanted: list[str]) -> list[str]:
    """What an extra needs, with the extras of our own that it names."""
    found: list[str] = []
    for one in map(Requirement, wanted):
        if one.name == OURS:
            found += [need for name in one.extras for need in expanded(EXTRAS[name])]
        else:
            found.append(str(one))
    return found


DECLARED: dict[str, list[str]] = {
    "runtime": RUNTIME,
    **{f"extra-{name}": RUNTIME + expanded(extra) for name, extra in EXTRAS.items()},
    **{name: RUNTIME + group for name, group in PYPROJECT["dependency-groups"].items()},
}
# Its hash depends on the hardware; see scripts/lock.py.
UNLOCKED = {"torch"}


def locked(name: str) -> dict[str, list[str]]:
    """Each package of a file and of those that it includes, with its versions."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    for included in re.findall(r"^-r (\w+)\.txt$", text, re.MULTILINE):
        found |= locked(included)
    for package, version in re.findall(r"^(\S+)==(\S+)", text, re.MULTILINE):
        found.setdefault(package, []).append(version)
    return found


def test_every_group_and_extra_has_its_file() -> None:
    assert {path.stem for path in (ROOT / "requirements").glob("*.txt")} == set(DECLARED)


@pytest.mark.parametrize("name", DECLARED)
def test_every_declared_dependency_is_locked_at_a_version_that_it_allows(name: str) -> None:
    versions = locked(name)
    wrong = [
        wanted
        for wanted in map(Requirement, DECLARED[name])
        if wanted.name not in UNLOCKED
        and not any(
            wanted.specifier.contains(version)
            for version in versions.get(canonicalize_name(wanted.name), [])
        )
    ]
    assert wrong == []


@pytest.mark.parametrize("name", DECLARED)
def test_every_locked_package_has_a_hash(name: str) -> None:
    lines = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    before = [line for line in lines if "==" in line]
    after = [lines[number + 1] for number, line in enumerate(lines) if "==" in line]
    assert [line for line in before if not line.endswith("\\")] == []
    assert [line for line in after if not line.startswith("    --hash=sha256:")] == []


def test_the_extra_all_has_every_extra_but_the_programs_of_other_makers() -> None:
    (everything,) = map(Requirement, EXTRAS["all"])
    assert set(EXTRAS) - everything.extras == {"all", "comfyui", "diffusers", "ray"}
