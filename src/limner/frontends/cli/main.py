"""argv -> one command. Only the chosen command's module is loaded, so that help is instant."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from importlib import import_module

from limner.frontends.cli.deferred_modules import defer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

# Each command is a module of this package: `configure(parser)`, `run(args) -> CommandResult`.
COMMANDS = {
    "chat": "talk with a model that draws and looks, or run one turn for a script",
    "generate": "draw a picture from words",
    "edit": "change a picture, or draw from pictures",
    "render": "draw a chart, a diagram, a page or an SVG document exactly as written",
    "transform": "crop, scale, mark, blur, cut out, convert or compress a picture, for free",
    "check": "compare a picture with a reference, and judge criteria in words",
    "sheet": "put pictures on one numbered sheet, or draw several to choose from",
    "inspect": "ask a question about pictures",
    "fit": "make pictures ready for models, and say what it costs to send them",
    "batch": "run many calls from a manifest, each row once, within one budget",
    "work": "take rows of the open batches of this home",
    "show": "what a picture is, where it comes from and what was made from it",
    "models": "models that draw and look: what is usable now, what a key adds",
    "spend": "what was spent, and on what",
    "sessions": "stored conversations: list, show, import, export, fork, archive, delete",
    "gc": "remove the pictures that nothing refers to",
    "backup": "write the whole home into one archive",
    "store": "copy all records into another database, SQLite or PostgreSQL",
    "jobs": "interrupted jobs: list them, fetch their pictures, or close them",
    "reconcile": "compare the ledger with a provider's usage export",
    "mcp": "serve these tools to an agent, or set a client up to use them",
    "app-server": "serve clients that bring their own tools, as the Codex app-server does",
    "codex": "run Codex with limner's tools, leaving its settings as they are",
    "assets": "the ready-made pictures of the embedded illustrator",
    "trust": "accept the limner.toml of a folder, as it is now",
    "keys": "store, list and remove API keys",
    "doctor": "check that everything works here, and repair a damaged home",
    "studio": "open a page with everything that was made, seen and spent",
    "demo": "draw a scene, a chart and a diagram offline, and look at one",
}
EXAMPLE = """\
examples:
  limner generate "two penguins and a snowman beside a christmas tree"
  limner generate "a mountain lake at dusk" --size 1792x1024 --out lake.png --json
  limner render sales.json --out sales.png
  limner generate "a robot" --dry-run     what it would cost
  limner COMMAND --help                   what a command takes
"""
FAILED_STATUS = 1
USAGE_STATUS = 2
INTERRUPTED_STATUS = 130
PR_SET_DUMPABLE = 4
# What others import and most commands do not use, or use long after their first answer.
DEFERRED = (
    *("asyncio", "asyncio.sslproto", "asyncio.staggered", "asyncio.trsock", "base64"),
    *("concurrent.futures", "fnmatch", "hashlib", "inspect", "ipaddress", "json", "locale"),
    *("logging", "msgspec.inspect", "ntpath", "sqlite3", "ssl", "textwrap", "tokenize"),
    *("traceback",),
)
# More than any command has when it is ready: an app-server before its first turn has 63,000.
FIRST_COLLECTION_OBJECTS = 100_000


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    if argv is None:
        _delay_collection()
        defer(*DEFERRED)
    # From here on no search for garbage runs while these load, and they do not load more.
    import signal  # noqa: PLC0415

    from limner.shortage import shortage_behind  # noqa: PLC0415

    try:
        status = _run(sys.argv[1:] if argv is None else argv, is_own_process=argv is None)
    except KeyboardInterrupt:
        # A module was being loaded: a command that runs handles its own interruption.
        status = INTERRUPTED_STATUS
    except Exception as error:
        if (shortage := shortage_behind(error)) is None:
            raise
        # Nothing more can be loaded, not even what reports an error.
        os.write(2, f"limner: cannot start: {shortage}.\n".encode())
        status = FAILED_STATUS
    finally:
        _flush()
    if argv is None:
        # Only the end of the process is left: a Ctrl-C now needs no traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        _end_process(status)
    return status


def _end_process(status: int) -> NoReturn:
    """End the process as Python does, but leave its memory to the system.

    Python would free each object of each module by itself. That takes as long as most commands
    need to answer, once they are loaded.
    """
    if (threading := sys.modules.get("threading")) is not None:
        threading._shutdown()  # waits for threads, as the end of the interpreter does
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
    _flush()
    os._exit(status)


def _delay_collection() -> None:
    """Let Python look for garbage only when more is loaded than any command needs to start.

    While modules load, it would search all of them again and again, for a tenth of the time that a
    command takes to start, and find nothing: what is loaded stays. The first search takes it out of
    all later ones. Only in limner's own process.
    """
    usual = gc.get_threshold()

    def collected(phase: str, _: dict[str, int]) -> None:
        if phase == "stop":
            gc.callbacks.remove(collected)
            gc.freeze()
            gc.set_threshold(*usual)

    gc.callbacks.append(collected)
    gc.set_threshold(FIRST_COLLECTION_OBJECTS, *usual[1:])


def _run(words: list[str], *, is_own_process: bool) -> int:
    _prepare_streams()
    name, rest = _split(words)
    if name is None:
        return _overview(words)
    if is_own_process:
        _hide_memory()
        _load_msgspec()
    return _command(name, rest)


def _hide_memory() -> None:
    """Keep other programs of this user, a worker among them, from reading keys in our memory.

    Only in limner's own process: a program that uses limner decides itself about its core dumps.
    """
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415 - help does not need it

        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def _load_msgspec() -> None:
    """Load msgspec without typing_extensions, and so without `inspect`, `ast` and `dis`.

    It takes three names from there if it can, and otherwise from `typing`. In every Python that
    limner supports, these are the same.
    """
    if "msgspec" in sys.modules or "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # pyright: ignore[reportArgumentType]
    try:
        import_module("msgspec")
    finally:
        del sys.modules["typing_extensions"]


_OF_CODEX = ("-c", "--config", "--enable", "--disable")


def _split(words: list[str]) -> tuple[str | None, list[str]]:
    """The command and its words, among them each option of Codex before the command.

    Programs that start an app-server put these there; no other command takes them.
    """
    at = 0
    while at < len(words) and words[at] in _OF_CODEX:
        at += 2
    command = words[at] if at < len(words) and words[at] in COMMANDS else None
    return command, [*words[:at], *words[at + 1 :]]


def _version() -> str:
    """The version, and the commit if limner was installed from a wheel."""
    import limner  # noqa: PLC0415 - only help needs it

    try:
        place = limner.__file__.replace("__init__.py", "commit.txt")
        with open(place, encoding="ascii") as file:  # noqa: PTH123 - pathlib doubles the time
            commit = file.read().strip()
    except OSError:
        return f"limner {limner.__version__}"
    return f"limner {limner.__version__} ({commit})"


def _overview(words: list[str]) -> int:
    from limner.frontends.cli.parser import SUPPRESS, Parser  # noqa: PLC0415 - see `_command`

    listing = "\n".join(f"  {name:12}{summary}" for name, summary in COMMANDS.items())
    parser = Parser(
        words,
        prog="limner",
        usage="limner [-h] [--version] COMMAND …",
        description="Pictures for AI agents: make them, look at them, count what they cost.",
        epilog=f"commands:\n{listing}\n\n{EXAMPLE}",
    )
    parser.add_argument("--version", action="version", version=_version())
    parser.add_argument("command", choices=[*COMMANDS], metavar="COMMAND", nargs="?", help=SUPPRESS)
    if words and not words[0].startswith("-"):
        from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

        near = get_close_matches(words[0].lower(), COMMANDS, n=1)
        hint = f"Did you mean: limner {near[0]}" if near else "See: limner --help"
        parser.fail(f"there is no command {words[0]!r}", hint)
    parser.parse_args(words)
    parser.print_help(sys.stderr)
    return USAGE_STATUS


def _command(name: str, words: list[str]) -> int:
    module = import_module(f"limner.frontends.cli.{name.replace('-', '_')}")
    output = import_module("limner.frontends.cli.output")
    if not words and (run_plain := getattr(module, "run_plain", None)) is not None:
        # Programs start a server so, and wait for its first answer: it needs no parser.
        return output.answer(run_plain, as_json=False)
    from limner.frontends.cli.parser import Parser, without_separator  # noqa: PLC0415

    parser = Parser(words, prog=f"limner {name}", description=module.__doc__, epilog=module.EXAMPLE)
    module.configure(parser)
    parser.add_argument(
        "--json", action="store_true", help="print exactly one JSON object on standard output"
    )
    # Options may come between pictures and question. A command that passes words on to another
    # program parses them itself.
    read = getattr(module, "read", None)
    args = read(parser, words) if read is not None else parser.parse_words(without_separator(words))
    return output.answer(lambda: module.run(args), as_json=args.json)


def _prepare_streams() -> None:
    """Make the standard streams usable, even if the parent process closed them."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the caller, as in `limner models >&-`
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    if (reconfigure := getattr(sys.stdout, "reconfigure", None)) is not None:
        # Paths keep their bytes and JSON is UTF-8, whatever the locale.
        reconfigure(encoding="utf-8", errors="surrogateescape")


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            # The reader went away (`| head`) or the disk is full: Python must not try at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
