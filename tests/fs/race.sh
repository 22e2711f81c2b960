#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Two scripts that want the same names: each name is won once.
. "$(dirname "$0")/lib.sh"

start topology=2x16M:cpus=1
cd "$MNT" || fail "cannot enter the mount"
cat stats/buddyinfo >"$DIR/initial"

# compete WHO: prints the names it won
compete() {
	i=0
	while [ $i -lt 60 ]; do
		if echo "n$i count=3" 2>/dev/null >alloc/pages; then
			echo "n$i"
		fi
		i=$((i + 1))
	done
}
compete >"$DIR/first" &
first=$!
compete >"$DIR/second" &
wait $first $!
is "names won" "$(cat "$DIR/first" "$DIR/second" | sort | uniq -c | awk '$1 == 1' | wc -l | tr -d ' ')" 60
is "names there" "$(ls live | wc -l | tr -d ' ')" 60
is "pages handed out" "$(cat live/*/pages | awk '{ n += $1 } END { print n }')" 180

# The same for ending them, and for tasks.
discard() {
	i=0
	while [ $i -lt 60 ]; do
		rmdir live/n$i 2>/dev/null && echo "n$i"
		i=$((i + 1))
	done
}
discard >"$DIR/first" &
first=$!
discard >"$DIR/second" &
wait $first $!
is "names ended" "$(cat "$DIR/first" "$DIR/second" | sort | uniq -c | awk '$1 == 1' | wc -l | tr -d ' ')" 60
is "names left" "$(ls live)" ""

make_tasks() {
	i=0
	while [ $i -lt 30 ]; do
		mkdir tasks/t$i 2>/dev/null && echo "t$i"
		i=$((i + 1))
	done
}
make_tasks >"$DIR/first" &
first=$!
make_tasks >"$DIR/second" &
wait $first $!
is "tasks won" "$(cat "$DIR/first" "$DIR/second" | sort | uniq -c | awk '$1 == 1' | wc -l | tr -d ' ')" 30
rmdir tasks/t* || fail "rmdir tasks/t*"
is "tasks left" "$(ls tasks)" default
drained | cmp - "$DIR/initial" || fail "pages lost"
check_engine
cd /
stop
