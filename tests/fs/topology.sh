#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Machines of other shapes: four nodes, sparse numbers, no CPUs, 64 nodes, 1 TiB.
. "$(dirname "$0")/lib.sh"

# --- four nodes: 100 single-page bulks are 25 on each
start topology=4x16M:cpus=1
echo interleave:0-3 >"$MNT/tasks/default/policy"
i=0
while [ $i -lt 100 ]; do
	echo "p$i count=1 via=bulk" >"$MNT/alloc/pages" || fail "bulk of 1"
	i=$((i + 1))
done
is "100 bulks of 1" "$(cat "$MNT"/live/*/placement | sort | uniq -c | awk '{ printf "%s:%s ", $2, $1 }')" \
	"node0:25 node1:25 node2:25 node3:25 "
stop

# --- sparse ids, a node without CPUs, one without memory, three zones
cat >"$DIR/machine" <<END
node 1 cpus 0,2 zones DMA=16M,DMA32=112M,Normal=128M bandwidth 100000
node 4 cpus - zones Normal=64M bandwidth 20000
node 9 cpus 1 zones -
distance 1 10 17 20
distance 4 17 10 28
distance 9 20 28 10
END
start "topology=@$DIR/machine"
is online "$(cat "$MNT/nodes/online")" 1,4,9
is has_cpu "$(cat "$MNT/nodes/has_cpu")" 1,9
is has_memory "$(cat "$MNT/nodes/has_memory")" 1,4
is "cpulist of node 1" "$(cat "$MNT/nodes/node1/cpulist")" 0,2
is "distance of node 4" "$(cat "$MNT/nodes/node4/distance")" "17 10 28"
is "weights" "$(ls "$MNT/weights" | tr '\n' ' ')" "auto node1 node4 "
is "zones of node 1" "$(cd "$MNT/nodes/node1" && ls -d [A-Z]* | tr '\n' ' ')" "DMA DMA32 Normal "
echo true >"$MNT/weights/auto" || fail "weights/auto"
is "auto weights" "$(cat "$MNT/weights/node1" "$MNT/weights/node4" | tr '\n' ' ')" "26 5 "
echo 'weighted interleave:1,4' >"$MNT/tasks/default/policy" || fail policy
is policy "$(cat "$MNT/tasks/default/policy")" "weighted interleave:1,4"
echo 'a count=310' >"$MNT/alloc/pages" || fail "alloc/pages"
is placement "$(cat "$MNT/live/a/placement" | tr '\n' ' ')" "node1 260 node4 50 "
mkdir "$MNT/tasks/far"
echo 1 >"$MNT/tasks/far/cpu" || fail "cpu of a node without memory"
echo 'b count=10 task=far' >"$MNT/alloc/pages" || fail "alloc/pages"
is "the nearest node with memory" "$(cat "$MNT/live/b/placement")" "node1 10"
check_engine
stop

# --- 64 nodes
start topology=64x16M:cpus=2
is "nodes" "$(cat "$MNT/nodes/online")" 0-63
echo interleave:0-63 >"$MNT/tasks/default/policy" || fail policy
echo 'a count=640' >"$MNT/alloc/pages" || fail "alloc/pages"
is "pages a node" "$(cut -d ' ' -f 2 "$MNT/live/a/placement" | sort -u)" 10
is "lines of buddyinfo" "$(wc -l <"$MNT/stats/buddyinfo" | tr -d ' ')" 64
check_engine
stop

# --- 1 TiB: little is resident until it is used, and 1 GiB of it works
resident_kib() {
	awk '/^VmRSS:/ { print $2 }' "/proc/$DAEMON/status"
}
limit=65536
! grep -q -a __asan_init "$MEMFS" || limit=1000000 # shadow memory counts too
start topology=8x128G:cpus=4
rss=$(resident_kib)
echo "resident after the mount of 1 TiB: $rss KiB"
[ "$rss" -lt $limit ] || fail "more than 64 MiB resident"
grep -E '^(MemTotal|MemFree)' "$MNT/stats/meminfo"
echo 'weighted-interleave:0-7' >"$MNT/tasks/default/policy" || fail policy
echo 'g count=262144' >"$MNT/alloc/pages" || fail "1 GiB"
is "pages a node" "$(cut -d ' ' -f 2 "$MNT/live/g/placement" | sort -u)" 32768
is "size of data" "$(stat -c %s "$MNT/live/g/data")" 1073741824
echo hello | dd of="$MNT/live/g/data" bs=4096 seek=262143 conv=notrunc 2>/dev/null || fail "the last page"
is "the last page" "$(dd if="$MNT/live/g/data" bs=4096 skip=262143 2>/dev/null | head -c 5)" hello
rmdir "$MNT/live/g" || fail "rmdir"
stop
