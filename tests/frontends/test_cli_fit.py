"""`limner fit`: pictures ready for models, a table of what looking costs, files."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.frontends.cli_process import CommandLine

pytestmark = pytest.mark.slow

HAIKU = "anthropic/claude-haiku-4-5"
GPT = "openai/gpt-5.5"


def draw(path: Path, width: int = 2000, height: int = 1000) -> bytes:
    fractal = Image.effect_mandelbrot((width, height), (-2, -1.5, 1, 1.5), 40)
    fractal.convert("RGB").save(path, path.suffix[1:].replace("jpg", "jpeg"))
    return path.read_bytes()


def size(path: Path | str) -> tuple[int, int]:
    with Image.open(path) as image:
        return image.size


def fit(cli: CommandLine, *words: str, **env: str) -> dict[str, Any]:
    done = cli.run("fit", *words, "--json", env=env)
    assert (done.status, done.err) == (0, "")
    return done.json


def test_the_json_has_the_original_and_what_is_sent_for_each_model(cli: CommandLine) -> None:
    data = draw(cli.studio.cwd / "photo.png")
    [image] = fit(cli, "photo.png", "--for", HAIKU, "--for", GPT)["images"]
    assert image["path"] == "photo.png"
    assert image["handle"] == hashlib.sha256(data).hexdigest()
    assert image["original"] == {
        "width": 2000,
        "height": 1000,
        "bytes": len(data),
        "mime": "image/png",
    }
    haiku, gpt = image["fits"]
    assert haiku == {
        "model": HAIKU,
        "width": 1568,
        "height": 784,
        "bytes": haiku["bytes"],
        "mime": haiku["mime"],
        "tokens": 1568,
        "tokens_exact": True,
        "cost_usd": 0.001568,
        "untouched": False,
        "animated": False,
        "part": {"x": 0, "y": 0, "width": 2000, "height": 1000},
        "scale_x": 2000 / 1568,
        "scale_y": 1000 / 784,
        "tiles": [],
        "paths": [],
    }
    assert (gpt["model"], gpt["tokens"], gpt["bytes"]) == (GPT, 1470, haiku["bytes"])


def test_the_table_has_a_line_for_each_model_side_by_side(cli: CommandLine) -> None:
    draw(cli.studio.cwd / "photo.png")
    done = cli.run("fit", "photo.png", "--for", HAIKU, "--for", GPT)
    title, haiku, gpt = done.out.splitlines()
    assert title.split()[:3] == ["photo.png", "2000x1000", "image/png"]
    assert haiku.split()[:2] == [HAIKU, "1568x784"]
    assert haiku.split()[-3:] == ["1,568", "tokens", "$0.001568"]
    assert gpt.split()[:2] == [GPT, "1568x784"]
    assert (done.status, done.err) == (0, "")


def test_without_a_model_one_of_each_service_is_shown(cli: CommandLine) -> None:
    draw(cli.studio.cwd / "photo.png")
    [image] = fit(cli, "photo.png")["images"]
    services = [found["model"].partition("/")[0] for found in image["fits"]]
    assert services == ["openai", "anthropic", "google"]


def test_the_fitted_picture_is_written_and_the_original_left_alone(cli: CommandLine) -> None:
    data = draw(cli.studio.cwd / "photo.jpg")
    [image] = fit(cli, "photo.jpg", "--out", "small.webp")["images"]
    [found] = image["fits"]
    written = cli.studio.cwd / "small.webp"
    assert found["paths"] == [str(written)]
    assert found["mime"] == "image/webp"
    assert written.stat().st_size == found["bytes"]
    assert size(written) == (1568, 784)
    assert (cli.studio.cwd / "photo.jpg").read_bytes() == data


@pytest.mark.parametrize(
    ("name", "mime"),
    [("a.png", "PNG"), ("a.webp", "WEBP"), ("a.JPEG", "JPEG"), ("a.b", None)],
)
def test_the_file_has_the_name_that_was_given_and_its_format(
    cli: CommandLine, name: str, mime: str | None
) -> None:
    draw(cli.studio.cwd / "photo.jpg")
    [image] = fit(cli, "photo.jpg", "--out", name)["images"]
    assert image["fits"][0]["paths"] == [str(cli.studio.cwd / name)]
    with Image.open(cli.studio.cwd / name) as written:
        assert mime in (written.format, None)


def test_a_format_that_limner_does_not_write_is_refused(cli: CommandLine) -> None:
    draw(cli.studio.cwd / "photo.jpg")
    done = cli.run("fit", "photo.jpg", "--out", "small.gif", "--json")
    assert (done.status, done.error["message"]) == (2, "limner does not write GIF files")


def test_several_pictures_go_into_a_folder_under_their_own_names(cli: CommandLine) -> None:
    draw(cli.studio.cwd / "one.png")
    draw(cli.studio.cwd / "two.png")
    fit(cli, "one.png", "two.png", "--for", HAIKU, "--for", GPT, "--out", "fitted/")
    assert sorted(path.stem for path in (cli.studio.cwd / "fitted").iterdir()) == [
        "one-claude-haiku-4-5",
        "one-gpt-5.5",
        "two-claude-haiku-4-5",
        "two-gpt-5.5",
    ]


def test_several_pictures_cannot_be_one_file(cli: CommandLine) -> None:
    draw(cli.studio.cwd / "one.png")
    done = cli.run("fit", "one.png", "one.png", "--out", "both.png", "--json")
    assert (done.status, done.error["hint"]) == (2, "End it with a slash: --out both.png/")
    assert not (cli.studio.cwd / "both.png").exists()


def test_an_existing_file_is_replaced_only_when_asked(cli: CommandLine) -> None:
    draw(cli.studio.cwd / "photo.jpg")
    (cli.studio.cwd / "small.webp").write_text("mine")
    done = cli.run("fit", "photo.jpg", "--out", "small.webp", "--json")
    assert (done.status, done.error["code"]) == (2, "OUTPUT_EXISTS")
    assert (cli.studio.cwd / "small.webp").read_text() == "mine"
    fit(cli, "photo.jpg", "--out", "small.webp", "--overwrite")
    assert size(cli.studio.cwd / "small.webp") == (1568, 784)


def test_a_region_comes_from_the_original_at_full_detail(cli: CommandLine) -> None:
    draw(cli.studio.cwd / "photo.png")
    [image] = fit(cli, "photo.png", "--for", HAIKU, "--region", "1500,200,300,100")["images"]
    [found] = image["fits"]
    assert (found["width"], found["height"]) == (300, 100)
    assert found["part"] == {"x": 1500, "y": 200, "width": 300, "height": 100}
    assert (found["scale_x"], found["scale_y"]) == (1.0, 1.0)
    shown = cli.run("fit", "photo.png", "--for", HAIKU, "--region", "1500,200,300,100")
    assert shown.out.splitlines()[1].endswith("of 300x100 at 1500,200")


@pytest.mark.parametrize("region", ["1,2,3", "a,b,c,d", "1,2,3,-4", "1, 2, 3, 4"])
def test_a_region_that_is_none_is_bad_usage(cli: CommandLine, region: str) -> None:
    done = cli.run("fit", "photo.png", f"--region={region}", "--json")
    assert (done.status, done.error["code"]) == (2, "USAGE")
    assert "X,Y,WIDTH,HEIGHT" in done.error["message"]


def test_tiles_are_listed_and_written_when_the_setting_asks_for_them(cli: CommandLine) -> None:
    draw(cli.studio.cwd / "long.png", 800, 4000)
    setting = {"LIMNER_IMAGES_TILE": "auto"}
    [image] = fit(cli, "long.png", "--out", "long-fitted", **setting)["images"]
    [found] = image["fits"]
    assert [tile["part"]["y"] for tile in found["tiles"]] == [0, 1300, 2601]
    names = [Path(path).stem for path in found["paths"]]
    assert names == ["long-fitted", "long-fitted-part1", "long-fitted-part2", "long-fitted-part3"]
    for path, tile in zip(found["paths"][1:], found["tiles"], strict=True):
        assert size(path) == (tile["width"], tile["height"])


def test_an_animation_is_said_to_be_sent_as_its_first_frame(cli: CommandLine) -> None:
    for edge, note in ((40, False), (1600, True)):
        frames = [Image.new("RGB", (edge, 30), colour) for colour in ("red", "blue")]
        out = io.BytesIO()
        frames[0].save(out, "GIF", save_all=True, append_images=frames[1:])
        (cli.studio.cwd / "moving.gif").write_bytes(out.getvalue())
        last = cli.run("fit", "moving.gif", "--for", HAIKU).out.splitlines()[-1]
        assert (last == "  an animation: only its first frame is sent") is note


def test_one_bad_file_among_several_is_told_and_the_rest_is_fitted(cli: CommandLine) -> None:
    draw(cli.studio.cwd / "good.png")
    (cli.studio.cwd / "bad.png").write_text("not a picture")
    done = cli.run("fit", "bad.png", "good.png", "missing.png", "--for", HAIKU, "--json")
    bad, good, missing = done.json["images"]
    assert done.status == 4
    assert (bad["path"], bad["error"]["code"]) == ("bad.png", "IMAGE_UNRECOGNIZED")
    assert good["fits"][0]["tokens"] == 1568
    assert missing["error"]["code"] == "FILE_NOT_FOUND"
    shown = cli.run("fit", "bad.png", "good.png", "--for", HAIKU)
    assert shown.out.splitlines()[0] == "bad.png  cannot be fitted"
    assert "the first bytes match no known image format" in shown.err


def test_one_bad_file_alone_is_the_error_of_the_command(cli: CommandLine) -> None:
    (cli.studio.cwd / "bad.png").write_text("not a picture")
    done = cli.run("fit", "bad.png", "--json")
    assert (done.status, done.error["code"]) == (4, "IMAGE_UNRECOGNIZED")


def test_an_unknown_model_is_bad_usage_that_names_the_nearest(cli: CommandLine) -> None:
    draw(cli.studio.cwd / "photo.png")
    done = cli.run("fit", "photo.png", "--for", "opnai/gpt-5.5", "--json")
    assert (done.status, done.error["code"]) == (2, "INPUT_INVALID")
    assert "openai/gpt-5.5" in done.error["hint"]


def test_a_secret_place_is_not_read(cli: CommandLine) -> None:
    done = cli.run("fit", "/etc/passwd", "--json")
    assert (done.status, done.error["code"]) == (5, "PATH_DENIED")


def test_what_was_fitted_before_is_found_again(cli: CommandLine) -> None:
    draw(cli.studio.cwd / "photo.png")
    first = fit(cli, "photo.png", "--for", HAIKU)
    assert fit(cli, "photo.png", "--for", HAIKU) == first


def test_a_model_of_the_settings_and_a_handle_are_known_as_inspect_knows_them(
    cli: CommandLine,
) -> None:
    table = '[[models]]\nname = "local/llava-next"\nbase_url = "http://127.0.0.1:9/v1"\n'
    cli.studio.home.mkdir()
    (cli.studio.home / "config.toml").write_text(table)
    draw(cli.studio.cwd / "photo.png", 40, 20)
    [taken] = fit(cli, "photo.png", "--for", "local/llava-next")["images"]
    [again] = fit(cli, taken["handle"], "--model", "local/llava-next")["images"]
    assert [one["model"] for one in again["fits"]] == ["local/llava-next"]
    assert again["fits"] == taken["fits"]
