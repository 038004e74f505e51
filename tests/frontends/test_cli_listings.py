"""`limner models`, `assets`, `demo` and `doctor`."""

from __future__ import annotations

import ctypes
import shlex
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from tests.frontends.cli_process import CommandLine, Done

from limner.illustrator import assets
from limner.storage.keys import Keys
from limner.testing.servers.openai_server import OpenAIServer

pytestmark = pytest.mark.slow

LANDLOCK_CREATE_RULESET = 444


def checks(done: Done) -> dict[str, bool]:
    return {check["name"]: check["ok"] for check in done.json["checks"]}


def failed(done: Done) -> dict[str, str]:
    return {c["name"]: c["detail"] for c in done.json["checks"] if not c["ok"]}


def test_models_says_what_is_usable_and_what_to_set(cli: CommandLine, openai: OpenAIServer) -> None:
    def obstacles(done: Done) -> dict[str, Any]:
        return {m["name"]: m["obstacle"] for m in done.json["models"] if m["retired"] is None}

    without = obstacles(cli.run("models", "--json"))
    assert without["openai-image/gpt-image-2.5-flare"] == "set OPENAI_API_KEY"
    assert without["replicate-flux/black-forest-labs/flux-schnell"] == "set REPLICATE_API_TOKEN"
    assert without["illustrator/limner-illustrator"] is None
    cli.studio.connect(openai)
    assert obstacles(cli.run("models", "--json"))["openai-image/gpt-image-2.5-flare"] is None


def test_models_starts_with_what_is_usable_now_and_ends_with_what_is_retired(
    cli: CommandLine,
) -> None:
    done = cli.run("models")
    assert [line.split() for line in done.out.splitlines()[:6]] == [
        ["usable", "now"],
        ["illustrator/limner-illustrator", "free", "draws"],
        ["limner/eyes", "free", "looks"],
        ["limner/offline", "free", "talks"],
        [],
        ["with", "a", "key:", "limner", "keys", "set", "OPENAI_API_KEY"],
    ]
    groups = dict(part.split("\n", 1) for part in done.out.rstrip().split("\n\n"))
    flux = groups["with a key: limner keys set REPLICATE_API_TOKEN"].splitlines()
    schnell = ["replicate-flux/black-forest-labs/flux-schnell", "$0.003"]
    assert flux[0].split() == schnell
    assert [*groups][-2:] == ["on your own server or GPU, if you name the provider", "retired"]
    retired = ["openai-dalle/dall-e-3", "use", "openai-image/gpt-image-2.5-flare"]
    assert groups["retired"].splitlines()[0].split() == retired
    names = [line.split()[0] for line in done.out.splitlines() if line.startswith("  ")]
    assert sorted(set(names)) == sorted(names)
    assert max(map(len, groups["retired"].splitlines())) < 100
    assert done.err == (
        "Prices: one picture of about 1024x1024, standard quality; ≤ is an upper bound.\n"
        "limner models --vision lists the models that look and talk.\n"
    )


def test_models_says_by_which_rule_each_is_priced_and_who_says_so_if_asked(
    cli: CommandLine,
) -> None:
    lines = cli.run("models", "--sources").out.splitlines()
    assert lines[2] == "      free; limner.illustrator; read 2026-11-15"
    flux = next(number for number, line in enumerate(lines) if "flux-schnell" in line)
    assert lines[flux + 1].startswith("      flat; https://replicate.com/pricing")


def test_assets_are_found_by_word(cli: CommandLine) -> None:
    best, second = assets.search("robot", limit=2)
    listed = cli.run("assets", "search", "robot", "--limit", "2")
    assert [line.split()[0] for line in listed.out.splitlines()] == [best.name, second.name]
    assert (listed.status, listed.err) == (0, "")


def test_assets_that_nothing_matches_are_an_empty_answer(cli: CommandLine) -> None:
    done = cli.run("assets", "search", "zorgblat")
    assert done == Done(status=0, err="No picture matches 'zorgblat'.\n")


def test_assets_says_whose_pictures_they_are(cli: CommandLine) -> None:
    done = cli.run("assets", "licences")
    assert done == Done(status=0, out=f"{assets.licences().rstrip()}\n")


def test_assets_refuses_what_makes_no_sense(cli: CommandLine) -> None:
    ended = cli.run_all(
        ["assets", "search"],
        ["assets", "search", "robot", "--limit", "-1"],
        ["assets", "licences", "robot"],
    )
    assert [(done.status, done.err) for done in ended] == [
        (2, "limner: say what to look for\n  For example: limner assets search robot\n"),
        (2, "limner: --limit must be at least 1\n"),
        (2, "limner: assets licences takes no word: it lists all licences\n"),
    ]


def test_the_demo_draws_three_pictures_offline_even_if_a_key_is_set(
    cli: CommandLine, openai: OpenAIServer
) -> None:
    cli.studio.connect(openai)
    done = cli.run("demo")
    assert (done.status, done.err, openai.requests) == (0, "", [])
    lines = done.out.splitlines()
    assert sorted(line for line in lines if line.endswith(".png")) == sorted(
        map(str, cli.studio.files)
    )
    assert len(cli.studio.files) == 3
    *told, spent = lines[:-3]
    assert all(len(line) < 80 or line.endswith(".png") for line in told)
    assert "\x1b" not in done.out
    following = lines[-3:]
    assert spent == "Spent: $0.00. Type one of these next:"
    me = f"  {shlex.quote(sys.executable)} -m limner "
    assert [line.removeprefix(me).split()[0] for line in following] == [
        "chat",
        "generate",
        "models",
    ]


def test_the_demo_looks_at_what_it_drew_and_its_next_commands_work(cli: CommandLine) -> None:
    value = cli.run("demo", "--json").json
    inspection = value["inspection"]
    assert inspection["details"]["model"] == "limner/eyes"
    assert inspection["details"]["imagePath"] == value["path"]
    assert "1024 x 1024" in inspection["text"]
    assert [one["source_format"] for one in value["rendered"]] == ["limner", "dot"]
    assert value["spent_usd"] == 0
    chat, *others = [shlex.split(command)[3:] for command in value["next"]]
    # A conversation needs a terminal; one turn does not.
    for words in ([*chat, "-p"], *others):
        assert cli.run(*words).status == 0


def test_the_doctor_finds_a_fresh_machine_healthy(cli: CommandLine) -> None:
    done = cli.run("doctor", "--json")
    assert (done.status, done.json["ok"]) == (0, True)
    assert checks(done) == dict.fromkeys(
        [
            "version",
            "settings",
            "home",
            "database",
            "backups",
            "blobs",
            "imaging",
            "assets",
            "providers",
            "vision",
            "plug-ins",
            "extras",
            "pictures",
        ],
        True,
    )


def test_the_doctor_starts_with_what_works_now(cli: CommandLine) -> None:
    first = cli.run("doctor").out.splitlines()[0]
    assert first == "works now: illustrator draws, limner/eyes looks, limner/offline talks"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is no sandbox")
def test_the_doctor_says_which_protections_hold(cli: CommandLine) -> None:
    version = ctypes.CDLL(None).syscall(LANDLOCK_CREATE_RULESET, None, 0, 1)
    landlock = f", Landlock {version}" if version > 0 else ""
    reading = "a worker reads only Python and its libraries"
    done = cli.run("doctor", "--json")
    assert done.json["sandbox"] == [
        {
            "name": "reading",
            "holds": version > 0,
            "detail": f"{reading} (Landlock {version})"
            if version > 0
            else f"this system cannot enforce: {reading}",
        },
        *(
            {"name": name, "holds": True, "detail": detail}
            for name, detail in {
                "writing": f"a worker writes and deletes no file (seccomp{landlock})",
                "network": f"a worker opens no socket (seccomp{landlock})",
                "processes": "a worker starts no program and reaches no process "
                f"(seccomp{landlock})",
                "memory": "a worker has a limit on memory (rlimit)",
                "host": "other programs cannot read limner's memory (not dumpable)",
            }.items()
        ),
    ]


def test_the_doctor_reports_a_role_that_cannot_be_used(cli: CommandLine) -> None:
    unknown = cli.run("doctor", "--json", env={"LIMNER_MODEL_ROLES_VISION": "opnai/gpt-5.5"})
    (vision,) = [one for one in unknown.json["checks"] if one["name"] == "vision"]
    assert (unknown.status, vision["ok"]) == (1, False)
    assert vision["detail"].startswith("model_roles.vision names 'opnai/gpt-5.5', which is not")
    no_key = cli.run("doctor", "--json", env={"LIMNER_MODEL_ROLES_VISION": "openai/gpt-5.5"})
    (vision,) = [one for one in no_key.json["checks"] if one["name"] == "vision"]
    assert vision["detail"].startswith("No API key available for openai/gpt-5.5.")


def test_the_doctor_reports_wrong_settings_as_a_finding(cli: CommandLine) -> None:
    done = cli.run("doctor", "--json", env={"LIMNER_IMAGES_EMBEDED": "false"})
    assert done.status == 1
    assert failed(done) == {
        "settings": "LIMNER_IMAGES_EMBEDED is not a setting Did you mean LIMNER_IMAGES_EMBEDDED?"
    }


def test_the_doctor_finds_a_damaged_database_and_checks_the_rest(cli: CommandLine) -> None:
    cli.studio.home.mkdir()
    database = cli.studio.home / "limner.db"
    database.write_text("not a database, and longer than its header " * 9)
    done = cli.run("doctor")
    assert done.status == 1
    (line,) = [line for line in done.out.splitlines() if line.startswith("FAIL")]
    assert line.startswith(f"FAIL  database    The database '{database}' is damaged.")
    assert [line[6:16].strip() for line in done.out.splitlines()[-6:]] == [
        *("reading", "writing", "network", "processes", "memory", "host")
    ]


def test_the_doctor_finds_a_damaged_picture_and_repairs_a_lost_database(cli: CommandLine) -> None:
    drawn = cli.run("generate", "a fox", "--json").json
    blob = cli.studio.home / "blobs" / drawn["image"][:2] / drawn["image"]
    blob.write_bytes(b"rotten")
    for words in (["doctor", "--json"], ["doctor", "--scrub", "--json"]):
        done = cli.run(*words)
        assert (done.status, done.json["ok"]) == (1, False)
        assert failed(done)["pictures"].startswith("1 damaged and 0 missing of 1 pictures: ")
    assert done.json["scrub"] == {
        "checked": 1,
        "pictures": 1,
        "damaged": [drawn["image"]],
        "missing": [],
    }
    (cli.studio.home / "limner.db").unlink()
    lost = cli.run("spend", "--json")
    assert (lost.status, lost.error["code"]) == (1, "DATABASE_DAMAGED")
    done = cli.run("doctor", "--repair", "--json")
    assert (done.status, done.json["ok"]) == (0, True)
    repair = done.json["repair"]
    assert (repair["pictures"], repair["recorded"], repair["restored"]) == (1, 1, 1)
    lineage = cli.run("show", drawn["image"], "--json").json["lineage"]
    assert lineage.pop("scene")["prompt"] == "a fox"
    assert lineage == {
        "repaired": True,
        "provider": "illustrator",
        "model": "limner-illustrator",
        "prompt": "a fox",
    }
    assert "pictures    1 are whole" in cli.run("doctor", "--repair").out


def test_a_backup_is_written_once_and_can_be_unpacked(cli: CommandLine) -> None:
    drawn = cli.run("generate", "a fox", "--json").json
    done = cli.run("backup", "home.tar", "--json")
    file = cli.studio.cwd / "home.tar"
    assert done.json == {
        "path": str(file),
        "files": 4,
        "pictures": 1,
        "size_bytes": file.stat().st_size,
        "damaged": [],
    }
    assert cli.run("backup", "home.tar", "--json").error["code"] == "OUTPUT_EXISTS"
    assert cli.run("backup", "home.tar", "--overwrite").status == 0
    restored = cli.studio.cwd / "restored"
    with tarfile.open(file) as archive:
        archive.extractall(restored, filter="data")
    there = {"LIMNER_HOME": str(restored)}
    assert cli.run("doctor", "--scrub", env=there).status == 0
    assert cli.run("show", drawn["image"], "--json", env=there).status == 0


def test_the_doctor_finds_a_home_that_is_no_folder(cli: CommandLine) -> None:
    cli.studio.home.touch()
    done = cli.run("doctor", "--json")
    assert (done.status, done.json["ok"]) == (1, False)
    assert failed(done)["home"] == (
        f"{cli.studio.home} is not a folder that may be written. Set LIMNER_HOME to one."
    )


def test_the_doctor_finds_that_nothing_can_draw_or_look(cli: CommandLine) -> None:
    done = cli.run("doctor", "--json", env={"LIMNER_IMAGES_EMBEDDED": "false"})
    assert done.status == 1
    assert failed(done) == {
        "providers": "Nothing here can draw. Set OPENAI_API_KEY or REPLICATE_API_TOKEN or "
        "GEMINI_API_KEY or BFL_API_KEY or FAL_KEY or OPENROUTER_API_KEY.",
        "vision": "No models available for inspect_image. Set a key, as in OPENAI_API_KEY=…",
    }


def test_the_doctor_finds_keys_that_others_can_read(cli: CommandLine) -> None:
    keys = cli.studio.home / "keys.toml"
    Keys(keys, env={}).set("OPENAI_API_KEY", "sk-0123456789")
    keys.chmod(0o644)
    done = cli.run("doctor", "--json")
    assert done.status == 1
    trouble = f"Other users than its owner can use the key file '{keys}'. Run: chmod 600 '{keys}'"
    assert failed(done) == {"providers": trouble, "vision": trouble}


def install(folder: Path, entry_points: str) -> dict[str, str]:
    """The environment of a Python in which the package is installed, as an installer leaves it."""
    info = folder / "packages" / "crate-2.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: crate\nVersion: 2.1\n")
    (info / "entry_points.txt").write_text(entry_points)
    (info.parent / "crate.py").write_text(
        'import limner\n@limner.tool\ndef dice() -> str:\n    """Roll a die."""\n    return "6"\n'
    )
    return {"PYTHONPATH": str(info.parent)}


def test_the_doctor_names_the_plug_ins_that_are_loaded(cli: CommandLine, tmp_path: Path) -> None:
    done = cli.run("doctor", env=install(tmp_path, "[limner.tools]\ndice = crate:dice\n"))
    assert done.status == 0
    assert "ok    plug-ins    dice\n" in done.out


def test_the_doctor_fails_if_a_plug_in_cannot_be_loaded(cli: CommandLine, tmp_path: Path) -> None:
    entry_points = (
        "[limner.providers]\natelier = crater:SPEC\n"
        "[limner.tools]\ncoin = crate:coin\ndice = crate:dice\n"
    )
    done = cli.run("doctor", "--json", env=install(tmp_path, entry_points))
    assert (done.status, done.json["ok"]) == (1, False)
    assert failed(done) == {
        "plug-ins": "the provider 'atelier' of crate 2.1 (crater:SPEC) cannot be loaded: "
        "ModuleNotFoundError(\"No module named 'crater'\"); "
        "the tool 'coin' of crate 2.1 (crate:coin) cannot be loaded: "
        "AttributeError(\"module 'crate' has no attribute 'coin'\"). "
        "Mend the package, or uninstall it with pip.",
    }
