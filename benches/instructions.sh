#!/bin/sh
# Instructions of one operation on each path of the benches that runs on one thread, counted by callgrind.
#
#   benches/instructions.sh                counts and writes benches/instructions.txt
#   benches/instructions.sh --check        counts and fails if a path grew by more than 5 % over that file
#   benches/instructions.sh --profile ID   where the instructions of an id are: P3, or one of its paths: P3/bandgate/64
#   benches/instructions.sh --table        the same of all paths, a row each, as it stands in README.md
#   benches/instructions.sh --lines        the cache lines P15's two threads share, if one of them writes them; fails if any
#
# A profile has per operation, for the whole and for the files and functions with most instructions: instructions, locked
# instructions (fences included), misses of a first-level cache of 32 KiB and of the cache behind it, which
# CACHE=bytes,ways,line sets: 524288,8,64 (a second level) if absent; 33554432,16,64 is a third.
#
# Needs valgrind (a profile objdump too); without it the script says SKIPPED and succeeds.
set -eu
cd "$(dirname "$0")/.."
kept=benches/instructions.txt
mode=${1:-write}
case $mode in
    write | --check | --lines | --table) ;;
    --profile) wanted=${2:?instructions: --profile takes an id} ;;
    *) echo "instructions: unknown argument $mode; it takes --check, --profile ID, --table, --lines or none" >&2; exit 2 ;;
esac
if ! command -v valgrind >/dev/null 2>&1; then
    echo "instructions: SKIPPED: valgrind is not installed"
    exit 0
fi
cargo build --release --quiet -p bandgate-benches --bin paths
paths=${CARGO_TARGET_DIR:-target}/release/paths
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$paths" --list >"$work/names"

# run PATH OPTION...: runs a path under callgrind.
run() {
    path=$1
    shift
    valgrind --tool=callgrind --toggle-collect='*paths::collected*' --callgrind-out-file="$work/out" "$@" \
        "$paths" "$path" >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }
}

# count PATH OPERATIONS: prints the instructions of one operation, to a tenth.
count() {
    run "$1"
    awk -v operations="$2" '/Collected :/ { printf "%.1f\n", $NF / operations; found = $NF > 0 }
        END { exit !found }' "$work/log" || { cat "$work/log" >&2; return 1; }
}

profile() {
    objdump -d --no-show-raw-insn "$paths" |
        awk '/\tlock |\tmfence|\txchg .*\(/ { sub(/:$/, "", $1); print "0x" $1 }' >"$work/locked"
    while read -r name operations; do
        case $name in ${wanted:-*} | "${wanted:-}"/*) ;; *) continue ;; esac
        run "$name" --dump-instr=yes --compress-strings=no --compress-pos=no --cache-sim=yes \
            --D1=32768,8,64 --LL="${CACHE:-524288,8,64}"
        [ "$mode" = --table ] && row=$name || { row=; echo "$name"; }
        awk -v operations="$operations" -v row="$row" -f benches/profile.awk "$work/locked" "$work/out"
        found=yes
    done <"$work/names"
    [ -n "${found:-}" ] || { echo "instructions: no path of $wanted; there are:" >&2; cat "$work/names" >&2; return 2; }
}

# touched PATH: the pairs of lines (128 bytes, which a processor fetches together) that some hundred operations of a path
# read (r) or write (w). Valgrind loads at the same addresses in each run, and the set-up of both paths is the same.
touched() {
    base=108000
    nm "$paths" | awk '/paths9collected/ { print $1 }' >"$work/entries"
    valgrind --tool=lackey --trace-mem=yes --log-file=/dev/stdout "$paths" "$1" 2>/dev/null |
        awk -v base="$base" -f benches/lines.awk "$work/entries" -
}

lines() {
    touched P15/bandgate/one | sort -u >"$work/one"
    touched P15/bandgate/other | sort -u >"$work/other"
    [ -s "$work/one" ] && [ -s "$work/other" ] || { echo "instructions: no trace" >&2; return 1; }
    awk 'NR == FNR { one[$1] = one[$1] $2; next }
        { other[$1] = other[$1] $2 }
        END {
            for (at in one) {
                touched++
                written += one[at] ~ /w/
                if (!(at in other)) continue
                both++
                if (one[at] other[at] ~ /w/) { print "0x" at "  one " one[at] "  other " other[at]; bad = 1 }
            }
            printf "instructions: P15 touches %d pairs of lines a pool and writes %d; both pools touch %d of them\n", \
                touched, written, both
            exit bad
        }' "$work/one" "$work/other"
}

case $mode in
    --profile) profile; exit ;;
    --table)
        echo "| path | instructions | locked | past L1 | past L2 | instructions by file |"
        echo "| --- | --- | --- | --- | --- | --- |"
        profile
        exit ;;
    --lines) lines; exit ;;
esac
while read -r name operations; do
    one=$(count "$name" "$operations")
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
