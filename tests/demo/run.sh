#!/usr/bin/env bash
# run.sh - the demo from start to end: a private PostgreSQL, pgseek in front of it, and demo.py as their client.
#
# It owns the processes, ports and files and must not know what is measured. All that it makes lies in one directory
# and is gone on any exit, unless KEEP=1 leaves it running; "run.sh stop DIRECTORY" ends that.
#
#   PGSEEK_BIN   the proxy to show (default: build/pgseek)
#   PYTHON       an interpreter that has psycopg 3 (default: /usr/bin/python3)
#   KEEP=1       leave both servers running at the end
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
pgseek=${PGSEEK_BIN:-$root/build/pgseek}
python=${PYTHON:-/usr/bin/python3}
keep=${KEEP:-0}
dir=
pg_bin=

die() {
    echo "demo: $*" >&2
    exit 1
}

# PostgreSQL refuses to run as root; its programs then run as the user of Debian's package.
as_postgres() {
    if [ "$(id -u)" -eq 0 ]; then
        (cd / && exec setpriv --reuid=postgres --regid=postgres --init-groups "$@")
    else
        "$@"
    fi
}

find_postgres() {
    local candidate
    for candidate in ${PG_BINDIR:-} $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -rV); do
        if [ -x "$candidate/initdb" ]; then
            pg_bin=$candidate
            return
        fi
    done
    die "no PostgreSQL server found; install the package postgresql or set PG_BINDIR"
}

# The first port from $1 on that nobody listens on; below 32768, out of the way of outgoing connections.
free_port() {
    local port=$1
    while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
        port=$((port + 1))
        [ "$port" -lt 32768 ] || die "no free port"
    done
    echo "$port"
}

# QUIT ends pgseek at once; what does not listen to it within two seconds is killed.
stop_process() {
    local pid=$1 tries=20
    kill -QUIT "$pid" 2>/dev/null || return 0
    while kill -0 "$pid" 2>/dev/null; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || kill -KILL "$pid" 2>/dev/null || return 0
        sleep 0.1
    done
}

# Ends what runs in a demo's directory and removes it. Safe at any stage of the start, and twice.
stop() {
    local where=$1
    if [ -s "$where/pgseek.pid" ]; then
        stop_process "$(cat "$where/pgseek.pid")"
    fi
    if [ -s "$where/data/postmaster.pid" ]; then
        as_postgres "$pg_bin/pg_ctl" stop --silent -D "$where/data" -m immediate >/dev/null 2>&1 || true
    fi
    rm -rf "$where"
}

stop_by_hand() {
    case ${1:-} in
    */pgseek-demo.??????) [ -d "$1" ] || die "no such demo: $1" ;;
    *) die "usage: run.sh stop DIRECTORY (as the demo printed it)" ;;
    esac
    find_postgres
    stop "$1"
}

on_exit() {
    local status=$?
    trap - EXIT
    [ -n "$dir" ] || exit "$status"
    if [ "$status" -ne 0 ] && [ -s "$dir/pgseek.log" ]; then
        echo "demo: the end of pgseek's log:" >&2
        tail -n 5 "$dir/pgseek.log" >&2
    fi
    if [ "$status" -ne 0 ] || [ "$keep" != 1 ]; then
        stop "$dir"
    fi
    exit "$status"
}

start_postgres() {
    printf '%s\n' "$PGPASSWORD" >"$dir/password"
    [ "$(id -u)" -ne 0 ] || chown -R postgres: "$dir"
    as_postgres "$pg_bin/initdb" -D "$dir/data" --username=postgres --pwfile="$dir/password" \
        --auth=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8 --no-sync >"$dir/initdb.log"
    rm "$dir/password"
    # Stock settings, except: all of the table fits in the buffers, buffers are counted, and a crash may lose the data.
    cat >>"$dir/data/postgresql.conf" <<CONF
listen_addresses = '127.0.0.1'
port = $server_port
unix_socket_directories = ''
shared_buffers = 384MB
shared_preload_libraries = 'pg_stat_statements'
fsync = off
max_wal_size = 4GB
CONF
    as_postgres "$pg_bin/pg_ctl" start --silent --wait -D "$dir/data" -l "$dir/data/server.log" >/dev/null ||
        die "PostgreSQL did not start: $(tail -n 3 "$dir/data/server.log")"
}

start_pgseek() {
    # keygen and the proxy run as whoever started the demo: the checkout may be closed to the user postgres.
    "$pgseek" keygen "$dir/cursor.keys" >/dev/null
    cat >"$dir/pgseek.conf" <<CONF
[pgseek]
listen_addr = 127.0.0.1
listen_port = $proxy_port
unix_socket_dir =
cursor_key_file = $dir/cursor.keys

[databases]
* = host=127.0.0.1 port=$server_port
CONF
    setsid "$pgseek" "$dir/pgseek.conf" </dev/null >"$dir/pgseek.log" 2>&1 &
    echo $! >"$dir/pgseek.pid"
    disown
    local tries=0
    until (exec 3<>"/dev/tcp/127.0.0.1/$proxy_port") 2>/dev/null; do
        kill -0 "$(cat "$dir/pgseek.pid")" 2>/dev/null || die "pgseek did not start"
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || die "pgseek does not listen on port $proxy_port"
        sleep 0.1
    done
}

main() {
    [ -x "$pgseek" ] || die "$pgseek is missing; run make first"
    "$python" -c 'import psycopg' 2>/dev/null || die "$python has no psycopg 3; install the package python3-psycopg"
    find_postgres
    trap on_exit EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    dir=$(mktemp -d "${TMPDIR:-/tmp}/pgseek-demo.XXXXXX")
    server_port=$(free_port 15432)
    proxy_port=$(free_port 16432)
    PGPASSWORD=$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
    export PGPASSWORD

    echo "Starting PostgreSQL on 127.0.0.1:$server_port and pgseek on 127.0.0.1:$proxy_port"
    start_postgres
    start_pgseek
    "$python" -B "$here/demo.py" --server-port "$server_port" --proxy-port "$proxy_port"

    local password="<as it says>"
    if [ "$keep" = 1 ]; then
        echo "Both are still running. To try it by hand:"
        password=$PGPASSWORD
    else
        echo "To try it by hand, leave both running with  KEEP=1 make demo  and then:"
    fi
    cat <<HAND

    PGPASSWORD=$password psql -h 127.0.0.1 -p $proxy_port -U demo feed

    SELECT id, created_at, title FROM posts ORDER BY created_at DESC, id DESC LIMIT 5 /* pgseek */;
    SHOW pgseek.next_cursor;
    SELECT current_setting('pgseek.next_cursor') AS next \\gset
    SET pgseek.cursor = :'next';
    SELECT id, created_at, title FROM posts ORDER BY created_at DESC, id DESC LIMIT 5 /* pgseek */;

HAND
    if [ "$keep" = 1 ]; then
        echo "To end it:  $here/run.sh stop $dir"
    fi
}

if [ "${1:-}" = stop ]; then
    stop_by_hand "${2:-}"
else
    main
fi
