# The pairs of cache lines that the measured work of a path touches, from a trace of valgrind's lackey.
#
#   lackey ... | awk -v base=108000 -f lines.awk ENTRIES -
#
# ENTRIES: addresses of the functions in which the work is done (hexadecimal, as nm prints them); base: where the program was
# loaded. From the first entry on, `most` accesses are taken: "2afd w" is a write to 0x2afd00..0x2afd7f (a trailing + is the
# upper half). The stack is each thread's own and left out.

function number(hex,    i, n) {
    n = 0
    for (i = 1; i <= length(hex); i++) n = 16 * n + index("0123456789abcdef", substr(hex, i, 1)) - 1
    return n
}

NR == FNR { entry[sprintf("%08x", number($1) + number(base))] = 1; next }
/^I / && !inside {
    split($2, part, ",")
    if (part[1] in entry) inside = 1
    next
}
!inside { next }
taken > 40000 { exit }
/^ [LSM] / {
    taken++
    split($2, part, ",")
    at = part[1]
    sub(/^0+/, "", at)
    if (at ~ /^1ff[ef]/) next
    upper = index("89abcdef", substr(at, length(at) - 1, 1)) > 0
    print substr(at, 1, length(at) - 2) (upper ? "+" : "") ($1 == "L" ? " r" : " w")
}
