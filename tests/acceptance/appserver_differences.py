"""Where limner differs from the real Codex: one table, which the guide gives to users."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
from tests.acceptance.appserver_shapes import Allowed, Message, label


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """Messages that only one of them sends in a scene, or in any, and why."""

    scene: str
    why: str
    by_codex: tuple[str, ...] = ()
    by_us: tuple[str, ...] = ()


# What comes of the two not being set up alike, and tells nothing about limner.
SETUP = (
    Allowed(where=r".*modelProvider", why="the model has another name on each side"),
    Allowed(
        where=r".*(item|items\[\])\.(startedAtMs|completedAtMs)",
        why="a member of 0.166, which limner speaks; the Codex that is tried here is 0.163",
    ),
    Allowed(where=r".*\.cliVersion|initialize answered result\.(userAgent|codexHome)", why="names"),
)

WORDS = "Some error messages use other words, and `data` contains limner's own error."
FAILED = "If a client's tool fails, the model and the client get the error message of the client."
NO_FILE = "A thread has no file, so `path` is null and `source` is `appServer`."
CURSORS = "Cursors have another format. Clients send them back unchanged."
NO_CURSORS = "`thread/resume` returns no cursors. A list without a cursor starts at the newest."
READ = "A turn that the user interrupts adds nothing to read."
FORKS = "A fork's preview is the start of its source thread, and lists name the source thread."
ACCOUNT = "limner has no account, so it knows no account limits."
REFUSED = "If a provider rejects a request, the error is `badRequest` and names the provider."
STEERED = "If a client steers a turn, the model first finishes its message, and limner keeps it."
PARALLEL = "limner sends parallel tool calls to the client at once, as Codex does since 0.166."
COMPACTED = "limner shows a compaction and its cost, but does not report its tokens."

ALLOWED = (
    Allowed(where=r".* refused error\.(message|data\..*)", why=WORDS, is_read=True),
    Allowed(where=r".*contentItems\[\]\.text", why=FAILED),
    Allowed(where=r".*(thread|data\[\])\.(path|source)", why=NO_FILE, is_read=True),
    Allowed(where=r"thread/(list|search|turns/list|items/list) answered .*Cursor", why=CURSORS),
    Allowed(where=r"thread/resume answered .*Cursor", why=NO_CURSORS, is_read=True),
    Allowed(where=r".*(thread|data\[\])\.preview", why=FORKS, scene="fork|archive|first|second"),
    Allowed(where=r"thread/list answered .*\.forkedFromId", why=FORKS, is_read=True),
    Allowed(
        where=r".*\.canAcceptDirectInput", why="Thread lists report whether a thread accepts input."
    ),
    Allowed(where=r"account/.*\.limitId", why=ACCOUNT, is_read=True),
    Allowed(where=r".*error\.(codexErrorInfo|message)", why=REFUSED, is_read=True),
    Allowed(
        where=r"thread/tokenUsage/updated params\.tokenUsage\.modelContextWindow",
        why="`modelContextWindow` is null if the catalogue does not contain it.",
        is_read=True,
    ),
    Allowed(
        where=r"thread/resume answered result\.collaborationMode.*",
        why="limner has no collaboration modes, so `collaborationMode` is null.",
        is_read=True,
    ),
    Allowed(
        where=r"thread/start answered result\.(sandbox|activePermissionProfile).*",
        why="A thread may write in its folder by default. Codex allows it only in trusted folders.",
        scene="a client that takes no experiments",
        is_read=True,
    ),
)

TOLD = (
    Told(
        scene=".*",
        why="limner sends nothing about command sandboxes, remote control, goals or deprecations.",
        by_codex=(
            "configWarning",
            "deprecationNotice",
            "remoteControl/status/changed",
            "thread/goal/cleared",
            "warning",
        ),
    ),
    Told(
        scene="interrupt while a call is pending",
        why=READ,
        by_codex=("thread/readState/changed",),
    ),
    Told(
        scene="compaction",
        why=COMPACTED,
        by_codex=("thread/tokenUsage/updated", "account/rateLimits/updated"),
    ),
)
# Codex says so only sometimes.
BY_CHANCE = frozenset({"thread/status/changed notLoaded"})
# Where the order itself is meant to differ.
REORDERED = {"two calls at once": PARALLEL}
# With two clients: a fork after a change of settings.
TWO_CLIENTS = (
    Allowed(
        where=r".*\.reasoningEffort|thread/fork answered result\.activePermissionProfile.*",
        why="A fork keeps the effort and the sandbox that were set for its source thread.",
        is_read=True,
    ),
)


def common(scene: str, messages: Sequence[Message], side: str) -> list[Message]:
    """The messages of one server, ``by_codex`` or ``by_us``, without those that only it sends."""
    own = {name for row in TOLD if re.fullmatch(row.scene, scene) for name in getattr(row, side)}
    return [one for one in messages if label(one) not in own | BY_CHANCE]
