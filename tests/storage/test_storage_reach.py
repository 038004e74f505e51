"""What may be read and written: roots, the floor, symlinks and the words of a refusal."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.fuzz import SHARED_FIXTURE, examples

from limner.errors import ReachDenied, SettingsError
from limner.storage import reach as reach_module
from limner.storage.home import Home, shared_folder
from limner.storage.protected_paths import ProtectedPaths
from limner.storage.reach import Reach, Sandbox


@dataclass(frozen=True)
class World:
    """A user with a home, a project inside it, and places that are none of their business."""

    base: Path
    user: Path
    limner: Path
    project: Path
    temp: Path
    outside: Path


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    base = tmp_path.resolve()
    made = World(
        base=base,
        user=base / "user",
        limner=base / "user" / ".limner",
        project=base / "user" / "project",
        temp=base / "temp",
        outside=base / "outside",
    )
    for folder in (made.project, made.temp, made.outside, made.user / ".ssh"):
        folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(made.user))
    monkeypatch.delenv("LIMNER_HOME", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(made.temp))
    return made


def refused(reach: Reach, path: str | Path, *, cwd: Path, action: str = "write") -> ReachDenied:
    resolve = reach.resolve_write if action == "write" else reach.resolve_read
    with pytest.raises(ReachDenied) as caught:
        resolve(path, cwd=cwd)
    return caught.value


def test_a_model_writes_the_generated_folder_the_cwd_and_the_temp_folder(world: World) -> None:
    reach = Reach.for_model(cwd=world.project)
    assert reach.write == (world.limner / "generated", world.project, world.temp)
    assert reach.read == (world.limner / "generated", world.project, world.temp, world.user)
    assert not reach.anywhere


def test_the_generated_folder_of_a_named_home_is_within_a_models_reach(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIMNER_HOME", str(world.outside / "lim"))
    default = world.outside / "lim" / "generated" / "1.png"
    assert Reach.for_model().resolve_write(default, cwd=world.project) == default
    elsewhere = world.outside / "other"
    assert Reach.for_model(home=elsewhere).write[0] == elsewhere / "generated"


@pytest.mark.parametrize("place", ["/", "user", "."], ids=["root", "home", "above the home"])
def test_a_cwd_too_wide_to_be_meant_grants_nothing(world: World, place: str) -> None:
    cwd = world.base / place if place != "/" else Path("/")
    reach = Reach.for_model(cwd=cwd)
    assert reach.write == (world.limner / "generated", world.temp)
    assert Reach.from_lists(read=["${CWD}"], write=["${CWD}/pics"], cwd=cwd) == Reach(
        write=(cwd / "pics",)
    )


def test_a_temp_folder_that_is_the_home_grants_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(world.user))
    assert Reach.for_model(cwd=Path("/")).write == (world.limner / "generated",)


def test_a_user_whose_home_is_the_root_does_not_open_the_whole_machine(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/")
    reach = Reach.for_model(cwd=world.project)
    assert reach.read == reach.write == (Path("/.limner/generated"), world.project, world.temp)
    assert refused(Reach.for_person(), "/etc/x.png", cwd=world.project)


def test_relative_paths_and_the_tilde_follow_the_given_cwd_and_home(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(world.outside)
    reach = Reach.for_model(cwd=world.project)
    assert reach.resolve_write("a/b.png", cwd=world.project) == world.project / "a/b.png"
    assert reach.resolve_write("~/project/b.png", cwd=world.temp) == world.project / "b.png"
    assert reach.resolve_read("~", cwd=world.temp) == world.user
    assert reach.resolve_write("~draft.png", cwd=world.project) == world.project / "~draft.png"
    with pytest.raises(ValueError, match="must be absolute"):
        reach.resolve_write("b.png", cwd=Path("project"))


def test_somebody_elses_tilde_never_becomes_a_folder_of_that_name(world: World) -> None:
    error = refused(Reach.for_person(), "~alice/x.png", cwd=world.project)
    assert error.message == (
        'write of "~alice/x.png" is refused: the path begins with ~, which means only your '
        "own home."
    )


def test_a_refusal_names_the_path_as_given_and_the_roots(world: World) -> None:
    reach = Reach(read=(world.project, world.temp), write=(world.project,))
    writing = refused(reach, "../x.png", cwd=world.project)
    assert writing.as_json() == {
        "code": "OUTPUT_PATH_DENIED",
        "message": 'write of "../x.png" is outside what this agent may reach.',
        "retryable": False,
        "billed": False,
        "cost_usd": 0.0,
        "hint": f"It may write in: {world.project}.",
    }
    reading = refused(reach, world.outside, cwd=world.project, action="read")
    assert (reading.code, reading.hint) == (
        "PATH_DENIED",
        f"It may read in: {world.project}, {world.temp}.",
    )
    assert refused(Reach(), "x.png", cwd=world.project).hint == "It may write nowhere."


def test_a_refusal_never_says_where_a_symlink_leads(world: World) -> None:
    secret = world.outside / "very-private"
    secret.mkdir()
    (world.project / "link").symlink_to(secret)
    (world.project / "keys").symlink_to(world.user / ".ssh")
    reach = Reach.for_model(cwd=world.project)
    for name in ("link", "keys"):
        for action in ("read", "write"):
            error = refused(reach, f"{name}/x.png", cwd=world.project, action=action)
            assert error.message == (
                f'{action} of "{name}/x.png" is outside what this agent may reach.'
            )
            assert "very-private" not in str(error.as_json())
            assert ".ssh" not in str(error.as_json())


def test_a_symlink_that_stays_inside_is_followed(world: World) -> None:
    (world.project / "real").mkdir()
    (world.project / "link").symlink_to("real")
    reach = Reach(write=(world.project,))
    assert reach.resolve_write("link/x.png", cwd=world.project) == world.project / "real/x.png"


def test_a_dangling_symlink_is_judged_by_where_it_would_lead(world: World) -> None:
    (world.project / "x.png").symlink_to(world.outside / "not-there-yet.png")
    refused(Reach(write=(world.project,)), "x.png", cwd=world.project)


def test_a_person_does_not_write_through_a_link_that_leads_out_of_its_folder(
    world: World,
) -> None:
    (world.project / "out.png").symlink_to(world.outside / "not-there-yet.png")
    (world.project / "near.png").symlink_to("real.png")
    person = Reach.for_person()
    denied = refused(person, "out.png", cwd=world.project)
    assert (
        denied.message
        == f"{str(world.project / 'out.png')!r} is a link that leads out of its folder."
    )
    assert person.resolve_write("near.png", cwd=world.project) == world.project / "real.png"
    assert person.resolve_read("out.png", cwd=world.project).parent == world.outside


def test_a_symlink_to_itself_is_refused(world: World) -> None:
    (world.project / "loop").symlink_to("loop")
    error = refused(Reach.for_person(), "loop/x.png", cwd=world.project)
    assert "leads back to itself" in error.message


def test_a_chain_of_thousands_of_symlinks_is_judged_or_refused_but_never_a_crash(
    world: World,
) -> None:
    for n in range(2000):
        (world.project / f"link{n}").symlink_to(f"link{n + 1}")
    (world.project / "link2000").symlink_to(world.outside)
    for path in ("link0/x.png", "missing/../link0/x.png"):
        refused(Reach(write=(world.project,)), path, cwd=world.project)


def test_a_root_is_a_folder_not_a_prefix_of_letters(world: World) -> None:
    reach = Reach(write=(world.project,))
    refused(reach, str(world.project) + "ion/x.png", cwd=world.project)
    assert reach.resolve_write(world.project, cwd=world.project) == world.project


def test_a_root_swapped_for_a_symlink_later_widens_nothing(world: World) -> None:
    reach = Reach(write=(world.project,))
    world.project.rmdir()
    world.project.symlink_to(world.outside)
    refused(reach, world.project / "x.png", cwd=world.project)


def test_a_root_behind_a_symlink_is_the_folder_it_leads_to(world: World) -> None:
    (world.base / "short").symlink_to(world.project)
    reach = Reach(write=(world.base / "short",))
    assert reach.write == (world.project,)
    through = reach.resolve_write("x.png", cwd=world.base / "short")
    assert through == world.project / "x.png"


@pytest.mark.parametrize("path", ["", "  ", "a\0b.png", "\ud800.png", "caf\udce9.png"])
def test_what_is_no_file_name_is_refused(world: World, path: str) -> None:
    assert refused(Reach.for_person(), path, cwd=world.project).code == "OUTPUT_PATH_DENIED"


def test_a_file_whose_old_name_is_not_text_can_still_be_read(world: World) -> None:
    old = world.project / "caf\udce9.png"
    assert Reach.for_person().resolve_read(old.name, cwd=world.project) == old


def test_a_refusal_fits_on_one_line_whatever_the_path(world: World) -> None:
    message = refused(Reach(), "a\nb\x1b[31m\udcff" + "x" * 5000, cwd=world.project).message
    assert message.startswith(r'write of "a\nb\u001b[31m\udcffxxx')
    assert message.isprintable()
    assert len(message) < 400


SYSTEM = [
    "/etc/x",
    "/usr/share/p.png",
    "/bin/x",
    "/lib/x",
    "/boot/x",
    "/dev/sda",
    "/proc/1/environ",
]
SYSTEM += [
    "//etc/x",
    "///etc/x",
    "/tmp/../etc/x",
    "/./etc/x/",
    "/usr/srcs",
    "/proc/self/root/etc/x",
]
SYSTEM += ["/sys/x", "/run/secrets/key", "/sbin/x", "/ETC/x", "/var/run/x", "/var/spool/cron/x"]
SECRET = [".ssh/id_ed25519", ".aws/credentials", ".gnupg/x", ".netrc", ".npmrc", ".kube/config"]
SECRET += [".docker/config.json", ".config/gcloud/x", ".local/share/keyrings/login.keyring"]
SECRET += ["Library/Keychains/x", ".bash_history", ".zsh_history", ".python_history", ".SSH/id"]
SECRET += [".psql_history", ".mysql_history", ".bash_history-42.tmp", ".\u017f\u017fh/id", ".ssh"]
SECRET += [".config/BraveSoftware/Brave-Browser/Default/x.png", ".config/microsoft-edge/x.png"]
SECRET += [".thunderbird/p/x", ".config/Signal/x.png", "snap/firefox/common/x", ".var/app/x/y.png"]
SECRET += [".config/containers/auth.json", ".gem/credentials", ".m2/settings.xml", ".kaggle/x"]
SECRET += [".cache/huggingface/token", ".oci/config", ".databrickscfg", ".gemini/oauth_creds.json"]
SECRET += [".config/sops/age/keys.txt", ".bitcoin/wallet.dat", ".ethereum/keystore/x", ".boto"]
SECRET += [".electrum/wallets/x", ".Xauthority", ".config/doctl/x", ".config/hub", ".s3cfg"]
SECRET += [".local/share/opencode/auth.json", ".config/github-copilot/apps.json", ".config/helm/x"]
SECRET += ["Library/Application Support/BraveSoftware/x", "AppData/Roaming/Mozilla/x.png"]
SECRET += [
    ".limner/keys.toml",
    ".limner/limner.db",
    ".limner/limner.db-wal",
    ".limner/limner.db-shm",
]


ORDINARY = ["/tmp/x.png", "/var/tmp/x.png", "/opt/x.png", "/srv/x.png", "/mnt/x.png"]
ORDINARY += [f"/run/user/{os.getuid()}/x.png", "/run/media/me/stick/x.png", "~/.sshx/p.png"]
ORDINARY += ["/usr/src/app/x.png"]
ORDINARY += ["~/Pictures/x.png", "~/.config/x.png", "~/.docker/x.png", "~/x_history.png"]


@pytest.mark.parametrize("action", ["read", "write"])
@pytest.mark.parametrize("path", [*SYSTEM, *(f"~/{place}" for place in SECRET)])
def test_nobody_reaches_below_the_floor(world: World, path: str, action: str) -> None:
    assert (
        "closed to everyone"
        in refused(Reach.for_person(), path, cwd=world.project, action=action).message
    )
    refused(Reach(read=(Path("/"),), write=(Path("/"),)), path, cwd=world.project, action=action)


@pytest.mark.parametrize("name", [".env", ".env.local", ".ENV", ".envrc"])
def test_the_environment_file_of_a_project_is_not_read(world: World, name: str) -> None:
    for reach in (Reach.for_person(), Reach.for_model(cwd=world.project)):
        refused(reach, name, cwd=world.project, action="read")
        refused(reach, world.project / "sub" / name, cwd=world.project, action="read")
        assert reach.resolve_read(f"x{name}.png", cwd=world.project)


@pytest.mark.parametrize("name", [".git", ".GIT. ", ".claude", ".env.local"])
def test_a_closed_name_is_refused_to_models_alone(world: World, name: str) -> None:
    path, model = world.project / name / "fox.png", Reach.for_model(cwd=world.project)
    assert "is closed to models" in refused(model, path, cwd=world.project).message
    assert Reach.for_person().resolve_write(path, cwd=world.project) == path
    if not name.startswith(".env"):
        assert model.resolve_read(path, cwd=world.project) == path
    # A user who works in such a folder has opened it.
    inside = Reach.for_model(cwd=path.parent)
    assert inside.resolve_write("fox.png", cwd=path.parent) == path


def test_blobs_settings_and_trust_may_be_read_but_not_written(world: World) -> None:
    person, own = Reach.for_person(), world.limner
    for place in (own / "blobs" / "ab" / "cd", own / "config.toml", own / "trusted" / "x.json"):
        assert person.resolve_read(place, cwd=world.project) == place
        refused(person, place, cwd=world.project)


@pytest.mark.parametrize("sandbox", ["workspace-write", "danger-full-access"])
def test_the_shared_folder_of_pictures_may_be_read_but_not_written(
    world: World, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = world.project / "our pictures"
    home = Home(world.limner, shared_folder(f"file://{world.project}/our%20pictures"))
    place = shared / "ab" / "cd.png"
    monkeypatch.setenv("LIMNER_BLOBS", f"file://{shared}")
    for reach in (
        Reach.for_person(home=home),
        Reach.for_model(home=home, cwd=world.project),
        Reach.for_sandbox(sandbox, home=home, cwd=world.project),
        Reach.for_sandbox(sandbox, home=home, cwd=world.project, read=["~"], write=["~"]),
        Reach.for_model(cwd=world.project),  # by the environment of the process
    ):
        assert reach.resolve_read(place, cwd=world.project) == place
        assert refused(reach, place, cwd=world.project).code == "OUTPUT_PATH_DENIED"
        refused(reach, shared / "databases" / "x", cwd=shared)
        assert reach.resolve_write("fox.png", cwd=world.project) == world.project / "fox.png"


def test_the_floor_moves_with_the_limner_home(world: World) -> None:
    home = Home(world.outside / "lim")
    person = Reach.for_person(home=home.folder)
    refused(person, home.keys, cwd=world.project, action="read")
    assert person.resolve_write(home.generated / "1.png", cwd=world.project)


def test_a_secret_in_a_missing_folder_is_secret_by_its_real_path_too(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    secret = (tmp_path / "link/no/such/key", tmp_path / "no/../real/other")
    paths = ProtectedPaths(homes=(), system=(), exempt=(), secret=secret, unwritable=())
    assert paths.denies(tmp_path / "real/no/such/key", writing=False)
    assert paths.denies(tmp_path / "real/other", writing=False)
    assert not paths.denies(tmp_path / "real/no/key", writing=False)


def test_a_secret_behind_a_symlink_is_secret_by_both_names(world: World) -> None:
    vault = world.outside / "vault"
    vault.mkdir()
    (world.user / ".aws").symlink_to(vault)
    for path in ("~/.aws/credentials", vault / "credentials"):
        refused(Reach.for_person(), path, cwd=world.project, action="read")


@pytest.mark.parametrize(
    "path",
    ORDINARY,
)
def test_ordinary_places_stay_usable_for_a_person(world: World, path: str) -> None:
    expected = Path(os.path.realpath(path.replace("~", str(world.user), 1)))
    assert Reach.for_person().resolve_write(path, cwd=world.project) == expected


@pytest.mark.parametrize("home", ["/root", "/usr/home/me", "/var/lib/someone", "/run/home"])
def test_a_home_is_never_below_the_floor_wherever_it_is(
    world: World, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    monkeypatch.setenv("HOME", home)
    for reach in (Reach.for_person(), Reach.for_model(cwd=Path("/"))):
        made = Path(home, ".limner/generated/1.png")
        assert reach.resolve_write(made, cwd=world.project) == made
        refused(reach, f"{home}/.ssh/id", cwd=world.project, action="read")
        refused(reach, "/usr/x.png", cwd=world.project)


def test_a_home_that_names_a_system_folder_does_not_open_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/usr/sbin")
    refused(Reach.for_person(), "/usr/sbin/x.png", cwd=world.project)


def test_declared_lists_replace_the_defaults(world: World) -> None:
    reach = Reach.from_lists(
        read=["~/Pictures", "${self}", "${CWD}/in"],
        write=["${LIMNER_HOME}/out", "/srv/pictures"],
        cwd=world.project,
        self_dir=world.limner / "personalities" / "ada",
    )
    assert reach.read == (
        world.user / "Pictures",
        world.limner / "personalities" / "ada",
        world.project / "in",
    )
    assert reach.write == (world.limner / "out", Path("/srv/pictures"))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("${CWD}/x", "${CWD} in the reach entry '${CWD}/x' has no value here."),
        ("${self}", "${self} in the reach entry '${self}' has no value here."),
        ("${HOME}/x", "'${HOME}' in the reach entry '${HOME}/x' is not a name limner knows."),
        ("${}", "'${}' in the reach entry '${}' is not a name limner knows."),
        ("${CWD", "'${CWD' in the reach entry '${CWD' is not a name limner knows."),
        ("pictures", "The reach entry 'pictures' is not an absolute folder."),
        ("", "The reach entry '' is not an absolute folder."),
        ("~alice/x", "The reach entry '~alice/x' is not an absolute folder."),
    ],
)
def test_an_entry_that_cannot_be_expanded_is_a_settings_error(
    world: World, entry: str, message: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        Reach.from_lists(read=[], write=[entry], self_dir=Path())
    assert caught.value.message == message
    assert caught.value.hint


NAMES = [
    "a",
    "b",
    "x.png",
    "in",
    "out",
    "up",
    "abs",
    "loop",
    "dangling",
    "ssh",
    ".ssh",
    "ünï",
    "e\u0301",
]
PARTS = st.sampled_from([*NAMES, "..", "..", ".", "", "~", ".bash_history", "..."])


def _tree(world: World) -> None:
    project = world.project
    for folder in ("a", "b/a", "ünï"):
        (project / folder).mkdir(parents=True, exist_ok=True)
    links = {
        "in": "a",
        "out": str(world.outside),
        "up": "..",
        "abs": "/",
        "loop": "loop",
        "dangling": str(world.outside / "missing"),
        "ssh": str(world.user / ".ssh"),
        "a/up": "../..",
        "a/out": "../../../outside",
    }
    for name, target in links.items():
        if not os.path.lexists(project / name):
            (project / name).symlink_to(target)


def _landing(path: Path) -> Path | None:
    """Where the kernel puts a file that is created at the path; None where it cannot."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_CREAT | os.O_RDONLY, 0o600)
    except OSError:
        return None
    try:
        return Path(f"/proc/self/fd/{fd}").readlink()
    finally:
        os.close(fd)


@pytest.mark.slow
@given(
    start=st.sampled_from(["", "~/project/", "~/", "./", "PROJECT/", "OUTSIDE/", "/"]),
    parts=st.lists(PARTS, min_size=1, max_size=7),
    joint=st.sampled_from(["/", "//"]),
    end=st.sampled_from(["", "/", "/.", "/.."]),
)
@example(start="", parts=["a", "up", "..", "outside", "x.png"], joint="/", end="")
@settings(
    max_examples=examples(100, 3000),
    suppress_health_check=SHARED_FIXTURE,
)
def test_property_nothing_allowed_lands_outside_the_roots_or_below_the_floor(
    world: World, start: str, parts: list[str], joint: str, end: str
) -> None:
    _tree(world)
    start = start.replace("PROJECT", str(world.project)).replace("OUTSIDE", str(world.outside))
    path = start + joint.join(parts) + end
    reach = Reach(read=(world.user,), write=(world.project,))
    try:
        allowed = reach.resolve_write(path, cwd=world.project)
    except ReachDenied:
        pass
    else:
        assert allowed.is_relative_to(world.project)
        landed = _landing(allowed)
        assert landed is None or landed.is_relative_to(world.project)
    try:
        allowed = reach.resolve_read(path, cwd=world.project)
    except ReachDenied:
        return
    assert allowed == Path(os.path.realpath(allowed))
    assert allowed.is_relative_to(world.user)
    assert not allowed.is_relative_to(world.user / ".ssh")
    assert allowed != world.user / ".bash_history"


PLAIN = st.text(
    st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), min_size=1, max_size=40
).filter(lambda name: name.strip() and not name.startswith("~") and name not in (".", ".."))


@pytest.mark.slow
@given(parts=st.lists(PLAIN, min_size=1, max_size=4))
@settings(suppress_health_check=SHARED_FIXTURE)
def test_property_plain_names_under_the_cwd_are_always_allowed(
    world: World, parts: list[str]
) -> None:
    # Names such as .git are closed in every spelling, as other tests say.
    assume(not any(reach_module._is_closed_name(name) for name in parts))
    expected = world.outside.joinpath(*parts)
    reach = Reach.for_model(cwd=world.outside)
    assert reach.resolve_write("/".join(parts), cwd=world.outside) == expected


def test_in_a_read_only_session_everything_is_read_as_ever_and_nothing_is_written(
    world: World,
) -> None:
    reach = Reach.for_sandbox("read-only", home=world.limner, cwd=world.project)
    model = Reach.for_model(home=world.limner, cwd=world.project)
    assert reach == replace(model, read_only=True)
    assert reach.resolve_read("fox.png", cwd=world.project) == world.project / "fox.png"
    for path in ("fox.png", world.limner / "generated" / "1.png", "/etc/fox.png", "", "a\0b"):
        error = refused(reach, path, cwd=world.project)
        assert (error.code, error.message, error.hint) == (
            "OUTPUT_PATH_DENIED",
            "Nothing can be written: this session is read-only.",
            "Only the user can change that: the sandbox workspace-write allows it.",
        )


def test_the_sandbox_workspace_write_is_what_a_model_may_reach_anyway(world: World) -> None:
    reach = Reach.for_sandbox("workspace-write", home=world.limner, cwd=world.project)
    assert reach == Reach.for_model(home=world.limner, cwd=world.project)


def test_full_access_is_everything_above_the_floor(world: World) -> None:
    reach = Reach.for_sandbox("danger-full-access", home=world.limner, cwd=world.project)
    assert (reach.anywhere, reach.read_only) == (True, False)
    path = world.outside / "fox.png"
    assert reach.resolve_write(path, cwd=world.project) == path
    assert reach.resolve_read(path, cwd=world.project) == path
    for below in ("/etc/fox.png", "~/.ssh/fox.png"):
        assert "closed to everyone" in refused(reach, below, cwd=world.project).message


@pytest.mark.parametrize("sandbox", ["read-only", "workspace-write", "danger-full-access"])
def test_what_a_personality_declares_holds_in_every_sandbox(world: World, sandbox: Sandbox) -> None:
    reach = Reach.for_sandbox(
        sandbox,
        home=world.limner,
        cwd=world.project,
        read=["${self}", "${CWD}"],
        write=["${CWD}/pictures"],
        self_dir=world.outside,
    )
    assert reach == Reach(
        read=(world.outside, world.project),
        write=(world.project / "pictures",),
        read_only=sandbox == "read-only",
        floor=reach.floor,
    )


@pytest.mark.parametrize("sandbox", ["read-only", "workspace-write", "danger-full-access"])
def test_of_what_a_personality_does_not_declare_the_sandbox_decides(
    world: World, sandbox: Sandbox
) -> None:
    places: dict[str, Any] = {"home": world.limner, "cwd": world.project}
    whole = Reach.for_sandbox(sandbox, **places)
    reads = Reach.for_sandbox(sandbox, **places, read=["${CWD}"])
    assert (reads.read, reads.write) == ((world.project,), whole.write)
    writes = Reach.for_sandbox(sandbox, **places, write=[])
    assert (writes.read, writes.write) == (whole.read, ())
    assert (reads.anywhere, writes.anywhere) == (False, False)
    refused(reads, world.outside / "fox.png", cwd=world.project, action="read")
    refused(writes, "fox.png", cwd=world.project)


def test_an_entry_that_means_nothing_is_an_error_in_every_sandbox(world: World) -> None:
    with pytest.raises(SettingsError, match="no value here"):
        Reach.for_sandbox("read-only", home=world.limner, cwd=world.project, write=["${self}"])


@pytest.mark.skipif(sys.platform == "win32", reason="there it is always asked")
@pytest.mark.parametrize(
    "env",
    [{}, {"TMPDIR": "{folder}"}, {"TMPDIR": "", "TMP": "{folder}"}, {"TEMP": "{folder}/missing"}],
)
def test_the_temp_folder_is_that_of_tempfile(env: dict[str, str], tmp_path: Path) -> None:
    code = (
        "import sys; from limner.storage.protected_paths import temp_folders; "
        "first, was_loaded = temp_folders(), 'tempfile' in sys.modules; import tempfile; "
        "print(*map(str, first), *map(str, temp_folders()), tempfile.gettempdir(), was_loaded)"
    )
    chosen = {name: value.format(folder=tmp_path) for name, value in env.items()}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=chosen
    )
    first, then, asked, was_loaded = done.stdout.split()
    assert first == then == asked
    assert was_loaded == str("TEMP" in env)
