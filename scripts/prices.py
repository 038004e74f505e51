"""Compare our price rows with public price maps, and list where they differ.

usage: python scripts/prices.py [--litellm FILE.json]

Without a file the newest map is taken from the `litellm` package, and a second one from
`genai-prices`; both are only unpacked, never installed here. A difference is a question, not a
mistake: the maps err too, and our rows name their sources.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import zipfile
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from limner.catalogue.images import ImageModel, Size, all_image_models
from limner.catalogue.prices import AreaTokensPrice, GptImageTokens
from limner.catalogue.vision import vision_models
from limner.errors import NANO_PER_USD

MILLION = 1_000_000
LITELLM_FILE = "litellm/model_prices_and_context_window_backup.json"
# How the map writes the services whose rows are priced by the picture.
PER_PICTURE = {"bfl-flux": "black_forest_labs/{}", "fal": "fal_ai/{}", "openai-dalle": "{}"}
READ_GENAI = """
import json
from genai_prices.data import providers
rates = {}
for provider in providers:
    for model in provider.models:
        prices = model.prices[-1].prices if isinstance(model.prices, list) else model.prices
        pair = [getattr(prices, name, None) for name in ("input_mtok", "output_mtok")]
        rates[f"{provider.id}/{model.id}"] = [
            None if value is None else str(getattr(value, "base", value)) for value in pair
        ]
print(json.dumps(rates))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure of ours, and where a map has it."""

    name: str
    what: str
    ours: Decimal
    key: str
    field: str
    per: int = MILLION


def vision_rows() -> Iterator[Row]:
    """What a million tokens of each vision model cost."""
    for model in vision_models():
        if model.rate is None:
            continue
        key = f"gemini/{model.id}" if model.provider == "google" else model.id
        for what, ours in (("input", model.rate.input_usd), ("output", model.rate.output_usd)):
            yield Row(
                name=model.name, what=what, ours=ours, key=key, field=f"{what}_cost_per_token"
            )


def image_rows() -> Iterator[Row]:
    """What tokens or pictures of each image model cost."""
    for model in all_image_models():
        yield from _token_rows(model)
        if model.provider in PER_PICTURE:
            size = model.nearest_size(Size(1024, 1024))
            nano = model.quote(size, "standard", "").nano
            yield Row(
                name=model.name,
                what=f"a picture of {size}",
                ours=Decimal(nano) / NANO_PER_USD,
                key=PER_PICTURE[model.provider].format(model.id),
                field="output_cost_per_image",
                per=1,
            )


def _token_rows(model: ImageModel) -> Iterator[Row]:
    rule = model.price
    vendors_id = model.id.rpartition("/")[2]
    if isinstance(rule, GptImageTokens):
        key = vendors_id
        rates = {
            "input_cost_per_token": rule.text_in_usd,
            "input_cost_per_image_token": rule.image_in_usd,
            "output_cost_per_image_token": rule.image_out_usd,
        }
    elif isinstance(rule, AreaTokensPrice):
        key = f"gemini/{vendors_id}"
        rates = {
            "input_cost_per_token": rule.text_in_usd,
            "output_cost_per_token": rule.text_out_usd,
            "output_cost_per_image_token": rule.image_out_usd,
        }
    else:
        return
    for field, ours in rates.items():
        what = field.replace("_cost_per_", " ").replace("_", " ")
        yield Row(name=model.name, what=what, ours=ours, key=key, field=field)


def compare(rows: Iterator[Row], prices: Mapping[str, Mapping[str, Any]]) -> int:
    """Print the differences; how many figures agree."""
    agree = 0
    for row in rows:
        theirs = prices.get(row.key, {}).get(row.field)
        if theirs is None:
            print(f"  not there   {row.name}: {row.what} ${row.ours.normalize():f}")
        elif abs(Decimal(str(theirs)) * row.per - row.ours) > Decimal("0.0000001"):
            other = (Decimal(str(theirs)) * row.per).normalize()
            print(
                f"  different   {row.name}: {row.what} ${row.ours.normalize():f}, theirs ${other:f}"
            )
        else:
            agree += 1
    return agree


def litellm_prices(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """The map in the newest litellm package."""
    _pip("download", "--no-deps", "--dest", str(folder), "litellm")
    (wheel,) = folder.glob("litellm-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return json.loads(archive.read(LITELLM_FILE))


def genai_prices(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """The rates of the newest genai-prices package, under the names of the other map."""
    _pip("install", "--target", str(folder / "genai"), "genai-prices")
    done = subprocess.run(
        [sys.executable, "-c", READ_GENAI],
        env={"PYTHONPATH": str(folder / "genai")},
        capture_output=True,
        check=True,
    )
    prices: dict[str, Mapping[str, Any]] = {}
    for name, (per_input, per_output) in json.loads(done.stdout).items():
        provider, _, model = name.partition("/")
        key = f"gemini/{model}" if provider == "google" else model
        pair = {"input_cost_per_token": per_input, "output_cost_per_token": per_output}
        prices.setdefault(key, {k: Decimal(v) / MILLION for k, v in pair.items() if v is not None})
    return prices


def _pip(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", *words, "--quiet"], check=True)


def main() -> int:
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--litellm", type=Path, metavar="FILE", help="a map that is here already")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        litellm = json.loads(args.litellm.read_text()) if args.litellm else litellm_prices(folder)
        print("Vision models beside LiteLLM's map:")
        print(f"  {compare(vision_rows(), litellm)} figures agree")
        print("Image models beside LiteLLM's map:")
        print(f"  {compare(image_rows(), litellm)} figures agree")
        if args.litellm is None:
            print("Vision models beside genai-prices:")
            print(f"  {compare(vision_rows(), genai_prices(folder))} figures agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
