#!/bin/sh
# Programs that the slow tests need and pip cannot install: a terminal, a tracer, a browser, npm
# and PostgreSQL.
set -eu
missing=""
command -v tmux >/dev/null || missing="$missing tmux"
command -v strace >/dev/null || missing="$missing strace"
command -v chromium >/dev/null || command -v google-chrome >/dev/null || missing="$missing chromium"
command -v npm >/dev/null || missing="$missing nodejs npm"
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || missing="$missing postgresql"
[ -z "$missing" ] && exit 0
if ! command -v apt-get >/dev/null; then
    echo "Install these first:$missing" >&2
    exit 1
fi
root=""
[ "$(id -u)" = 0 ] || root="sudo"
$root apt-get update --quiet=2
# The names are meant to be several words.
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $root apt-get install --quiet=2 --yes --no-install-recommends $missing
