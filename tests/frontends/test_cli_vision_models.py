"""`limner models --vision`: what can look, at what price, and who looks and talks now."""

from __future__ import annotations

from tests.frontends.cli_process import CommandLine


def test_vision_models_say_what_is_available_and_which_is_used(cli: CommandLine) -> None:
    found = cli.run("models", "--vision", "--json").json
    rows = {row["name"]: row for row in found["models"]}
    gpt = rows["openai/gpt-5.5"]
    assert (gpt["api"], gpt["available"], gpt["obstacle"]) == (
        "openai-responses",
        False,
        "set OPENAI_API_KEY",
    )
    assert (gpt["token_rule"], gpt["rate"]["input_usd"]) == ("openai_patches", "5")
    assert (gpt["read"], bool(gpt["source"])) == ("2026-11-15", True)
    assert gpt["formats"] == ["image/png", "image/jpeg", "image/webp", "image/gif"]
    assert rows["limner/eyes"]["available"]
    assert found["used"] == {"model": "limner/eyes", "effort": None, "by": "first"}
    assert found["talks"] == {"model": "limner/offline", "effort": None, "by": "offline"}
    unset = {"set": None, "model": None, "effort": None, "available": False}
    assert found["roles"] == {"vision": unset, "default": unset}


def test_a_person_reads_first_which_models_look_and_talk(cli: CommandLine) -> None:
    folder = cli.studio.home
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(
        '[model_roles]\nvision = "openay/gpt-5.5"\ndefault = "home/llava:high"\n'
        '[[models]]\nname = "home/llava"\nbase_url = "http://u:secret@127.0.0.1:1/v1"\n'
    )
    done = cli.run("models", "--vision")
    assert done.out.splitlines()[:6] == [
        "looks    home/llava (the role default)",
        "talks    home/llava (the role default)",
        "vision   openay/gpt-5.5 -> no such model",
        "default  home/llava:high -> home/llava",
        "",
        "usable now",
    ]
    assert "model_roles.vision: there is no model 'openay/gpt-5.5'; did you mean" in done.err
    assert "openai/gpt-5.5" in done.err
    found = cli.run("models", "--vision", "--json")
    assert found.json["roles"]["default"] == {
        "set": "home/llava:high",
        "model": "home/llava",
        "effort": "high",
        "available": True,
    }
    assert "secret" not in found.out


def test_a_role_that_cannot_be_talked_to_is_told(cli: CommandLine) -> None:
    cli.studio.home.mkdir(parents=True, exist_ok=True)
    (cli.studio.home / "config.toml").write_text('[model_roles]\ndefault = "openai/gpt-5.5"\n')
    done = cli.run("models", "--vision")
    told = "talks    nothing: No API key available for openai/gpt-5.5."
    assert done.out.splitlines()[1] == told
    assert cli.run("models", "--vision", "--json").json["talks"] is None
