#!/bin/sh
# Every planted bug must make its loom model fail, and be missed by the plain tests (or, where the table
# says so, caught by them too). One loom build and one plain build serve all plants: BANDGATE_PLANT chooses.
#
#   loom-tests/planted.sh            all plants
#   loom-tests/planted.sh m01 u2     these
#   PLAIN=0 loom-tests/planted.sh    loom only
#
# Target directories: target/loom and target/planted, or LOOM_TARGET_DIR and PLANTED_TARGET_DIR.
set -eu
cd "$(dirname "$0")/.."
loom_dir=${LOOM_TARGET_DIR:-target/loom}
plain_dir=${PLANTED_TARGET_DIR:-target/planted}
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# plant | test target | test | file under core/src, as a test filter | plain tests
# Rules that one thread alone can break, so that the first execution finds them: b1, b2, b2-mark, z1, z2,
# s1-flag, s2-told, dead. The unit tests beside the code may miss them; the scenarios in core/tests need not.
table='
m01        rings  m01_        ring::command    missed
m02        rings  m02_        ring::command    missed
m03        bell   m03_        notify::doorbell missed
m04        bell   m04_        notify::doorbell missed
m04b       bell   m04_        notify::doorbell missed
m05        bell   m05_        notify::doorbell missed
k1         bell   k1_         notify::doorbell missed
s2         bell   s2_         ring::scheduler  missed
m16        rings  m16_        ring::free_list  missed
completion rings  completion_ ring::completion missed
u1         urgent u1_         ring::urgent     missed
u2         urgent u2_         ring::urgent     missed
n1         urgent n1_         ring::urgent     missed
n2         urgent n2_         ring::urgent     missed
v1         urgent v1_         ring::urgent     missed
w1         word    w1_         admit::word      missed
w1         word    w2_         admit::word      missed
l1-look    word    l1_         shard            missed
l1-fence   word    l1_         shard            missed
l1-relaxed word    l1_         admit::word      missed
l2         word    l2_         admit::word      missed
m06        word    m06_        admit::word      missed
x1         word    x1_         shard            caught
o1         order   o1_         admit::word      caught
o1         order   o4_         admit::word      caught
o2         order   o2_         shard            caught
o3         order   o3_         shard            missed
t3         order   t3_         shard            missed
b2         order   t2_         admit::word      caught
b1         blocked b1_         shard            missed
b2         blocked b2_         admit::word      caught
b2-mark    blocked b2_         shard            missed
b2         blocked b3_         admit::word      caught
b2         blocked b4_         admit::word      caught
z2         blocked g1_         shard            missed
g2         blocked g2_         shard            missed
z1         blocked z1_         shard            missed
z2         blocked z2_         shard            missed
z1         blocked z3_         shard            missed
m13        blocked m13_        shard            missed
m07        blocked m07_        shard            caught
u1-look    left    u1_         shard            missed
u1-post    left    u1_         shard            missed
u2         left    u2_         ring::urgent     missed
u1-look    left    u3_         shard            missed
s1         left    s1_         shard            missed
s1-flag    left    s2_         shard            missed
s2         left    s2_         ring::scheduler  missed
s2-told    left    s2_         shard            missed
s3         left    s3_         shard            missed
chain      left    chain_      shard            missed
k1         left    k1_         notify::doorbell missed
c1         ends    c1_         shard            missed
m08        ends    m08_        shard            missed
c3         ends    c3_         shard            missed
m09        ends    m09_        shard            missed
n1-drain   ends    m09_        shard            missed
b2         ends    m10_        admit::word      caught
closed     ends    closed_n    shard            missed
drain      ends    drain_      shard            caught
z2         ends    closed_a    shard            missed
c1         engine  m11_        shard            missed
m15        engine  m15_        shard            missed
dead       engine  dead_       shard            missed
e1         units   e1_         shard            missed
e1         units   e2_         shard            missed
e2-ask     units   e2_an_idle   shard            missed
e2-look    units   e2_an_idle   shard            missed
e2-give    units   e2_an_idle   shard            missed
e2-giver   units   e2_an_idle   shard            missed
e4-mark    units   e1_         shard            missed
'

loom() {
    RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=$loom_dir RUST_BACKTRACE=0 \
        cargo test --quiet --profile loom -p bandgate-loom-tests "$@"
}
plain() {
    RUSTFLAGS="--cfg planted" CARGO_TARGET_DIR=$plain_dir RUST_BACKTRACE=0 \
        cargo test --quiet -p bandgate-core --no-default-features --lib "$@"
}

plain_within() {
    export RUSTFLAGS="--cfg planted" CARGO_TARGET_DIR=$plain_dir RUST_BACKTRACE=0
    timeout 60 cargo test --quiet -p bandgate-core --no-default-features --lib "$@"
}

# Build first, so that a build that fails is not taken for a bug that was caught.
loom --no-run
[ "${PLAIN:-1}" = 0 ] || plain --no-run

fail=0
while read -r plant target name filter expected; do
    [ -n "$plant" ] || continue
    if [ $# -gt 0 ]; then
        case " $* " in *" $plant "*) ;; *) continue ;; esac
    fi
    if BANDGATE_PLANT=$plant loom --test "$target" -- "$name" --nocapture >"$out" 2>&1; then
        echo "planted $plant: NOT CAUGHT by $target/$name"
        fail=1
        continue
    fi
    where=$(sed -n 's/.*FAILED at \(execution [0-9]*\).*/\1/p' "$out" | head -n 1)
    # The line after "panicked at": what the model said.
    why=$(sed -n '/panicked at/{n;p;q;}' "$out" | cut -c 1-70)
    if [ -z "$where" ]; then
        echo "planted $plant: $target/$name failed, but not by its model:"
        tail -n 20 "$out"
        fail=1
        continue
    fi
    seen=skipped
    if [ "${PLAIN:-1}" != 0 ]; then
        # A plain test that hangs has caught it too.
        if BANDGATE_PLANT=$plant plain_within -- "$filter" >"$out" 2>&1; then seen=missed; else seen=caught; fi
        if grep -q 'test result: ok. 0 passed' "$out"; then seen='none of that name'; fi
        if [ "$seen" != "$expected" ]; then
            echo "planted $plant: plain tests of $filter: $seen, expected: $expected"
            fail=1
        fi
    fi
    echo "planted $plant: caught by $target/$name at $where ($why); plain tests: $seen"
done <<EOF
$table
EOF
exit $fail
