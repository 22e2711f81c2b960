#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# The main job: weights with echo, placed allocations, exact counts.
. "$(dirname "$0")/lib.sh"

start topology=2x64M:cpus=2
cd "$MNT" || fail "cannot enter the mount"

is "weight at the start" "$(cat weights/node0)" 1
echo 3 >weights/node0 || fail "weights/node0"
is "weight as written" "$(cat weights/node0)" 3
is "the other weight" "$(cat weights/node1)" 1
is "last_cmd_status" "$(cat last_cmd_status)" ok
echo weighted-interleave:0-1 >tasks/default/policy || fail "policy"
is policy "$(cat tasks/default/policy)" "weighted interleave:0-1"
echo 'db count=1024' >alloc/pages || fail "alloc/pages"
is placement "$(cat live/db/placement)" "node0 768
node1 256"
is pages "$(cat live/db/pages)" 1024
is bytes "$(cat live/db/bytes)" 4194304
is "size of data" "$(stat -c %s live/db/data)" 4194304
is "pages of the map" "$(awk '{ n += $3 } END { print n }' live/db/map)" 1024
is "names in live" "$(ls live)" db
check_engine

# A refused write changes nothing and says why.
if echo 0 2>/dev/null >weights/node0; then
	fail "weight 0 was taken"
fi
is "weight after a refusal" "$(cat weights/node0)" 3
is "reason of the refusal" "$(cat last_cmd_status)" "weights/node0: 0 is not in 1..255"

# What is printed can be written back.
for file in weights/node0 weights/auto tasks/default/policy tasks/default/mems_allowed; do
	value=$(cat $file)
	echo "$value" >$file || fail "$file refuses its own output"
	is "$file" "$(cat $file)" "$value"
done

# 10 and 7, a fresh task: 3 single pages, 14 in bulk, 1 single.
echo 10 >weights/node0
echo 7 >weights/node1
mkdir tasks/t || fail "mkdir tasks/t"
echo 'weighted interleave:0-1' >tasks/t/policy
for i in 1 2 3; do
	echo "s$i count=1 via=single task=t" >alloc/pages || fail "single page"
	is "single page $i" "$(cat live/s$i/placement)" "node0 1"
done
echo 'bulk count=14 task=t' >alloc/pages || fail bulk
is "bulk of 14" "$(cat live/bulk/placement)" "node0 7
node1 7"
echo 'after count=1 via=single task=t' >alloc/pages || fail "single page"
is "single page after the bulk" "$(cat live/after/placement)" "node0 1"

# A task with live allocations is busy; freed, it goes.
if rmdir tasks/t 2>/dev/null; then
	fail "a task with live allocations was removed"
fi
rmdir live/s1 live/s2 live/s3 live/bulk || fail "rmdir live/..."
echo after >alloc/free || fail "alloc/free"
rmdir tasks/t || fail "rmdir tasks/t"

# Any split of 1000 pages with weights 8 and 2 is 800 and 200.
echo 8 >weights/node0
echo 2 >weights/node1
for parts in "1000" "1 999" "333 333 334" "7 93 500 400"; do
	echo 'weighted interleave:0-1' >tasks/default/policy
	for n in $parts; do
		echo "- count=$n" >alloc/pages || fail "count=$n"
	done
	is "nodes of $parts" "$(cat live/*/placement | awk -v db=1024 \
		'{ n[$1] += $2 } END { print n["node0"] - 768, n["node1"] - 256 }')" "800 200"
	for name in live/*; do
		[ "$name" = live/db ] || rmdir "$name" || fail "rmdir $name"
	done
done
rmdir live/db
is "names in live" "$(ls live)" ""
check_engine
cd /
stop
