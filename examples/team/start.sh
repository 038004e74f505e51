#!/usr/bin/env bash
# Start a team on this machine: PostgreSQL, an S3 server and two workers. Ctrl-C ends all of them.
#
# usage: examples/team/start.sh FOLDER
#
# Needs limner[team], PostgreSQL (initdb, postgres) and rclone. All data is in FOLDER, and the next
# start goes on with it. FOLDER/env has the variables for your own shell:
#
#   . FOLDER/env && limner batch run rows.jsonl --budget 0
#
# compose.yaml starts the same with Docker.
set -euo pipefail
set -m # each program gets a process group of its own, so that Ctrl-C reaches only this script

mkdir -p "${1:?usage: start.sh FOLDER}"
cd "$1"
folder=$PWD
s3_port=${S3_PORT:-9000}
# Debian keeps the programs of each version in a folder of its own.
for programs in /usr/lib/postgresql/*/bin; do PATH="$programs:$PATH"; done
# PostgreSQL refuses to run as root.
as_user=()
[ "$(id -u)" != 0 ] || as_user=(setpriv --reuid=nobody --regid=nogroup --clear-groups)

if [ ! -e env ]; then
    mkdir -p postgres s3/pictures
    [ "$(id -u)" != 0 ] || chown nobody:nogroup postgres
    chmod 700 postgres
    (cd postgres && "${as_user[@]}" initdb --pgdata=data --username=limner --auth=trust \
        --encoding=UTF8 --locale=C.UTF-8 >initdb.log)
    umask 077
    cat >env.new <<END
export LIMNER_STORE='postgresql://limner@/postgres?host=$folder/postgres'
export LIMNER_BLOBS='s3://pictures/team'
export AWS_ACCESS_KEY_ID='team' AWS_REGION='us-east-1'
export AWS_SECRET_ACCESS_KEY='$(head -c 24 /dev/urandom | base64 | tr +/ -_)'
export AWS_ENDPOINT_URL='http://127.0.0.1:$s3_port'
END
    mv env.new env
fi
. ./env

started=()
stop() { # the last one that was started ends first, because it needs the others
    trap - EXIT
    for ((at = ${#started[@]} - 1; at >= 0; at--)); do
        kill -INT "${started[at]}" 2>/dev/null || true
        wait "${started[at]}" 2>/dev/null || true
    done
}
trap stop EXIT
trap 'exit 0' INT TERM
start() { # NAME COMMAND…: run it until the end of this script; what it says is in NAME.log
    local name=$1
    shift
    "$@" >"$folder/$name.log" 2>&1 &
    started+=($!)
}
wait_for() { # WHAT COMMAND…: until it succeeds
    local what=$1
    shift
    for ((tries = 0; tries < 300; tries++)); do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.1
    done
    echo "start.sh: $what does not answer; see the logs in $folder" >&2
    exit 1
}

cd postgres # the user of PostgreSQL may not see other folders
start postgres "${as_user[@]}" postgres -D data -c listen_addresses= \
    -c unix_socket_directories="$folder/postgres"
cd ..
start s3 rclone serve s3 --config /dev/null --addr "127.0.0.1:$s3_port" \
    --auth-key "$AWS_ACCESS_KEY_ID,$AWS_SECRET_ACCESS_KEY" s3
wait_for PostgreSQL pg_isready --host="$folder/postgres"
wait_for "The bucket" env LIMNER_HOME="$folder/worker-1" limner doctor
for number in 1 2; do
    start "worker-$number" env LIMNER_HOME="$folder/worker-$number" \
        limner work --wait --metrics 127.0.0.1:0
done
echo "start.sh: two workers wait for batches. Variables: . $folder/env   Logs: $folder/*.log"
wait -n # until Ctrl-C, or until one of them ends
echo "start.sh: a program has ended; see the logs in $folder" >&2
exit 1
