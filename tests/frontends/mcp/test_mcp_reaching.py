"""Where a client's model may read and write."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limner.errors import ReachDenied
from limner.frontends.mcp.call_scope import MAX_ROOTS, CallScopes, folders_of
from limner.storage.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "limner-home")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "a project"
    folder.mkdir()
    return folder.resolve()


def test_the_folder_of_the_server_is_where_a_call_works(home: Home, project: Path) -> None:
    place = CallScopes(home=home, cwd=project).of(())
    assert place.cwd == project
    assert place.reach.resolve_write("fox.png", cwd=place.cwd) == project / "fox.png"


@pytest.mark.parametrize("wide", [Path("/"), Path.home(), Path.home().parent])
def test_a_folder_that_is_too_wide_to_be_meant_is_none(home: Home, wide: Path) -> None:
    place = CallScopes(home=home, cwd=wide).of(())
    assert place.cwd == home.generated
    with pytest.raises(ReachDenied):
        place.reach.resolve_write(wide / "fox.png", cwd=place.cwd)


def test_the_first_root_takes_the_place_of_a_folder_that_is_none(home: Home, project: Path) -> None:
    place = CallScopes(home=home, cwd=Path("/")).of((Path("/"), project))
    assert place.cwd == project
    assert place.reach.resolve_write("fox.png", cwd=place.cwd) == project / "fox.png"


@pytest.mark.parametrize("root", [Path("/"), Path("/etc"), Path.home()])
def test_no_root_opens_what_is_closed_to_every_model(home: Home, project: Path, root: Path) -> None:
    place = CallScopes(home=home, cwd=project).of((root,))
    for path in ("/etc/limner.png", "~/.ssh/limner.png", "/limner.png"):
        with pytest.raises(ReachDenied):
            place.reach.resolve_write(path, cwd=place.cwd)


def test_a_place_is_looked_up_once(home: Home, project: Path) -> None:
    places = CallScopes(home=home, cwd=project)
    assert places.of((project,)) is places.of((project,))


def test_roots_are_folders_of_this_machine(project: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    uris = [
        project.as_uri(),
        project.as_uri(),
        f"file://localhost{tmp_path}",
        "file://elsewhere/share",
        "https://example.com/",
        file.as_uri(),
        "file:///no/such/folder",
        "file:///nul%00byte",
        "",
    ]
    assert folders_of(uris) == (project, tmp_path)


@given(st.lists(st.text(), max_size=40))
def test_whatever_a_client_calls_its_roots_a_few_folders_come_of_it(uris: list[str]) -> None:
    found = folders_of([*uris, *(f"file:///{uri}" for uri in uris)])
    assert len(found) <= MAX_ROOTS
    assert all(folder.is_dir() for folder in found)
