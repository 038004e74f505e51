"""A resolved path -> whether limner refuses to read or write it for every caller."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatch
from functools import cache, lru_cache
from pathlib import Path

import msgspec

from limner.storage.home import Home, user_home

if sys.platform != "win32":
    import pwd

_POSIX_SYSTEM = (
    *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run"),
    *("/sbin", "/sys", "/usr", "/usr/bin", "/usr/lib", "/usr/sbin"),
    *("/var/log", "/var/mail", "/var/run", "/var/spool"),
)
# The folder of the application in the usual container images of language runtimes.
_CONTAINER_WORK = Path("/usr/src")
_MAC_SYSTEM = ("/Library", "/System", "/private/etc", "/private/var/db")
_WINDOWS_SYSTEM_VARIABLES = ("SystemRoot", "ProgramFiles", "ProgramFiles(x86)", "ProgramData")

# Keys, tokens, keyrings, browser profiles and wallets, relative to a user's home.
_SECRET_PLACES = (
    *(".ssh", ".aws", ".azure", ".gnupg", ".kube", ".password-store", ".config/gcloud", ".oci"),
    *(".config/gh", ".config/hub", ".config/glab-cli", ".config/op", ".config/rclone"),
    *(".docker/config.json", ".config/containers/auth.json", ".config/helm", ".helm"),
    *(".terraform.d", ".terraformrc", ".pulumi", ".vault-token", ".config/sops", ".config/age"),
    *(".config/doctl", ".config/hcloud", ".config/linode-cli", ".config/scw", ".config/stripe"),
    *(".fly", ".netlify", ".wrangler", ".config/.wrangler", ".config/netlify", ".cloudflared"),
    *(".boto", ".s3cfg", ".mc", ".databrickscfg", ".databricks", ".snowflake", ".snowsql", ".dbt"),
    *(".netrc", "_netrc", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".pgpass", ".my.cnf"),
    *(".mylogin.cnf", ".git-credentials", ".config/git/credentials", ".config/pip", ".pip"),
    *(".config/pypoetry", ".local/share/uv/credentials", ".cargo/credentials"),
    *(".cargo/credentials.toml", ".gem/credentials", ".local/share/gem/credentials"),
    *(".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties"),
    *(".kaggle", ".config/kaggle", ".huggingface", ".cache/huggingface/token"),
    *(".cache/huggingface/stored_tokens", ".config/wandb", ".jupyter", ".local/share/jupyter"),
    # Agents and model services.
    *(".claude/.credentials.json", ".claude.json", ".codex/auth.json", ".gemini", ".copilot"),
    *(".config/github-copilot", ".local/share/opencode", ".config/goose", ".continue", ".ollama"),
    *(".config/openai", ".config/anthropic", ".config/io.datasette.llm"),
    # Keyrings, password managers and wallets.
    *(".local/share/keyrings", ".local/share/kwalletd", ".gnome2/keyrings", ".config/1Password"),
    *(".config/Bitwarden", ".config/Bitwarden CLI", ".local/share/lpass", ".config/keepassxc"),
    *(".bitcoin", ".litecoin", ".ethereum", ".electrum", ".bitmonero", ".config/solana"),
    *(".config/Exodus", ".config/Ledger Live", ".Xauthority", ".ICEauthority"),
    # Browsers, mail and messengers.
    *(".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/vivaldi"),
    *(".config/BraveSoftware", ".config/microsoft-edge", ".config/opera", ".config/Signal"),
    *(".config/Slack", ".config/discord", ".config/Element", ".local/share/TelegramDesktop"),
    *("snap/firefox", "snap/chromium", "snap/brave", "snap/thunderbird", "snap/signal-desktop"),
    *(".var/app", ".local/share/fish/fish_history", ".zsh_sessions", ".bash_sessions"),
    *(".lesshst", ".viminfo", ".histfile", ".ipython/profile_default/history.sqlite"),
    # macOS.
    *("Library/Keychains", "Library/Cookies", "Library/Safari", "Library/Mail"),
    *("Library/Messages", "Library/Accounts", "Library/Thunderbird"),
    *(
        f"Library/Application Support/{name}"
        for name in (
            *("Google/Chrome", "Firefox", "Chromium", "BraveSoftware", "Microsoft Edge", "Vivaldi"),
            *("Thunderbird", "Signal", "Slack", "discord", "com.operasoftware.Opera", "sops"),
            *("Bitcoin", "Ethereum", "Electrum", "Exodus", "1Password", "Bitwarden", "gcloud"),
        )
    ),
    # Windows.
    *("AppData/Local/Microsoft/Credentials", "AppData/Local/Microsoft/Vault"),
    *("AppData/Local/Google/Chrome", "AppData/Local/Microsoft/Edge", "AppData/Local/Chromium"),
    *("AppData/Local/BraveSoftware", "AppData/Local/Vivaldi", "AppData/Local/1Password"),
    *(
        f"AppData/Roaming/{name}"
        for name in (
            *("Microsoft/Credentials", "Microsoft/Protect", "Mozilla", "Thunderbird", "Signal"),
            *("Microsoft/Windows/PowerShell/PSReadLine", "gnupg", "Slack", "discord", "gcloud"),
            *("Opera Software", "Bitcoin", "Ethereum", "Electrum", "Exodus", "Bitwarden", "gh"),
        )
    ),
)
# Projects keep passwords and keys there: .env, .env.local, .envrc.
_ENVIRONMENT_FILES = (".env", ".env.*", ".envrc")
# .bash_history, .python_history, .psql_history and those of other shells and clients.
_HISTORY_PATTERN = ".*_history*"


class ProtectedPaths(msgspec.Struct, frozen=True, kw_only=True):
    """The protected places: system folders, and secrets in the user's home folders.

    A whole home folder is never protected. If the user's home, temp folder or ``$LIMNER_HOME`` is
    inside a system folder, it stays allowed (``exempt``). ``unwritable`` places may be read. ``~``
    is the first of ``homes``.
    """

    homes: tuple[Path, ...]
    system: tuple[Path, ...]
    exempt: tuple[Path, ...]
    secret: tuple[Path, ...]
    unwritable: tuple[Path, ...]

    @classmethod
    def under(cls, home: Home) -> ProtectedPaths:
        """The protected places of this machine and user, and limner's own files in ``home``."""
        return _build(home, _user_homes(), _system_folders(), temp_folders(), _runtime_folders())

    def denies(self, path: Path, *, writing: bool) -> bool:
        """Whether ``path``, which must be resolved, is protected."""
        secrets = (*self.secret, *self.unwritable) if writing else self.secret
        parts = _folded(str(path))
        return (
            self._is_system(path)
            or any(_begins(parts, place) for place in _with_real_paths(secrets))
            or any(_is_history(parts, home) for home in _with_real_paths(self.homes))
            or (not writing and _is_environment_file(path))
        )

    def _is_system(self, path: Path) -> bool:
        parts, system = _folded(str(path)), list(_with_real_paths(self.system))
        if not any(_begins(parts, folder) for folder in system):
            return False
        return not any(
            path.is_relative_to(place)
            for place in _with_real_paths(self.exempt)
            if place not in system and any(_begins(_folded(place), folder) for folder in system)
        )


# A conversation needs it in every turn, and a hundred paths take a while to build.
@lru_cache(maxsize=16)
def _build(
    home: Home,
    homes: tuple[Path, ...],
    system: tuple[Path, ...],
    temporary: tuple[Path, ...],
    runtime: tuple[Path, ...],
) -> ProtectedPaths:
    database = home.database
    return ProtectedPaths(
        homes=homes,
        system=system,
        exempt=(*homes, home.folder, *temporary, *runtime, _CONTAINER_WORK),
        secret=(
            *(base / place for base in homes for place in _SECRET_PLACES),
            *(folder / name for folder in runtime for name in ("keyring", "gnupg")),
            home.keys,
            home.tokens,
            home.chat_history,
            home.backups,
            *(database.with_name(database.name + end) for end in ("", "-wal", "-shm")),
        ),
        unwritable=(
            *(home.blobs, home.blob_copies, home.mark, home.config, home.personalities),
            home.trusted,
            *(() if home.shared_blobs is None else (home.shared_blobs,)),
        ),
    )


def temp_folders() -> tuple[Path, ...]:
    """The folder for temporary files; empty if the machine has none that can be written.

    It is that of `tempfile`, which is asked only if the usual folder cannot be it: to load it
    takes longer than everything else that a path is checked with.
    """
    if "tempfile" not in sys.modules and sys.platform != "win32":
        named = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
        usual = os.path.abspath(next(filter(None, named), "/tmp"))  # noqa: PTH100, S108 - as there
        if os.path.isdir(usual) and os.access(usual, os.W_OK | os.X_OK):  # noqa: PTH112
            return (Path(usual),)
    import tempfile  # noqa: PLC0415 - as above

    try:
        return (Path(tempfile.gettempdir()),)
    except FileNotFoundError:
        return ()


def _begins(parts: tuple[str, ...], place: str) -> bool:
    """Whether a path is ``place`` or inside it, without regard to case and Unicode form.

    On a Mac ``~/.SSH`` is ``~/.ssh``. The comparison can only match more, so it is for what is
    denied, never for what is allowed.
    """
    outer = _folded(place)
    return parts[: len(outer)] == outer


# Each check folds the same few hundred places.
@lru_cache(maxsize=2048)
def _folded(path: str) -> tuple[str, ...]:
    same = path if path.isascii() else unicodedata.normalize("NFD", path)
    # `pathlib` would take three times as long.
    return tuple(same.casefold().rstrip(os.sep).split(os.sep))  # noqa: PTH206


def _is_history(parts: tuple[str, ...], home: str) -> bool:
    below = parts[len(_folded(home)) :]
    return _begins(parts, home) and bool(below) and fnmatch(below[0], _HISTORY_PATTERN)


def _is_environment_file(path: Path) -> bool:
    name = path.name.casefold()
    return any(fnmatch(name, pattern) for pattern in _ENVIRONMENT_FILES)


def _with_real_paths(places: Iterable[Path]) -> Iterator[str]:
    """Each place by its own path and by its real path: /lib may be /usr/lib.

    Links can change at any time, so every check looks at all of them. It does so on plain text,
    because `Path` takes several times as long as the system does.
    """
    known: dict[str, tuple[str, bool]] = {}  # a hundred places are in a few folders
    for path in places:
        yield (place := str(path))
        folder, name = _split(place)
        try:
            real_folder, exists = _real_folder(folder, known)
            real = place if real_folder == folder else os.path.join(real_folder, name)  # noqa: PTH118
            if exists and os.path.islink(real):  # noqa: PTH114
                real = os.path.realpath(real)
        except (OSError, RecursionError):  # it is changing right now, or leads nowhere
            continue
        if real != place:
            yield real


def _real_folder(folder: str, known: dict[str, tuple[str, bool]]) -> tuple[str, bool]:
    """The real path of a folder, and whether it exists: nothing in a missing folder is a link."""
    if folder not in known:
        above, name = _split(folder)
        if name not in ("", os.pardir):
            real_above, exists = _real_folder(above, known)
            if not exists:
                known[folder] = os.path.join(real_above, name), False  # noqa: PTH118
                return known[folder]
        real = os.path.realpath(folder)
        known[folder] = real, os.path.isdir(real)  # noqa: PTH112
    return known[folder]


@lru_cache(maxsize=2048)
def _split(place: str) -> tuple[str, str]:
    return os.path.split(place)


def _user_homes() -> tuple[Path, ...]:
    """The home folder of the environment, then that of the account if it differs."""
    account = () if sys.platform == "win32" else _account_homes(os.getuid())
    return tuple(dict.fromkeys((user_home(), *account)))


# The lookup may ask another machine.
@cache
def _account_homes(user_id: int) -> tuple[Path, ...]:
    if sys.platform != "win32":
        with suppress(KeyError):  # an anonymous user of a container has no entry
            return (Path(pwd.getpwuid(user_id).pw_dir),)
    return ()


@cache
def _system_folders() -> tuple[Path, ...]:
    if sys.platform == "win32":
        named = (os.environ.get(name, "") for name in _WINDOWS_SYSTEM_VARIABLES)
        return tuple(Path(folder) for folder in named if folder)
    extra = _MAC_SYSTEM if sys.platform == "darwin" else ()
    return tuple(Path(folder) for folder in (*_POSIX_SYSTEM, *extra))


def _runtime_folders() -> tuple[Path, ...]:
    """The user's parts of /run: the session's folder and mounted disks."""
    if sys.platform == "win32":
        return ()
    return (Path(f"/run/user/{os.getuid()}"), Path("/run/media"))
