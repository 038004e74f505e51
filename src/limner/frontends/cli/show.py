"""Show what a picture is, where it comes from and what was made from it. Nothing is stored."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

import msgspec

from limner.client import Limner
from limner.content import format_bytes
from limner.dollars import format_usd
from limner.frontends.cli.output import CommandResult, minute
from limner.frontends.cli.preview import show_bytes
from limner.frontends.cli.stderr import is_live
from limner.frontends.cli.terminal import wait_for
from limner.frontends.cli.terminal_text import clipped
from limner.imaging.provenance import Manifest
from limner.pictures.lineage import Lineage, PictureRecord
from limner.tools.picture_info import PictureInfo, Provenance, facts_of

EXAMPLE = """\
examples:
  limner show fox.png
  limner show 5f0c…                   a handle, as `limner generate --json` prints it
  limner show fox.png --json
"""
LINE_WIDTH = 200
STATES = {
    "trusted": "valid, with a trusted signature",
    "valid": "valid: unchanged since it was signed",
    "invalid": "NOT VALID: changed since it was signed, or signed wrongly",
}


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("picture", metavar="HANDLE_OR_PATH", help="a picture file, or a handle")


def run(args: Namespace) -> CommandResult:
    """Show one picture."""
    return wait_for(lambda: _show(args.picture, quiet=args.json))


async def _show(name: str, *, quiet: bool) -> CommandResult:
    async with Limner() as lim:
        shown = await lim.picture_info.show(name, lim.person())
        if is_live() and not quiet:
            size = (shown.width, shown.height)
            await show_bytes(shown.data, mime=shown.mime, size=size, lim=lim)
    lines = [clipped(line, LINE_WIDTH) for line in _lines(shown)]
    return CommandResult(value=msgspec.to_builtins(facts_of(shown)), text="\n".join(lines))


def _lines(shown: PictureInfo) -> Iterator[str]:
    family = shown.family
    yield f"{shown.mime}  {shown.width}x{shown.height}  {format_bytes(len(shown.data))}"
    if family is None:
        yield _row("stored", "no: limner has not seen this picture")
    else:
        yield _row("handle", family.record.picture.handle)
        yield _row("kept at", shown.kept_at)
        yield from _story(family)
    for call in shown.purchases[:1]:
        yield _row("cost", f"{format_usd(call.cost_nano)} ({call.cost_source}), {call.tool}")
    for words in shown.words:
        yield _row("says", f"{words.keyword}: {words.text}")
    yield from _provenance_lines(shown.provenance)


def _story(family: Lineage) -> Iterator[str]:
    yield _row("came", f"{_when(family.record)} · {_origin(family.record)}")
    if "prompt" in family.record.lineage:
        yield _row("prompt", family.record.lineage["prompt"])
    for ancestor in family.ancestors:
        yield _row("from", f"{_in_short(ancestor)} · {_origin(ancestor)}")
        if "prompt" in ancestor.lineage:
            yield _row("", f"“{ancestor.lineage['prompt']}”")
    for made in family.offspring:
        yield _row("became", f"{_in_short(made)} · {_origin(made)}")


def _provenance_lines(provenance: Provenance | None) -> Iterator[str]:
    if provenance is None:
        return
    if provenance.of_original:
        yield _row("C2PA", "in the original, which is kept as it came:")
    manifest = provenance.manifest
    if manifest is None:
        yield _row("C2PA", f"a manifest is present; {provenance.unread}")
        if provenance.hint is not None:
            yield _row("", provenance.hint)
        return
    yield _row("C2PA", STATES[manifest.state])
    yield _row("claimed by", manifest.claim_generator or "not named")
    yield _row("signed by", " · ".join(dict.fromkeys(_signature(manifest))) or "not named")
    for part in manifest.ingredients:
        yield _row("made from", f"{part.title or 'something untitled'} ({part.relationship})")
    if manifest.problems:
        yield _row("wrong", ", ".join(manifest.problems))


def _signature(manifest: Manifest) -> Iterator[str]:
    yield from filter(None, (manifest.signer, manifest.issuer, manifest.signed_at))


def _row(name: str, value: object) -> str:
    return f"  {name:10}  {' '.join(str(value).split())}".rstrip()


def _when(record: PictureRecord) -> str:
    return f"{minute(record.created_ms)} UTC"


def _origin(record: PictureRecord) -> str:
    """How a picture came about, in a few words."""
    lineage = record.lineage
    if "provider" in lineage:
        seed = "" if lineage.get("seed") is None else f", seed {lineage['seed']}"
        return f"drawn by {lineage['provider']} ({lineage.get('model')}){seed}"
    if "file" in lineage:
        return f"taken from {lineage['file']}"
    return f"made by limner ({lineage.get('made', 'unknown')})"


def _in_short(record: PictureRecord) -> str:
    picture = record.picture
    return f"{picture.handle}  {picture.mime}  {picture.width}x{picture.height}"
