"""What limner is built from: licences, components, known vulnerabilities, and the same bytes."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from tests.clean_environment import clean_environment

from limner import __version__

ROOT = Path(__file__).parent.parent
TABLE = tomllib.loads((ROOT / "requirements/licences.toml").read_text(encoding="utf-8"))
ALLOWED: set[str] = set(TABLE["allowed"])
LICENCES: dict[str, str] = TABLE["packages"]
SOURCE = ("src", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".gitignore")


def script(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def locked_names() -> set[str]:
    """What limner, its extras and its build need."""
    files = [ROOT / f"requirements/{name}.txt" for name in ("runtime", "build")]
    files += (ROOT / "requirements").glob("extra-*.txt")
    return {name for file in files for name in re.findall(r"^(\S+)==", file.read_text(), re.M)}


def declared_by(name: str) -> str | None:
    """The licence that an installed package declares in a form that can be compared."""
    found = metadata.metadata(name)
    for text in (found.json.get("license_expression"), found.json.get("license")):
        try:
            return canonicalize_license_expression(str(text or ""))
        except InvalidLicenseExpression:
            continue
    return None


def is_allowed(expression: str) -> bool:
    parts = expression.replace("(", "").replace(")", "").split(" AND ")
    return all(any(one in ALLOWED for one in part.split(" OR ")) for part in parts)


def test_every_locked_package_has_a_licence_in_the_table() -> None:
    assert locked_names() == set(LICENCES)


def test_every_licence_is_allowed() -> None:
    assert [name for name, licence in LICENCES.items() if not is_allowed(licence)] == []
    assert not is_allowed("MIT AND GPL-3.0-only")
    assert is_allowed("GPL-3.0-only OR MIT")


def test_the_table_says_what_the_installed_packages_declare() -> None:
    wrong: dict[str, tuple[str, str]] = {}
    for name, licence in LICENCES.items():
        try:
            declared = declared_by(name)
        except metadata.PackageNotFoundError:
            continue
        if declared is not None and declared != canonicalize_license_expression(licence):
            wrong[name] = (licence, declared)
    assert wrong == {}


def test_the_document_lists_every_locked_package_with_licence_and_hashes(tmp_path: Path) -> None:
    wheel = tmp_path / "limner-9.9-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    sbom = ROOT / "scripts" / "sbom.py"
    for _ in range(2):
        subprocess.run([sys.executable, str(sbom), str(tmp_path)], check=True, capture_output=True)
    document = json.loads((tmp_path / "limner-9.9.cdx.json").read_text())
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert document["metadata"]["component"]["hashes"] == [
        {"alg": "SHA-256", "content": hashlib.sha256(b"a wheel").hexdigest()}
    ]
    components = document["components"]
    build = set(re.findall(r"^(\S+)==", (ROOT / "requirements/build.txt").read_text(), re.M))
    assert {one["name"] for one in components} >= locked_names() - build
    assert len({one["bom-ref"] for one in components}) == len(components)
    assert all(one["hashes"] and one["licenses"] and one["properties"] for one in components)


AUDITS = {
    "an unreachable database": ("", "Failed to resolve 'pypi.org'", 0, "nothing was checked"),
    "a mirror without a database": (
        json.dumps({"dependencies": [{"name": "a", "skip_reason": "not found"}]}),
        "",
        0,
        "0 of 1 packages were checked.\nThe vulnerability database cannot be reached",
    ),
    "no vulnerability": (
        json.dumps({"dependencies": [{"name": "a", "version": "1", "vulns": []}]}),
        "",
        0,
        "1 of 1 packages were checked.",
    ),
    "a vulnerability": (
        json.dumps(
            {
                "dependencies": [
                    {
                        "name": "a",
                        "version": "1",
                        "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}],
                    },
                    {"name": "b", "skip_reason": "not found"},
                ]
            }
        ),
        "",
        1,
        "a 1: CVE-1, fixed in 2\n1 of 2 packages were checked.",
    ),
}


@pytest.mark.parametrize("case", AUDITS)
def test_the_audit_fails_for_a_vulnerability_and_not_for_a_missing_network(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, error, status, says = AUDITS[case]
    program = tmp_path / "pip_audit.py"
    program.write_text(
        f"import sys\nsys.stdout.write({out!r})\nsys.stderr.write({error!r})\nsys.exit(1)\n"
    )
    assert script("audit").check([], program=[sys.executable, str(program)]) == status
    assert says in capsys.readouterr().out


@pytest.mark.slow
def test_the_same_source_gives_the_same_wheel(tmp_path: Path) -> None:
    """In other folders, at other times, under another umask."""
    wheels: list[Path] = []
    for name, mode in (("here", 0o644), ("some/where/else", 0o600)):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        for part in SOURCE:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, folder / part, copy_function=shutil.copyfile)
            else:
                shutil.copyfile(ROOT / part, folder / part)
        for path in folder.rglob("*"):
            if path.is_file():
                path.chmod(mode)
                os.utime(path, (mode * 1_000_000, mode * 1_000_000))
        words = ["-m", "hatchling", "build", "--target", "wheel", "--directory", "out"]
        env = {key: value for key, value in os.environ.items() if key != "SOURCE_DATE_EPOCH"}
        subprocess.run(
            [sys.executable, *words], cwd=folder, check=True, capture_output=True, env=env
        )
        wheels += (folder / "out").glob("*.whl")
    first, second = (hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in wheels)
    assert first == second
    with zipfile.ZipFile(wheels[0]) as archive:
        names = archive.namelist()
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]
    catalogue = [name for name in names if name.startswith("limner/catalogue/")]
    compiled = {re.sub(r"-[0-9a-f]{8}\.json$", ".toml", name) for name in catalogue}
    assert sorted(compiled) == sorted(name for name in catalogue if not name.endswith(".json"))
    assert len(catalogue) > len(compiled)


@pytest.mark.slow
def test_a_release_is_built_from_its_sdist_and_works_in_a_clean_environment(tmp_path: Path) -> None:
    checkout, out = tmp_path / "checkout", tmp_path / "out"
    run("git", "clone", "-q", "--depth", "1", f"file://{ROOT}", str(checkout))
    commit = run("git", "rev-parse", "--short=12", "HEAD", cwd=checkout).strip()
    hatch = [sys.executable, "-m", "hatchling", "build", "--directory", str(out), "--target"]
    run(*hatch, "sdist", cwd=checkout)
    [sdist] = out.glob("*.tar.gz")
    shutil.unpack_archive(sdist, tmp_path / "unpacked")
    [unpacked] = (tmp_path / "unpacked").iterdir()
    run(*hatch, "wheel", cwd=unpacked)
    [wheel] = out.glob("*.whl")
    python, packages = clean_environment(tmp_path / "venv")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    run(*pip, "--target", str(packages), str(wheel))
    limner = [str(python), "-m", "limner"]
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    assert run(*limner, "--version", env=env) == f"limner {__version__} ({commit})\n"
    drawn = run(*limner, "generate", "a fox", "--json", cwd=tmp_path, env=env)
    assert Path(json.loads(drawn)["path"]).stat().st_size > 10_000


def run(*command: str, cwd: Path = ROOT, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
