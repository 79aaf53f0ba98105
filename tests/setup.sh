#!/bin/bash
# setup.sh - installs the Debian packages that a group of targets needs; quiet and quick when nothing is missing.
# It knows package names and must not build anything. Usage: tests/setup.sh <build|test|fuzz|lint|bench|demo>...
set -eu -o pipefail
cd "$(dirname "$0")/.."

missing=()

is_installed() {
    dpkg-query -W -f='${Status}\n' "$1" 2>/dev/null | grep -q 'ok installed'
}

need() {
    local package
    for package in "$@"; do
        case " ${missing[*]} " in *" $package "*) continue ;; esac
        is_installed "$package" || missing+=("$package")
    done
}

# need_command <command> <packages...>: a command from any source will do.
need_command() {
    local command=$1
    shift
    command -v "$command" >/dev/null 2>&1 || need "$@"
}

need_server() {
    compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || need postgresql postgresql-contrib
    need_command pgbench postgresql
}

group_build() {
    need_command make make
    need_command pkg-config pkg-config
    need_command gcc gcc
    need libc6-dev libuv1-dev libssl-dev libpq-dev libinih-dev libpg-query-dev libprotobuf-c-dev
}

group_test() {
    need libcmocka-dev python3-pytest python3-pytest-xdist python3-psycopg python3-psycopg2 python3-asyncpg python3-cryptography \
        openssl libpostgresql-jdbc-java procps
    need_command node nodejs
    need_command npm npm
    need_command javac default-jdk-headless
    need_server
}

# What npm brings is pinned by lock files; it is asked only when something is not there yet. Tests of what is missing are
# skipped: a registry out of reach must not stop all others.
install_locked() {
    local folder=$1 what=$2
    [ "$folder/node_modules/.package-lock.json" -nt "$folder/package-lock.json" ] && return
    echo "setup: npm ci in $folder"
    timeout 300 npm ci --prefix "$folder" --loglevel=error --fetch-retries=1 --no-audit --no-fund --ignore-scripts ||
        echo "setup: warning: npm failed, so the tests of $what will be skipped" >&2
}

group_fuzz() {
    need_command clang clang
    compgen -G '/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a' >/dev/null || need_runtime
}

clang_version() {
    apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p' | head -1
}

# The fuzzer's runtime is a package of its own since LLVM 14, named after the version that clang has.
need_runtime() {
    local version
    version=$(clang_version)
    [ -n "$version" ] || { update && version=$(clang_version); }
    need "libclang-rt-$version-dev"
}

group_lint() {
    need libcmocka-dev
    need_command clang clang
    need_command clang-format clang-format
    need_command clang-tidy clang-tidy
}

group_bench() {
    need_command pgbouncer pgbouncer
    need_command perf linux-perf
    need_command strace strace
    need_server
}

group_demo() {
    need python3 python3-psycopg python3-psycopg2
    need_server
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

is_updated=false
update() {
    $is_updated || as_root env DEBIAN_FRONTEND=noninteractive apt-get -q update
    is_updated=true
}

# Debian's postgresql starts a system cluster when it is installed; the tests start their own.
forbid_main_cluster() {
    [ -e /etc/postgresql-common/createcluster.conf ] && return
    as_root install -d -m 755 /etc/postgresql-common # for everybody, whatever the umask
    echo 'create_main_cluster = false' | as_root install -m 644 /dev/stdin /etc/postgresql-common/createcluster.conf
}

install_missing() {
    echo "setup: installing ${missing[*]}"
    case " ${missing[*]} " in *" postgresql "*) forbid_main_cluster ;; esac
    update
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends \
        -o Dpkg::Options::=--force-confold "${missing[@]}"
}

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "setup: not a Debian system; install by hand what tests/setup.sh lists" >&2
    exit 0
fi
for group in "$@"; do
    "group_$group"
done
[ ${#missing[@]} -eq 0 ] || install_missing
case " $* " in
*" test "*)
    install_locked tests/e2e/node "Node.js drivers"
    install_locked tests/e2e/servers "PostgreSQL 16 to 18"
    ;;
esac
