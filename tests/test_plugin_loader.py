"""The entry points that limner finds are those that Python finds."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Callable
from importlib.metadata import Distribution, DistributionFinder, PathDistribution, entry_points
from pathlib import Path

import pytest

from limner.plugin_loader import load_plugins

GROUP = "limner.tests"
METADATA = "Metadata-Version: 2.1\nName: crate\nVersion: 1.0\n"
ENTRY_POINTS = f"[console_scripts]\ncrate = os:getcwd\n\n[{GROUP}]\nfine = os:sep\n"


def _info(folder: Path, *, metadata: str = "METADATA", text: str = ENTRY_POINTS) -> None:
    folder.mkdir(parents=True)
    (folder / metadata).write_text(METADATA)
    (folder / "entry_points.txt").write_text(text)


def _wheel(site: Path) -> Path:
    _info(site / "crate-1.0.dist-info")
    return site


def _other_case(site: Path) -> Path:
    _info(site / "Crate-1.0.Dist-Info")
    return site


def _development_install(site: Path) -> Path:
    _info(site / "crate.egg-info", metadata="PKG-INFO")
    return site


def _egg(site: Path) -> Path:
    _info(site / "crate-1.0-py3.egg" / "EGG-INFO", metadata="PKG-INFO")
    return site / "crate-1.0-py3.egg"


def _archive(site: Path) -> Path:
    site.mkdir()
    with zipfile.ZipFile(site / "crate.zip", "w") as archive:
        archive.writestr("crate-1.0.dist-info/METADATA", METADATA)
        archive.writestr("crate-1.0.dist-info/entry_points.txt", ENTRY_POINTS)
    return site / "crate.zip"


PLACES = [_wheel, _other_case, _development_install, _egg, _archive]


def _found() -> tuple[list[object], list[object]]:
    """The values of limner's plug-ins, and of Python's entry points."""
    ours = load_plugins(GROUP, lambda value: value)
    assert ours.broken == ()
    return [*ours.usable], [entry.load() for entry in entry_points(group=GROUP)]


@pytest.mark.parametrize("place", PLACES)
def test_a_plug_in_is_found_wherever_python_finds_it(
    place: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(place(tmp_path / "site")))
    assert _found() == ([os.sep], [os.sep])


def test_a_plug_in_of_another_finder_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _info(tmp_path / "crate-1.0.dist-info")

    class Finder:
        @staticmethod
        def find_spec(*_: object) -> None: ...

        @staticmethod
        def find_distributions(context: DistributionFinder.Context) -> list[Distribution]:
            return [PathDistribution(tmp_path / "crate-1.0.dist-info")]

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])
    assert _found() == ([os.sep], [os.sep])


def test_other_entry_points_and_unreadable_places_have_no_plug_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _info(tmp_path / "other-1.0.dist-info", text="[other]\nfine = os:sep\n")
    (tmp_path / "old-1.0.egg-info").write_text(METADATA)
    (tmp_path / "bare-1.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path / "missing"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    assert _found() == ([], [])
