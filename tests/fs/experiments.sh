#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# The experiments of contrib/experiments on mounts of their own: what they print,
# that they put back what they changed, and what they refuse.
. "$(dirname "$0")/lib.sh"

EXPERIMENTS=$(cd "$(dirname "$0")/../../contrib/experiments" && pwd) || fail "no contrib/experiments"

# What an experiment may not leave changed.
state() {
	(cd "$MNT" && ls tasks live && grep -H . weights/*) | tr '\n' ' '
}

placement() {
	"$EXPERIMENTS/vmalloc-placement.sh" "$MNT"
}

# --- four nodes: every case is measured, and memfs gives each node what its weight says
start topology=4x64M:cpus=1
echo 9 >"$MNT/weights/node2" || fail weights
before=$(state)
placement >"$DIR/table" || fail "vmalloc-placement.sh: $?"
cat "$DIR/table"
is "lines" "$(wc -l <"$DIR/table" | tr -d ' ')" 10
is "memfs" "$(awk 'NR > 1 { print $NF }' "$DIR/table" | tr '\n' ' ')" \
	"30/10 188/62 300/100 384/128 1536/512 10/10 20/10/5/5 126/62/31/31 5/5/5/5 "
is "kernel 7.2, recorded" "$(awk '/ 250 / { print $5 }' "$DIR/table" | tr '\n' ' ')" "234/16 240/10/0/0 "
is "computed" "$(grep -o computed "$DIR/table" | wc -l | tr -d ' ')" 7
is "state after it" "$(state)" "$before"

# --- automatic weights come back, too
for node in 0 1 2 3; do
	echo $((10000 * (node + 1))) >"$MNT/nodes/node$node/bandwidth" || fail bandwidth
done
echo true >"$MNT/weights/auto" || fail "weights/auto"
before=$(state)
placement >/dev/null || fail "vmalloc-placement.sh with automatic weights: $?"
is "state after it" "$(state)" "$before"
check_engine
stop

# --- two nodes: what needs four is not measured, and says so
start topology=2x64M:cpus=1
before=$(cat "$MNT"/weights/node*)
placement >"$DIR/table" 2>"$DIR/why" || fail "vmalloc-placement.sh on two nodes: $?"
is "weights after it" "$(cat "$MNT"/weights/node*)" "$before"
is "automatic weights, of nothing known" "$(cat "$MNT/weights/auto")" false
holds "automatic weights" "$(cat "$DIR/why")" "weights/auto is false from now on"
is "not measured" "$(grep -c 'not measured: no nodes 0-3 here$' "$DIR/table")" 3
is "memfs" "$(awk '/^weighted-interleave 3:1/ { print $NF }' "$DIR/table" | tr '\n' ' ')" \
	"30/10 188/62 300/100 384/128 1536/512 "
stop

# --- searches of other nodes: looks a search, exactly, while no list has anything
cat >"$DIR/unequal" <<'EOF'
node 0 cpus 0 zones DMA=16M,DMA32=32M,Normal=32M
node 1 cpus 1 zones Normal=64M
node 2 cpus 2 zones Normal=64M
node 3 cpus 3 zones Normal=64M
EOF
start "topology=@$DIR/unequal"
before=$(cd "$MNT" && ls slab live && grep . tune/slab_*)
"$EXPERIMENTS/slab-search.sh" "$MNT" >"$DIR/table" || fail "slab-search.sh: $?"
cat "$DIR/table"
is "looks a search" "$(awk '$1 == "growing" { print $6 }' "$DIR/table" | tr '\n' ' ')" "1:6.00 1:3.00 1:3.00 "
is "caches and knobs after it" "$(cd "$MNT" && ls slab live && grep . tune/slab_*)" "$before"
check_engine
stop

# --- one node, no mount: refused
start topology=64M:cpus=1
! placement >/dev/null 2>"$DIR/why" || fail "ran on one node"
holds "one node" "$(cat "$DIR/why")" "no nodes 0 and 1 with memory"
stop
! placement >/dev/null 2>"$DIR/why" || fail "ran without a mount"
holds "no mount" "$(cat "$DIR/why")" "no memfs is mounted at $MNT"
