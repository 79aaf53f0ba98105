#!/bin/bash
# reference.sh - compares the documents made from tables with what the program prints.
# Usage: tests/reference.sh path/to/pgseek [--write]; with --write the documents are renewed instead.
set -eu -o pipefail
program=$(realpath "${1:?usage: tests/reference.sh path/to/pgseek [--write]}")
action=${2:-check}
cd "$(dirname "$0")/.."
begin='<!-- begin: made by pgseek --print-reference -->'
end='<!-- end: made by pgseek --print-reference -->'
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

"$program" --print-config >"$temporary/proxy.conf.example"
"$program" --print-reference >"$temporary/generated"

# The reference with everything between the two marks replaced.
for mark in "$begin" "$end"; do
    grep -qxF -- "$mark" docs/REFERENCE.md || { echo "reference: docs/REFERENCE.md has lost the line $mark" >&2; exit 1; }
done
{
    sed "/^$begin\$/q" docs/REFERENCE.md
    cat "$temporary/generated"
    sed -n "/^$end\$/,\$p" docs/REFERENCE.md
} >"$temporary/REFERENCE.md"

renew() {
    if [ "$action" = --write ]; then
        cmp -s "$1" "$2" || cp "$1" "$2"
    elif ! diff -u "$2" "$1"; then
        echo "reference: $2 is not what the program prints: tests/reference.sh $program --write renews it" >&2
        return 1
    fi
}
renew "$temporary/REFERENCE.md" docs/REFERENCE.md
renew "$temporary/proxy.conf.example" proxy.conf.example
echo "  ok    reference"
