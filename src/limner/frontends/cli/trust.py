"""Trust a folder: accept its limner.toml as it is now, and what it brings along.

Before that, limner.toml can only make settings stricter. A trusted folder may also choose providers
and models and name its own servers, and limner uses the plug-ins, the programs on the PATH and the
ComfyUI workflow in it. If limner.toml changes, the folder is closed until you trust it again.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

import msgspec

from limner.errors import UserError
from limner.frontends.cli.output import CommandResult
from limner.providers.comfyui_workflow import MAX_BYTES
from limner.providers.specs import BUILT_IN
from limner.settings import load_with_sources
from limner.settings.documents import read_settings_file
from limner.settings.trust import PROJECT_FILE, TrustedFolders, TrustRecord, folder_record
from limner.storage.files import write_new
from limner.storage.home import Home
from limner.storage.os_errors import disk_errors

EXAMPLE = """\
examples:
  limner trust                        this folder
  limner trust ~/projects/site
  limner trust --list
  limner trust --remove ~/projects/site
"""


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "folder", metavar="FOLDER", nargs="?", help="the folder; by default the working folder"
    )
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--list", action="store_true", help="list the folders you trust")
    instead.add_argument("--remove", action="store_true", help="trust the folder no longer")


def run(args: Namespace) -> CommandResult:
    """Trust a folder, or list or remove what is trusted."""
    home = Home.of_process()
    trusted = TrustedFolders(home.folder)
    if args.list:
        if args.folder is not None:
            raise UserError("trust --list takes no folder: it lists every folder")
        return _list(trusted)
    folder = Path(os.path.realpath(Path(args.folder or ".").expanduser()))
    return _remove(trusted, folder) if args.remove else _add(trusted, folder)


def _add(trusted: TrustedFolders, folder: Path) -> CommandResult:
    if not folder.is_dir():
        raise UserError(f"{str(folder)!r} is not a folder")
    # This also checks the file: what cannot be used is not accepted.
    ignored = load_with_sources(env=os.environ, cwd=folder).ignored
    record = folder_record(folder, _files(folder))
    path = trusted.path(folder)
    write_new(Path(os.path.realpath(path)), msgspec.json.encode(record), overwrite=True, mode=0o600)
    names = ", ".join(record.files) or f"no {PROJECT_FILE} yet"
    notes = [f"It now sets {', '.join(ignored)}."] if ignored else []
    return CommandResult(
        value={"trusted": True, "accepted": ignored, **_as_json(record)},
        text=f"{folder}: trusted ({names})",
        notes=tuple(notes),
    )


def _remove(trusted: TrustedFolders, folder: Path) -> CommandResult:
    record = trusted.get(folder)
    if record is None:
        raise UserError(
            f"{str(folder)!r} is not trusted", hint="limner trust --list shows what is."
        )
    with disk_errors(doing="remove the trust in", path=folder):
        trusted.remove(folder)
    return CommandResult(
        value={"trusted": False, **_as_json(record)}, text=f"{folder}: no longer trusted"
    )


def _list(trusted: TrustedFolders) -> CommandResult:
    states = [(one, trusted.changed(one)) for one in trusted.all()]
    lines = [
        one.folder + (f"  (closed, because it changed: {', '.join(changed)})" if changed else "")
        for one, changed in states
    ]
    return CommandResult(
        value={"folders": [{"changed": changed, **_as_json(one)} for one, changed in states]},
        text="\n".join(lines),
        notes=() if lines else ("You trust no folder.",),
    )


def _files(folder: Path) -> dict[str, bytes]:
    """The files that limner reads from a folder, as they are now."""
    variables = BUILT_IN["comfyui"].variables
    workflows = filter(None, (os.environ.get(name, "").strip() for name in variables))
    relative = [name for name in workflows if not Path(name).expanduser().is_absolute()]
    found = {PROJECT_FILE: read_settings_file(folder / PROJECT_FILE)}
    found |= {name: read_settings_file(folder / name, max_bytes=MAX_BYTES) for name in relative}
    return {name: data for name, data in found.items() if data is not None}


def _as_json(record: TrustRecord) -> dict[str, object]:
    return msgspec.structs.asdict(record)
