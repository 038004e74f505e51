"""A caller's path -> the resolved path that the caller may read or write, or ReachDenied."""

from __future__ import annotations

import errno
import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

import msgspec
from msgspec.structs import replace

from limner.display_text import clean_line
from limner.errors import ReachDenied, SettingsError
from limner.storage.home import Home
from limner.storage.protected_paths import ProtectedPaths, temp_folders

Action = Literal["read", "write"]
Sandbox = Literal["read-only", "workspace-write", "danger-full-access"]

_CODES: Mapping[Action, str] = {"read": "PATH_DENIED", "write": "OUTPUT_PATH_DENIED"}
_TOKEN = re.compile(r"\$\{([^}]*)\}|\$\{.*$")
_SHOWN_CHARS = 300
_CLOSED_NAMES = frozenset(
    (
        *(".git", "git~1", ".hg", ".svn", ".jj", ".bzr"),
        "limner.toml",
        *(".vscode", ".idea", ".vs", ".zed", ".fleet", ".devcontainer"),
        *(".claude", ".codex", ".cursor", ".windsurf", ".gemini", ".agents", ".agent", ".aider"),
        *(".continue", ".cline", ".roo", ".kiro", ".junie", ".amazonq", ".opencode", ".copilot"),
    )
)


def _process_floor() -> ProtectedPaths:
    return ProtectedPaths.under(Home.of_process())


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """The folders that a caller may read and write; the protected paths are closed to everyone.

    Roots are resolved when the value is made, so that replacing one by a symlink later allows
    nothing more. ``anywhere`` is for a user, and for a model with full access: only the protected
    paths (``floor``) are closed. ``read_only`` forbids all writes. ``by_person`` says that a person
    or a program chooses the paths. A model never writes to version control, environment files,
    settings and the folders of editors and agents, wherever they are.
    """

    # Not for programs.
    _internal: ClassVar = frozenset({"floor"})

    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    anywhere: bool = False
    read_only: bool = False
    by_person: bool = False
    floor: ProtectedPaths = msgspec.field(default_factory=_process_floor)

    def __post_init__(self) -> None:
        real = {
            root: Path(os.path.realpath(root)) for root in dict.fromkeys((*self.read, *self.write))
        }
        for name, roots in (("read", self.read), ("write", self.write)):
            found = tuple(dict.fromkeys(real[root] for root in roots))
            msgspec.structs.force_setattr(self, name, found)

    @classmethod
    def for_person(cls, *, home: Path | Home | None = None) -> Reach:
        """Everything except the protected paths: for a path that a user typed or a program passed.

        Args:
            home: limner's home folder; the default is that of the process.
        """
        return cls(anywhere=True, by_person=True, floor=ProtectedPaths.under(_home(home)))

    @classmethod
    def for_model(cls, *, home: Path | Home | None = None, cwd: Path | None = None) -> Reach:
        """What a model may reach, unless a personality declares something else.

        It may write the generated folder, the cwd and the temp folder. It may read those and the
        user's home. A cwd that is the filesystem root, a home or above one allows nothing.

        Args:
            home: limner's home folder; the default is that of the process.
            cwd: the model's working folder; the default is that of the process.
        """
        limner_home = _home(home)
        floor = ProtectedPaths.under(limner_home)
        read, write = _model_roots(limner_home, floor, Path.cwd() if cwd is None else cwd)
        return cls(read=read, write=write, floor=floor)

    @classmethod
    def from_lists(
        cls,
        *,
        read: Iterable[str],
        write: Iterable[str],
        home: Path | Home | None = None,
        cwd: Path | None = None,
        self_dir: Path | None = None,
    ) -> Reach:
        """The reach a personality declares, in place of the defaults.

        Entries are absolute folders, or begin with ``~``, ``${LIMNER_HOME}``, ``${CWD}`` or
        ``${self}``. ``${CWD}`` allows nothing if the cwd is too wide, such as a whole home.

        Raises:
            SettingsError: an entry has an unknown or empty token, or is not absolute.
        """
        limner_home = _home(home)
        floor = ProtectedPaths.under(limner_home)
        values = {"LIMNER_HOME": limner_home.folder, "CWD": cwd, "self": self_dir}
        return cls(
            read=_declared_roots(read, values, floor),
            write=_declared_roots(write, values, floor),
            floor=floor,
        )

    @classmethod
    def for_sandbox(
        cls,
        sandbox: Sandbox,
        *,
        home: Path | Home,
        cwd: Path,
        read: Sequence[str] | None = None,
        write: Sequence[str] | None = None,
        self_dir: Path | None = None,
    ) -> Reach:
        """What a model may reach in a conversation.

        In the sandbox ``read-only`` it may write nothing. ``workspace-write`` is `for_model`.
        ``danger-full-access`` is everything except the protected paths.

        Args:
            sandbox: the sandbox of the conversation.
            home: limner's home folder.
            cwd: the model's working folder.
            read: the read entries of a personality, as in `from_lists`; None if it has none.
            write: the write entries of a personality; read-only stays read-only.
            self_dir: the personality's own folder.

        Raises:
            SettingsError: as for `from_lists`.
        """
        limner_home = _home(home)
        floor = ProtectedPaths.under(limner_home)
        values = {"LIMNER_HOME": limner_home.folder, "CWD": cwd, "self": self_dir}
        is_open, top = sandbox == "danger-full-access", (Path(cwd.anchor),)
        usual = (top, top) if is_open else _model_roots(limner_home, floor, cwd)
        return cls(
            read=usual[0] if read is None else _declared_roots(read, values, floor),
            write=usual[1] if write is None else _declared_roots(write, values, floor),
            floor=floor,
            anywhere=is_open and read is None and write is None,
            read_only=sandbox == "read-only",
        )

    def resolve_write(self, path: str | Path, *, cwd: Path) -> Path:
        """Resolve a path for writing, with symlinks followed, if it is within reach.

        Args:
            path: the caller's path; ``~`` is the user's home.
            cwd: the base of a relative path.

        Raises:
            ReachDenied: OUTPUT_PATH_DENIED; nothing was changed.
        """
        if self.read_only:
            raise ReachDenied(
                "Nothing can be written: this session is read-only.",
                code=_CODES["write"],
                hint="Only the user can change that: the sandbox workspace-write allows it.",
            )
        resolved = self._resolve(path, cwd, "write", self.write)
        # A cloned repository may have such a link under a usual name, such as out.png.
        named = cwd / os.path.expanduser(path)  # noqa: PTH111 - Path raises for an unknown user
        if named.is_symlink() and not resolved.is_relative_to(os.path.realpath(named.parent)):
            raise ReachDenied(
                f"{str(named)!r} is a link that leads out of its folder.",
                code=_CODES["write"],
                hint="Give the path of the file itself.",
            )
        return resolved

    def resolve_read(self, path: str | Path, *, cwd: Path) -> Path:
        """Resolve a path for reading, with symlinks followed, if it is within reach.

        Raises:
            ReachDenied: PATH_DENIED; nothing was changed.
        """
        return self._resolve(path, cwd, "read", self.read)

    def _resolve(
        self, path: str | Path, cwd: Path, action: Action, roots: tuple[Path, ...]
    ) -> Path:
        if not cwd.is_absolute():
            raise ValueError(f"the cwd of a reach must be absolute, not {str(cwd)!r}")
        if isinstance(path, bytes | bytearray | memoryview):
            raise TypeError("a path must be a str or a Path, not bytes")
        shown = clean_line(str(path), max_chars=_SHOWN_CHARS)
        absolute = cwd / _expand_user(str(path), self.floor.homes[0], action, shown)
        resolved = _real_path(absolute, action, shown)
        if action == "write" and not _is_text(str(resolved)):
            # The caller gets the path as JSON, and the ledger stores it as text.
            raise _malformed(action, shown, "has bytes in it that are not UTF-8")
        closed = self.floor.denies(resolved, writing=action == "write")
        if closed or not (self.anywhere or any(resolved.is_relative_to(root) for root in roots)):
            raise self._refusal(action, shown, roots)
        if action == "write" and not self.by_person:
            _check_closed_names(resolved, shown, (*roots, Path(os.path.realpath(cwd))))
        return resolved

    def _refusal(self, action: Action, shown: str, roots: tuple[Path, ...]) -> ReachDenied:
        """The error; it names only the caller's path and does not reveal where a symlink leads."""
        if self.anywhere:
            return ReachDenied(
                f'{action} of "{shown}" is refused: system folders and places that hold secrets '
                "are closed to everyone.",
                code=_CODES[action],
                hint="Choose a path in a folder of your own.",
            )
        allowed = ", ".join(clean_line(str(root), max_chars=_SHOWN_CHARS) for root in roots)
        return ReachDenied(
            f'{action} of "{shown}" is outside what this agent may reach.',
            code=_CODES[action],
            hint=f"It may {action} in: {allowed}." if roots else f"It may {action} nowhere.",
        )


def _check_closed_names(path: Path, shown: str, granted: tuple[Path, ...]) -> None:
    """Refuse a path with a name that is closed to models.

    Only the part below the nearest granted folder counts: a user may work in a folder of an agent,
    as in a worktree below ``.claude``.
    """
    depth = max((len(root.parts) for root in granted if path.is_relative_to(root)), default=0)
    for name in path.parts[depth:]:
        if _is_closed_name(name):
            raise ReachDenied(
                f'write of "{shown}" is refused: {clean_line(name, max_chars=40)} is closed to '
                "models.",
                code=_CODES["write"],
                hint="Choose another folder: version control, environment files, settings and the "
                "folders of editors and agents are not for pictures.",
            )


def _is_closed_name(name: str) -> bool:
    """Whether a name is closed to models, in any spelling that a filesystem takes for the same."""
    visible = (c for c in unicodedata.normalize("NFKC", name) if unicodedata.category(c) != "Cf")
    plain = "".join(visible).casefold().rstrip(". ").partition(":")[0]
    return plain in _CLOSED_NAMES or plain.startswith(".env")


def _home(home: Path | Home | None) -> Home:
    if home is None:
        return Home.of_process()
    if isinstance(home, Path):
        return Home(home.absolute())
    return replace(home, folder=home.folder.absolute())


def _model_roots(
    home: Home, floor: ProtectedPaths, cwd: Path
) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The roots of `Reach.for_model`, for reading and for writing."""
    offered, homes = (cwd, *temp_folders()), _real_roots(floor.homes)
    write = (home.generated, *(path for path in offered if not _is_too_wide(path, homes)))
    return (write if _is_top(floor.homes[0]) else (*write, floor.homes[0])), write


def _declared_roots(
    entries: Iterable[str], values: Mapping[str, Path | None], floor: ProtectedPaths
) -> tuple[Path, ...]:
    """The roots of `Reach.from_lists`."""
    expanded = ((entry, _expand(entry, values, floor.homes[0])) for entry in entries)
    homes = _real_roots(floor.homes)
    return tuple(
        root for entry, root in expanded if "${CWD}" not in entry or not _is_too_wide(root, homes)
    )


def _real_roots(roots: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(Path(os.path.realpath(root)) for root in roots))


def _is_top(folder: Path) -> bool:
    return folder == Path(folder.anchor)


def _is_too_wide(folder: Path, homes: tuple[Path, ...]) -> bool:
    """Whether a folder is the root, a home or above one, which no user means to allow."""
    real = Path(os.path.realpath(folder))
    return _is_top(real) or any(home.is_relative_to(real) for home in homes)


def _expand(entry: str, values: Mapping[str, Path | None], user_home: Path) -> Path:
    def value_of(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise SettingsError(
                f"{match[0]!r} in the reach entry {entry!r} is not a name limner knows.",
                hint="Known are ${LIMNER_HOME}, ${CWD} and ${self}.",
            )
        value = values[match[1]]
        if value is None or not value.is_absolute():
            raise SettingsError(
                f"{match[0]} in the reach entry {entry!r} has no value here.",
                hint="Remove the entry, or set the folder it means.",
            )
        return str(value)

    text = _TOKEN.sub(value_of, entry)
    if text == "~" or text.startswith("~/"):
        text = str(user_home) + text[1:]
    if not Path(text).is_absolute() or "\0" in text:
        raise SettingsError(
            f"The reach entry {entry!r} is not an absolute folder.",
            hint="Begin it with /, ~, ${LIMNER_HOME}, ${CWD} or ${self}.",
        )
    return Path(text)


def _expand_user(path: str, user_home: Path, action: Action, shown: str) -> str:
    """Expand ``~``; raises if the text cannot be a path."""
    if not path.strip():
        raise _malformed(action, shown, "names no file")
    if not _is_file_name(path):
        raise _malformed(action, shown, "has characters in it that no file name can have")
    if sys.platform == "win32" and ":" in Path(path).as_posix()[len(Path(path).drive) :]:
        raise _malformed(action, shown, "names a stream inside a file")
    first, *rest = re.split(r"[/\\]" if sys.platform == "win32" else "/", path, maxsplit=1)
    if first == "~":
        return str(user_home.joinpath(*rest))
    if first.startswith("~") and rest:
        raise _malformed(action, shown, "begins with ~, which means only your own home")
    return path


def _real_path(path: Path, action: Action, shown: str) -> Path:
    """Follow the symlinks of a path; the part that does not exist yet is taken as it is."""
    try:
        return Path(os.path.realpath(path, strict=True))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _malformed(action, shown, "is a symlink that leads back to itself") from None
    except RecursionError:
        raise _malformed(action, shown, "leads through too many symlinks") from None
    try:
        return Path(os.path.realpath(path))
    except (OSError, RecursionError):  # a symlink became a folder between two calls
        raise _malformed(action, shown, "changes while it is being checked") from None


def _is_file_name(path: str) -> bool:
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _malformed(action: Action, shown: str, problem: str) -> ReachDenied:
    return ReachDenied(
        f'{action} of "{shown}" is refused: the path {problem}.',
        code=_CODES[action],
        hint="Give a plain file path, absolute or relative to the working folder.",
    )
