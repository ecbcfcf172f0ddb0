#!/bin/sh
# Instructions of one operation on each path of P1 to P4, counted by callgrind.
#
#   benches/instructions.sh           counts and writes benches/instructions.txt
#   benches/instructions.sh --check   counts and fails if a path grew by more than 5 % over that file
#
# Needs valgrind; without it the script says SKIPPED and succeeds.
set -eu
cd "$(dirname "$0")/.."
kept=benches/instructions.txt
mode=${1:-write}
case $mode in
    write | --check) ;;
    *) echo "instructions: unknown argument $mode; it takes --check or none" >&2; exit 2 ;;
esac
if ! command -v valgrind >/dev/null 2>&1; then
    echo "instructions: SKIPPED: valgrind is not installed"
    exit 0
fi
cargo build --release --quiet -p bandgate-benches --bin paths
paths=${CARGO_TARGET_DIR:-target}/release/paths
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rounds=$("$paths" --list | awk '$1 == "rounds" { print $2 }')

# Prints the instructions of one operation of a path, to a tenth.
count() {
    valgrind --tool=callgrind --toggle-collect='*paths::collected*' --callgrind-out-file="$work/out" \
        "$paths" "$1" >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }
    awk -v rounds="$rounds" '/Collected :/ { printf "%.1f\n", $NF / rounds; found = $NF > 0 }
        END { exit !found }' "$work/log" || { cat "$work/log" >&2; return 1; }
}

"$paths" --list | grep -v '^rounds' >"$work/names"
while read -r name; do
    one=$(count "$name")
    printf '%-28s %8s\n' "$name" "$one" | tee -a "$work/new"
done <"$work/names"

header="# Instructions of one operation (callgrind, $(uname -m), rustc $(rustc --version | cut -d' ' -f2)). Made by instructions.sh."
if [ "$mode" = write ]; then
    { echo "$header"; cat "$work/new"; } >"$kept"
    echo "written: $kept"
    exit 0
fi
if [ "$(head -n 1 "$kept")" != "$header" ]; then
    echo "instructions: SKIPPED: $kept was counted with another compiler or architecture"
    exit 0
fi
awk 'NR == FNR { if ($1 != "#") kept[$1] = $2; next }
    !($1 in kept) { printf "instructions: %s is new; run without --check to keep it\n", $1; bad = 1; next }
    $2 > kept[$1] * 1.05 { printf "instructions: %s grew from %s to %s\n", $1, kept[$1], $2; bad = 1 }
    { delete kept[$1] }
    END { for (name in kept) { printf "instructions: %s is gone\n", name; bad = 1 } exit bad }' "$kept" "$work/new"
echo "instructions: no path grew by more than 5 %"
