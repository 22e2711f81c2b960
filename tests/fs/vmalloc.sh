#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Ranges that are contiguous for their user: allocated, shown, read, written, freed lazily and purged.
. "$(dirname "$0")/lib.sh"

# vmalloc COMMAND: must succeed
vmalloc() {
	echo "$1" >alloc/vmalloc || fail "alloc/vmalloc: $1"
}

# refused FILE COMMAND REASON
refused() {
	if echo "$2" 2>/dev/null >"$1"; then
		fail "'$2' was taken by $1"
	fi
	is "last_cmd_status of '$2'" "$(cat last_cmd_status)" "$1: $3"
}

# refused_for FILE COMMAND PART: the same for reasons with numbers of the host in them
refused_for() {
	if echo "$2" 2>/dev/null >"$1"; then
		fail "'$2' was taken by $1"
	fi
	holds "last_cmd_status of '$2'" "$(cat last_cmd_status)" "$3"
}

# level NAME: of stats/all
level() {
	sed -n "s/^$1 //p" stats/all
}

# info NAME: its line of vmallocinfo from the size on
info() {
	sed -n "s/^0x[0-9a-f]\{16\}-0x[0-9a-f]\{16\} *\([0-9]* $1+0x0.*\)/\1/p" stats/vmallocinfo
}

# The range's addresses are those its folder tells.
starts_where_it_says() {
	grep -q "^$(cat live/"$1"/address)-0x.* $1+0x0/" stats/vmallocinfo || fail "address of $1"
}

purged() {
	echo 1 >vmalloc/purge || fail "vmalloc/purge"
	drained
}

start topology=4x32M:cpus=1
cd "$MNT" || fail "cannot enter the mount"
cat stats/buddyinfo >"$DIR/initial"
cat vmalloc/free_space >"$DIR/space"
is "vmallocinfo of nothing" "$(cat stats/vmallocinfo)" ""
is "mode of vmallocinfo" "$(stat -c %a stats/vmallocinfo)" 400

# The policy is kept page by page: 400 pages at 3 to 1.
echo 3 >weights/node0
echo weighted-interleave:0-1 >tasks/default/policy
exec 3<>alloc/vmalloc
echo 'a pages=400' >&3 || fail "alloc/vmalloc"
read -r line <&3
is "reply" "$line" "a returned=400 node0=300 node1=100"
exec 3>&-
is "line of a" "$(info a)" "1642496 a+0x0/0x190000 pages=400 vmalloc N0=300 N1=100"
starts_where_it_says a
is "files of a range" "$(ls live/a | tr '\n' ' ')" \
	"address bytes data kind map order pages placement policy task "
is "kind" "$(cat live/a/kind)" vmalloc
is "order" "$(cat live/a/order)" 0
is "bytes" "$(cat live/a/bytes)" 1638400
is "size of data" "$(stat -c %s live/a/data)" 1638400
is "nr_vmalloc" "$(sed -n 's/^nr_vmalloc //p' stats/vmstat)" 400
is "nr_vmalloc of node 1" "$(sed -n 's/^nr_vmalloc //p' nodes/node1/vmstat)" 100

# Four nodes in turn, as the kernel documents it.
echo default >tasks/default/policy
vmalloc 'b size=2M policy=interleave:0-3'
is "line of b" "$(info b)" "2101248 b+0x0/0x200000 pages=512 vmalloc N0=128 N1=128 N2=128 N3=128"

# One contiguous run is used where it is, without a guard; or mapped, if that is wished.
vmalloc 'l pages=16'
is "line of l" "$(info l)" "65536 l+0x0/0x10000 pages=16 vmalloc linear N0=16"
grep -q "^$(cat live/l/address)-0x.* 65536 16 1 linear l\$" vmalloc/areas || fail "l in vmalloc/areas"
echo 0 >tune/vmalloc_linear
vmalloc 'k pages=16'
is "line of k" "$(info k)" "69632 k+0x0/0x10000 pages=16 vmalloc N0=16"
echo 1 >tune/vmalloc_linear
is "pages in use" "$(level vmalloc_used_pages)" 944
is "VmallocUsed" "$(sed -n 's/^VmallocUsed: *//p' stats/meminfo)" "3776 kB"

# An allocation of pages has no address.
echo 'p count=1' >alloc/pages || fail "alloc/pages"
[ ! -e live/p/address ] || fail "live/p/address"
is "files of pages" "$(ls live/p | tr '\n' ' ')" "bytes data kind map order pages placement policy task "
rmdir live/p

# Refusals, in words; nothing has changed after them.
cat stats/vmallocinfo >"$DIR/info"
refused alloc/vmalloc 'x' "size= or pages= is needed"
refused alloc/vmalloc 'x size=1 pages=1' "size= and pages= exclude each other"
refused alloc/vmalloc 'x size=0' "size=0: expected bytes, at least 1"
refused alloc/vmalloc 'x pages=1 align=3' "align=3: expected a power of two of bytes"
refused alloc/vmalloc 'x pages=1 order=1' '"order" is not a key of alloc/vmalloc'
refused alloc/pages 'x size=4096' '"size" is not a key of alloc/pages'
refused alloc/vmalloc 'x pages=1 node=4' "node 4 does not exist"
refused vmalloc/purge 2 '"2" is not 1'
refused tune/vmalloc_large_order some '"some" is not one of bounded, off, max'
refused tune/vmalloc_linear 2 "2 is not in 0..1"
refused tune/vmalloc_small_pages 1025 "1025 is not in 0..1024"
refused_for alloc/vmalloc 'x size=1T' "alloc/vmalloc: "
refused_for alloc/vmalloc 'a pages=1' "alloc/vmalloc: "
refused alloc/free 'a count=1' "a is a vmalloc range: it is freed as a whole"
[ ! -e live/x ] || fail "live/x is there"
cmp "$DIR/info" stats/vmallocinfo || fail "a refusal has changed vmallocinfo"

# The bound of mappings: a clear error, and linear ranges need none.
used=$(sed -n 's/^used //p' vmalloc/mappings)
is "mappings" "$(level vmalloc_mappings)" "$used"
limit=$(cat tune/vmalloc_max_mappings)
echo "$used" >tune/vmalloc_max_mappings || fail "tune/vmalloc_max_mappings"
is "vmalloc/mappings" "$(cat vmalloc/mappings)" "used $used
limit $used"
python3 - <<'END' || fail "not ENOSPC"
import errno, os
fd = os.open("alloc/vmalloc", os.O_WRONLY)
try:
    os.write(fd, b"m pages=20 policy=interleave:0-1")
except OSError as error:
    assert error.errno == errno.ENOSPC, error
else:
    raise SystemExit("taken")
END
holds "last_cmd_status" "$(cat last_cmd_status)" "alloc/vmalloc: "
vmalloc 'm pages=20'
rmdir live/m
echo "$limit" >tune/vmalloc_max_mappings

# Freed lazily: its pages and addresses wait for the purge.
echo a >alloc/free || fail "alloc/free a"
rmdir live/b || fail "rmdir live/b"
is "unpurged" "$(sed -n 's/^.* *\([0-9]\{7\}\) unpurged vm_area$/\1/p' stats/vmallocinfo | sort | tr '\n' ' ')" \
	"1642496 2101248 "
is "lines behind them" "$(tail -n 1 stats/vmallocinfo | sed 's/.* \(unpurged.*\)/\1/')" "unpurged vm_area"
[ "$(cat vmalloc/lazy_pages)" -ge 912 ] || fail "lazy_pages"
check_engine
rmdir live/l live/k || fail "rmdir live/l live/k"
lazy=$(cat vmalloc/lazy_pages)
exec 3<>vmalloc/purge
echo 1 >&3 || fail "vmalloc/purge"
read -r line <&3
is "reply of the purge" "$line" "pages=$lazy"
exec 3>&-
is "lazy pages after it" "$(cat vmalloc/lazy_pages)" 0
is "vmallocinfo after it" "$(cat stats/vmallocinfo)" ""
is "mappings after it" "$(level vmalloc_mappings)" 0
cmp "$DIR/space" vmalloc/free_space || fail "addresses lost"
drained | cmp - "$DIR/initial" || fail "pages lost"
check_engine
cd /
stop

# 64 MiB out of a node in which hardly more than 16 pages are free in one piece.
start topology=192M:cpus=1
cd "$MNT" || fail "cannot enter the mount"
cat stats/buddyinfo >"$DIR/initial"
i=0
while [ $i -lt 1100 ]; do
	echo "keep$i count=16" >alloc/pages || fail "keep$i"
	echo "gap$i count=16" >alloc/pages || fail "gap$i"
	i=$((i + 1))
done
echo 'rest count=100000 partial' >alloc/pages || fail "rest"
i=0
while [ $i -lt 1100 ]; do
	rmdir live/gap$i || fail "gap$i"
	i=$((i + 1))
done
vmalloc 'v size=64M'
is "pages of v" "$(cat live/v/placement)" "node0 16384"
runs=$(sed -n 's/^[^ ]* 67112960 16384 \([0-9]*\) mapped v$/\1/p' vmalloc/areas)
[ "${runs:-0}" -ge 500 ] || fail "v has '$runs' runs: it is not fragmented"
is "mappings of v" "$(level vmalloc_mappings)" $((runs + 1))
[ "$(wc -l <live/v/map)" -ge 500 ] || fail "map of v"
head -c 67108864 /dev/urandom >"$DIR/bytes"
dd if="$DIR/bytes" of=live/v/data bs=1M conv=notrunc 2>"$DIR/dd" || fail "dd: $(cat "$DIR/dd")"
cmp "$DIR/bytes" live/v/data || fail "data of v differs"
if dd if=/dev/zero of=live/v/data bs=4096 seek=16384 count=1 conv=notrunc 2>"$DIR/dd"; then
	fail "a write past the end succeeded"
fi
holds "the message" "$(cat "$DIR/dd")" "No space left"
check_engine
rmdir live/v live/rest || fail "rmdir"
i=0
while [ $i -lt 1100 ]; do
	rmdir live/keep$i || fail "keep$i"
	i=$((i + 1))
done
purged | cmp - "$DIR/initial" || fail "pages lost"
is "mappings at the end" "$(level vmalloc_mappings)" 0
check_engine
cd /
stop
