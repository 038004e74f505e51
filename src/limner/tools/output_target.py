"""The output path of a call -> where its file goes, checked before anything is drawn or paid."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from limner.errors import InputInvalid, NotFound, OutputExists, ReachDenied, UserError
from limner.imaging.formats import OutputFormat
from limner.storage.files import check_new
from limner.tools.base import ApprovalPolicy, ToolContext
from limner.tools.file_lookup import plain_path

# Only a file that may be replaced is looked for among the pictures.
if TYPE_CHECKING:
    from limner.pictures.take import Pictures

SOME_NAME = "new.png"
FORMATS: Mapping[str, OutputFormat] = {
    ".png": "png",
    ".jpg": "jpeg",
    ".jpeg": "jpeg",
    ".webp": "webp",
}
# Formats that people name and that limner does not write.
UNWRITABLE = frozenset(
    {".gif", ".bmp", ".tif", ".tiff", ".avif", ".heic", ".heif", ".ico", ".jxl", ".svg", ".pdf"}
)


class OutputTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Where a file goes.

    Without a path it gets a new name in the folder of generated pictures. A path that is a folder
    gets a file with a new name. ``replaces`` is the handle of the picture that a model replaces.
    """

    path: Path | None
    overwrite: bool
    replaces: str | None


class OutputTargets(msgspec.Struct, frozen=True, kw_only=True):
    """Checks output paths; ``generated`` is the folder for files without one."""

    pictures: Callable[[], Pictures]
    approval: ApprovalPolicy
    generated: Path

    async def check(
        self, output_path: str | None, context: ToolContext, *, overwrite: bool
    ) -> OutputTarget:
        """Resolve a path, and make sure that a file can be written there.

        Raises:
            ReachDenied: the caller may not write there, or may write nothing.
            ApprovalDenied: the user must allow the path, and did not.
            OutputExists: there is a file that the call may not replace.
            StorageError: it cannot be written.
        """
        if output_path is None:
            # The name is chosen when the picture is there. Check now that one can be written.
            check_new(self._some_name(context), overwrite=True)
            return OutputTarget(path=None, overwrite=False, replaces=None)
        path = await self._resolve(output_path, context, overwrite=overwrite)
        replaces = None
        # A folder gets a file with a new name, which replaces nothing.
        if overwrite and not context.reach.by_person and not path.is_dir():
            replaces = await self._replaced(path)
        return OutputTarget(
            path=path,
            overwrite=overwrite and (context.reach.by_person or replaces is not None),
            replaces=replaces,
        )

    async def _resolve(self, output_path: str, context: ToolContext, *, overwrite: bool) -> Path:
        from limner.tools.consent import approve_write  # noqa: PLC0415 - a quote may need none

        text = plain_path(output_path, field="output_path")
        path = await approve_write(text, context, self.approval, generated=self.generated)
        if path.is_dir():
            await asyncio.to_thread(check_new, path / SOME_NAME, overwrite=True)
            return path
        if text.endswith(("/", os.sep)):
            raise InputInvalid(
                f"there is no folder {text!r}",
                field="output_path",
                hint="Make the folder, or leave out the slash at the end.",
            )
        await asyncio.to_thread(check_new, path, overwrite=overwrite)
        return path

    async def _replaced(self, path: Path) -> str | None:
        """The picture that a model replaces: it may replace only what limner drew."""
        try:
            replaced = await self.pictures().find_made(path)
        except NotFound:
            return None
        if replaced is None:
            raise OutputExists(
                f"{str(path)!r} is already there, and limner did not draw it. A model may "
                "replace only pictures that limner drew.",
                hint="Choose another path. The user can replace the file.",
            )
        return replaced

    def _some_name(self, context: ToolContext) -> Path:
        """A name in the folder of generated pictures, if the caller may write there."""
        try:
            return context.reach.resolve_write(self.generated / SOME_NAME, cwd=context.cwd)
        except ReachDenied as denied:
            if not context.reach.read_only:
                denied.message = (
                    "output_path is required: this agent may not write in the folder of "
                    "generated pictures."
                )
                denied.args = (denied.message,)
            raise


def format_of(out: str) -> OutputFormat | None:
    """The format that the name of a file asks for; None if it asks for none, or is a folder's.

    Raises:
        UserError: limner does not write that format.
    """
    path = Path(out)
    suffix = path.suffix.lower()
    if out.endswith(("/", os.sep)) or path.is_dir():
        return None
    if suffix in UNWRITABLE:
        raise UserError(
            f"limner does not write {suffix[1:].upper()} files",
            hint="Give the file a name with .png, .jpg or .webp at its end.",
        )
    return FORMATS.get(suffix)
