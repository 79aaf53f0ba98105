#!/bin/bash
# layers.sh - the walls between the folders, checked on the sources and on the parser's library.
# It knows include lines and symbol names only. Usage: tests/layers.sh path/to/libpgseek.a
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1
library=${1:-build/release/libpgseek.a}
faults=0

fault() {
    echo "layers: $1" >&2
    faults=$((faults + 1))
}

# Include lines of the files of a folder: "file:line:#include ...".
includes() {
    grep -rnE '^[[:space:]]*#[[:space:]]*include' --include='*.[ch]' "$@" 2>/dev/null
}

# forbid <why> <pattern> <paths...>: no include line of these paths may match the pattern.
forbid() {
    local why=$1 pattern=$2 hits
    shift 2
    hits=$(includes "$@" | grep -E "include[[:space:]]*[<\"]($pattern)" || true)
    [ -z "$hits" ] || fault "$why:"$'\n'"$hits"
}

# ---- who includes whom ----------------------------------------------------------------------------------------------

forbid "parser/ includes nothing of the proxy" '\.\./' parser
hits=$(includes parser | grep -E 'include[[:space:]]*<' | grep -vE \
    '<(assert|ctype|errno|float|inttypes|limits|math|stdarg|stdbool|stddef|stdint|stdio|stdlib|string|strings)\.h>|<pg_query(/pg_query\.pb-c)?\.h>|<protobuf-c/protobuf-c\.h>' || true)
[ -z "$hits" ] || fault "parser/ uses only the C library, libpg_query and protobuf-c:"$'\n'"$hits"

hits=$(includes proxy | grep -E '"[^"]*parser/' | grep -v '"[./]*parser/pgseek\.h"' || true)
[ -z "$hits" ] || fault "proxy/ includes only pgseek.h of the parser:"$'\n'"$hits"
hits=$(includes proxy | grep -E '<(pg_query|protobuf-c)' || true)
[ -z "$hits" ] || fault "proxy/ does not know libpg_query:"$'\n'"$hits"

hits=$(includes proxy | grep '<uv\.h>' | grep -vE '^proxy/(io/|main\.c:)' || true)
[ -z "$hits" ] || fault "only io/ and main.c know libuv:"$'\n'"$hits"
hits=$(includes proxy | grep '<openssl/' | grep -vE '^proxy/(io/tls|auth/|page/cursor|page/keyring)' || true)
[ -z "$hits" ] || fault "OpenSSL belongs to tls, auth/, cursor and keyring:"$'\n'"$hits"

forbid "protocol/ includes only itself" '[./]*(io|session|auth|page|admin|parser)/' proxy/protocol
forbid "auth/ includes neither session/, io/ nor page/" '[./]*(io|session|page)/' proxy/auth
forbid "page/ includes neither session/ nor io/" '[./]*(io|session)/' proxy/page
forbid "session/ does not include io/" '[./]*io/' proxy/session
# The reference prints every table, those of the pages too.
hits=$(includes proxy/admin | grep -v '^proxy/admin/reference\.c:' | grep -E 'include[[:space:]]*"[./]*(io|session|auth|page)/' || true)
[ -z "$hits" ] || fault "admin/ includes nothing of io/, session/, auth/, page/:"$'\n'"$hits"

# ---- what the code may call -----------------------------------------------------------------------------------------

hits=$(grep -rnwE '(strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|gets|alloca)[[:space:]]*\(' --include='*.[ch]' parser proxy || true)
[ -z "$hits" ] || fault "unbounded or unchecked calls:"$'\n'"$hits"

if [ -s "$library" ]; then
    hits=$(nm -u "$library" 2>/dev/null | grep -wE '(uv_|SSL_|EVP_)[A-Za-z0-9_]*|socket|read|write|connect|send|recv|open|fopen|time|clock_gettime|getenv' || true)
    hits+=$(nm -u "$library" 2>/dev/null | grep -E ' (uv|SSL|EVP)_' || true)
    [ -z "$hits" ] || fault "the parser's library reaches the outside world:"$'\n'"$hits"
else
    fault "$library is missing: build first"
fi

# ---- every file has its line in the architecture --------------------------------------------------------------------

if [ -f docs/ARCHITECTURE.md ]; then
    for file in $(git ls-files 'parser/*.[ch]' 'parser/*.def' 'proxy/*.[ch]' 2>/dev/null || ls parser/*.[ch] proxy/*.[ch] proxy/*/*.[ch]); do
        base=${file##*/}
        grep -qwF -- "$base" docs/ARCHITECTURE.md || grep -qE "(^|[^a-z_])${base%.*}\.(\[ch\]|c, \.h|\{c,h\})" docs/ARCHITECTURE.md ||
            fault "docs/ARCHITECTURE.md does not name $file"
    done
else
    echo "layers: warning: docs/ARCHITECTURE.md does not exist yet" >&2
fi

[ $faults -eq 0 ] && echo "  ok    layers"
exit $((faults > 0))
