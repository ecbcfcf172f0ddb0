# Sums a callgrind file by the functions of the sources: instructions, locked instructions and data cache misses an operation.
#
#   awk -v operations=N [-v most=14] [-v row=NAME] -f profile.awk LOCKED CALLGRIND
#
# With a row's name all is one row of the README's table.
#
# LOCKED: addresses of locked instructions, one a line ("0x1be90"). CALLGRIND: written with --dump-instr=yes
# --cache-sim=yes --compress-strings=no --compress-pos=no.
#
# The release build inlines across crates, so a symbol says little. Callgrind names file and line of every address; the
# function is the last `fn` above that line in that file. What has no source here (the standard library) is counted to
# the function it was inlined into, and stands under its own symbol if it was not inlined.

function functions_of(file,    text, at, name) {
    if (file in known) return
    known[file] = 0
    if (file !~ /^\// || file ~ /^\/rustc\//) return
    while ((getline text < file) > 0) {
        at++
        if (match(text, /(^|[ (])fn [A-Za-z_0-9]+/)) {
            name = substr(text, RSTART, RLENGTH)
            sub(/^.*fn /, "", name)
        }
        owner[file, at] = name
    }
    close(file)
    known[file] = at
}

# The last two parts of a path: queue/heap.rs.
function short(file,    part, n) {
    n = split(file, part, "/")
    return n < 2 ? file : part[n - 1] "/" part[n]
}

FNR == NR { locked[$1] = 1; next }
/^fn=/ { symbol = substr($0, 4, 70); here = ""; next }
/^(fl|fi|fe)=/ { file = substr($0, 4); functions_of(file); next }
/^calls=/ { inclusive = 1; next }
/^events:/ { for (i = 2; i <= NF; i++) column[$i] = i + 1; next }
/^0x/ {
    if (inclusive) { inclusive = 0; next }
    if (known[file] > 0 && (file, $2) in owner) here = owner[file, $2] "  " short(file)
    who = here == "" ? symbol : here
    ir = $(column["Ir"]); near = $(column["D1mr"]) + $(column["D1mw"]); far = $(column["DLmr"]) + $(column["DLmw"])
    lock = $1 in locked ? ir : 0
    place = who
    sub(/^[^ ]*  /, "", place)
    if (place == who) place = "elsewhere"
    add("all", ir, lock, near, far); add("file  " place, ir, lock, near, far); add("fn  " who, ir, lock, near, far)
}
function add(who, ir, lock, near, far) {
    instructions[who] += ir; locks[who] += lock; misses[who] += near; beyond[who] += far
}

function show(who,    name) {
    name = who
    sub(/^(file|fn)  /, "", name)
    printf "%9.1f %7.2f %7.2f %7.2f  %s\n", instructions[who] / operations, locks[who] / operations, \
        misses[who] / operations, beyond[who] / operations, name
    delete instructions[who]
}

# Those of a kind with most instructions, down to 1 % of all.
function show_most(kind, least,    n, who, top) {
    for (n = 0; n < most; n++) {
        top = ""
        for (who in instructions)
            if (index(who, kind "  ") == 1 && (top == "" || instructions[who] > instructions[top])) top = who
        if (top == "" || instructions[top] < least) return
        show(top)
    }
}

# The whole in one row of a table, with the six files that have most.
function show_row(    n, who, top, text) {
    for (n = 0; n < 6; n++) {
        top = ""
        for (who in instructions)
            if (index(who, "file  ") == 1 && (top == "" || instructions[who] > instructions[top])) top = who
        if (top == "") break
        text = text (n ? ", " : "") substr(top, 7) sprintf(" %.0f", instructions[top] / operations)
        delete instructions[top]
    }
    printf "| %s | %.0f | %.1f | %.1f | %.1f | %s |\n", row, instructions["all"] / operations, locks["all"] / operations, \
        misses["all"] / operations, beyond["all"] / operations, text
}

END {
    if (operations == 0 || instructions["all"] == 0) exit 1
    if (row) {
        show_row()
        exit
    }
    if (most == 0) most = 14
    least = instructions["all"] / 100
    printf "%9s %7s %7s %7s\n", "instr", "locked", "D1 miss", "LL miss"
    show("all")
    print "  by file"
    show_most("file", least)
    print "  by function"
    show_most("fn", least)
}
