#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Caches and their objects: made, filled, counted, shrunk, ended; the search of other nodes' slabs.
. "$(dirname "$0")/lib.sh"

# refused FILE COMMAND REASON
refused() {
	if echo "$2" 2>/dev/null >"$1"; then
		fail "'$2' was taken by $1"
	fi
	is "last_cmd_status of '$2'" "$(cat last_cmd_status)" "$1: $3"
}

# not_removed NAME ERROR: rmdir fails with this word of strerror
not_removed() {
	if rmdir "slab/$1" 2>"$DIR/rmdir"; then
		fail "slab/$1 was removed"
	fi
	holds "rmdir slab/$1" "$(cat "$DIR/rmdir")" "$2"
}

# create COMMAND: prints the reply
create() {
	exec 3<>slab/create
	echo "$1" >&3 || fail "slab/create: $1"
	read -r line <&3
	exec 3>&-
	echo "$line"
}

# allocate COMMAND: prints the reply
allocate() {
	exec 3<>alloc/slab
	echo "$1" >&3 || fail "alloc/slab: $1"
	read -r line <&3
	exec 3>&-
	echo "$line"
}

# level NAME: of stats/all
level() {
	sed -n "s/^$1 //p" stats/all
}

# info CACHE COLUMN: of its line of slabinfo
info() {
	awk -v cache="$1" -v column="$2" '$1 == cache { print $column }' stats/slabinfo
}

shrink_all() {
	for cache in slab/*/; do
		echo 1 >"${cache}shrink" || fail "${cache}shrink"
	done
}

start topology=4x64M:cpus=1
cd "$MNT" || fail "cannot enter the mount"
cat stats/buddyinfo >"$DIR/initial"
is "caches at the start" "$(ls slab | tr '\n' ' ')" "create kmalloc-128 kmalloc-16 kmalloc-192 kmalloc-1k kmalloc-256 \
kmalloc-2k kmalloc-32 kmalloc-4k kmalloc-512 kmalloc-64 kmalloc-8 kmalloc-8k kmalloc-96 "
is "head of slabinfo" "$(head -n 1 stats/slabinfo)" "slabinfo - version: 2.1"
is "mode of slabinfo" "$(stat -c %a stats/slabinfo)" 400
is "lines of slabinfo" "$(wc -l <stats/slabinfo)" 15
is "modes" "$(stat -c '%a' slab slab/create slab/kmalloc-64 slab/kmalloc-64/objects slab/kmalloc-64/min_partial \
	slab/kmalloc-64/shrink slab/kmalloc-64/alloc_slab slab/kmalloc-64/alloc_traces | tr '\n' ' ')" \
	"755 600 555 400 600 600 600 400 "

# Made, and shared with one of the same shape.
is "reply of slab/create" "$(create 'frame size=64 flags=no_merge')" "frame size=64 align=8 order=0 objects=64"
is "folders" "$(ls -d slab/frame)" slab/frame
create 'host size=64' >/dev/null
is "reply of a shared one" "$(create 'alias size=60')" "alias size=64 align=8 order=0 objects=64 alias of host"
is "aliases" "$(cat slab/host/aliases)" 1
echo 7 >slab/alias/min_partial || fail "slab/alias/min_partial"
is "min_partial of the shared cache" "$(cat slab/host/min_partial)" 7
[ "$(stat -c %i slab/alias/order)" != "$(stat -c %i slab/host/order)" ] || fail "one inode number, two folders"
rmdir slab/alias || fail "rmdir slab/alias"
is "aliases after it" "$(cat slab/host/aliases)" 0
[ ! -e slab/alias ] || fail "slab/alias is there"
rmdir slab/host || fail "rmdir slab/host"

# 100000 objects: 1563 slabs of a page.
is "reply of alloc/slab" "$(allocate 'many cache=frame count=100000')" "many returned=100000 node0=100000"
is "kind" "$(cat live/many/kind)" slab
is "cache" "$(cat live/many/cache)" frame
is "files of objects" "$(ls live/many | tr '\n' ' ')" "bytes cache data kind map order pages placement policy task "
is "bytes" "$(cat live/many/bytes)" 6400000
is "size of data" "$(stat -c %s live/many/data)" 6400000
slabs=$(cat slab/frame/slabs)
is "slabs by node" "$slabs" "${slabs%% *} N0=${slabs%% *}"
slabs=${slabs%% *}
[ "$slabs" -ge 1563 ] && [ "$slabs" -le 1600 ] || fail "$slabs slabs"
is "total_objects" "$(cat slab/frame/total_objects)" "$((slabs * 64)) N0=$((slabs * 64))"
objects=$(sed 's/ .*//' slab/frame/objects)
[ "$objects" -ge 100000 ] && [ "$objects" -le $((slabs * 64)) ] || fail "$objects objects"
is "active_objs" "$(info frame 2)" "$objects"
is "num_objs" "$(info frame 3)" $((slabs * 64))
is "num_slabs" "$(info frame 15)" "$slabs"
is "slabs made" "$(cat slab/frame/alloc_slab)" "$slabs C0=$slabs"
is "slab_pages" "$(level slab_pages)" "$slabs"
is "SUnreclaim" "$(sed -n 's/^SUnreclaim: *//p' stats/meminfo)" "$((slabs * 4)) kB"
is "nr_slab_unreclaimable" "$(sed -n 's/^nr_slab_unreclaimable //p' nodes/node0/vmstat)" "$slabs"
head -c 6400000 /dev/urandom >"$DIR/bytes"
dd if="$DIR/bytes" of=live/many/data bs=1M conv=notrunc 2>"$DIR/dd" || fail "dd: $(cat "$DIR/dd")"
cmp "$DIR/bytes" live/many/data || fail "data differs"
check_engine

# In use: it cannot be ended; and what a cache refuses.
not_removed frame busy
holds "last_cmd_status" "$(cat last_cmd_status)" "slab/frame: frame "
not_removed kmalloc-64 busy
not_removed nobody "No such file"
if mkdir slab/new 2>/dev/null; then
	fail "mkdir slab/new"
fi
is "last_cmd_status of mkdir" "$(cat last_cmd_status)" "slab/new: folders are made in tasks/ only"
refused slab/create 'frame size=64' "frame exists"
refused slab/create 'create size=64' "create is a file of slab/"
refused slab/create 'x' "size= is needed"
refused slab/create 'x size=64 flags=panic' '"panic" is not a flag'
refused slab/create 'x size=64 size=64' "size twice"
refused slab/create 'x size=5M' "size 5242880 does not fit into the largest slab"
refused alloc/slab 'x' "cache= or size= is needed"
refused alloc/slab 'x cache=frame size=64' "cache= and size= exclude each other"
refused alloc/slab 'x cache=nobody' "no cache nobody"
refused alloc/slab 'x size=64 node=4' "node 4 does not exist"
refused alloc/slab 'x size=64 order=1' '"order" is not a key of alloc/slab'
refused alloc/free 'many count=100001' "many has 100000 objects, fewer than 100001"
refused slab/frame/shrink 2 '"2" is not 1'
refused slab/frame/validate 1 "the cache has no debugging"
refused slab/frame/remote_node_defrag_ratio 101 "101 is not in 0..100"
refused slab/frame/sheaf_capacity 255 "255 is not in 0..254"
refused slab/frame/alloc_slab 1 '"1" does not begin with 0: it is only cleared'
refused tune/slab_skip some '"some" is not one of visited, last, none'
refused tune/slab_sheaves 2 "2 is not in 0..1"
refused tune/max_caches 0 "0 is not in 1..65535"
python3 - <<'END' || fail "wrong errno"
import errno, os
for path, text, wanted in (
    ("slab/frame/remote_node_defrag_ratio", b"101", errno.ERANGE),
    ("slab/frame/remote_node_defrag_ratio", b"abc", errno.EINVAL),
    ("slab/create", b"frame size=64", errno.EEXIST),
    ("alloc/slab", b"x cache=nobody", errno.ENOENT),
):
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text)
    except OSError as error:
        assert error.errno == wanted, (path, error)
    else:
        raise SystemExit(path + " was taken")
    os.close(fd)
END
[ ! -e live/x ] || fail "live/x is there"

# The last ones, then all: what stays behind goes with shrink.
echo 'many count=99999' >alloc/free || fail "alloc/free"
is "bytes of one" "$(cat live/many/bytes)" 64
not_removed frame busy
rmdir live/many || fail "rmdir live/many"
echo 0 >slab/frame/alloc_slab || fail "slab/frame/alloc_slab"
is "cleared" "$(cat slab/frame/alloc_slab)" 0
echo 1 >slab/frame/shrink || fail "slab/frame/shrink"
is "slabs after shrink" "$(cat slab/frame/slabs)" 0
is "objects after shrink" "$(cat slab/frame/total_objects)" 0
is "slabinfo after shrink" "$(info frame 3)" 0

# By size, on a node, without sheaves.
is "kmalloc" "$(allocate 'k size=100 count=1000 node=2')" "k returned=1000 node2=1000"
is "cache of k" "$(cat live/k/cache)" kmalloc-128
is "large" "$(allocate 'large size=20000 count=3')" "large returned=3 node0=3"
is "cache of large" "$(cat live/large/cache)" -
is "some again" "$(allocate 'many cache=frame count=5000')" "many returned=5000 node0=5000"
rmdir live/many || fail "rmdir live/many"
[ "$(cat slab/frame/slabs)" != 0 ] || fail "sheaves kept nothing"
echo 0 >tune/slab_sheaves || fail "tune/slab_sheaves"
is "slabs without sheaves" "$(cat slab/frame/slabs)" 0
is "layers alone" "$(allocate 'l cache=frame count=640')" "l returned=640 node0=640"
is "slabs of l" "$(cat slab/frame/slabs)" "10 N0=10"
rmdir live/k live/large live/l || fail "rmdir live/k live/large live/l"
check_engine
shrink_all
rmdir slab/frame || fail "rmdir slab/frame"
[ ! -e slab/frame ] || fail "slab/frame is there"
is "slab_caches" "$(level slab_caches)" 13
is "slab_pages at the end" "$(level slab_pages)" 0
drained | cmp - "$DIR/initial" || fail "pages lost"
check_engine

# The bound of names.
echo 14 >tune/max_caches || fail "tune/max_caches"
create 'a size=700' >/dev/null
refused slab/create 'b size=700' "there are as many caches as tune/max_caches allows"
rmdir slab/a || fail "rmdir slab/a"
cd /
stop

# Each node once in a search: 3 looks for a CPU of node 0; 6 without that, three of them at node 0's own zones.
cat >"$DIR/machine" <<END
node 0 cpus 0 zones DMA=16M,DMA32=32M,Normal=64M
node 1 cpus 1 zones Normal=64M
node 2 cpus 2 zones Normal=64M
node 3 cpus 3 zones Normal=64M
END
start "topology=@$DIR/machine,tune/slab_sheaves=0"
cd "$MNT" || fail "cannot enter the mount"
cat stats/buddyinfo >"$DIR/initial"

# probes SKIP POLICY PER_SEARCH
probes() {
	echo "$1" >tune/slab_skip || fail "tune/slab_skip"
	echo "$2" >tasks/default/policy || fail "policy"
	create 'p size=256 flags=no_merge' >/dev/null
	allocate 'x cache=p count=3200' >/dev/null
	searches=$(cat stats/counters/partial_search)
	[ "$searches" -ge 100 ] || fail "$searches searches"
	is "looks with $1, $2" "$(cat stats/counters/partial_probe)" $((searches * $3))
	is "the same in stats/all" "$(level partial_probe)" $((searches * $3))
	is "the same of the cache" "$(sed 's/ .*//' slab/p/partial_probe)" $((searches * $3))
	is "saved with $1, $2" "$(level partial_probe_skipped)" $((searches * (6 - $3)))
	is "found with $1, $2" "$(level partial_remote_hit)" 0
	rmdir live/x slab/p || fail "rmdir live/x slab/p"
}
probes visited default 3
probes none default 6
probes visited prefer:2 3
probes last prefer:2 4
probes none prefer:2 6
shrink_all
drained | cmp - "$DIR/initial" || fail "pages lost"
check_engine
cd /
stop
