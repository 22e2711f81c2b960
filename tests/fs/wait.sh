#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# A command that waits holds nothing up, and ends by a free, a signal or the end of the mount.
. "$(dirname "$0")/lib.sh"

start topology=1x16M:cpus=1
cd "$MNT" || fail "cannot enter the mount"
cat stats/buddyinfo >"$DIR/initial"
NOFAIL='gfp=GFP_KERNEL|__GFP_NOFAIL'

hog() {
	echo 'hog count=100000 partial' >alloc/pages || fail "hog"
}

# wait_in_background FILE COMMAND: returns when it is surely asking
wait_in_background() {
	rm -f "$DIR/$1"
	python3 "$HELPERS/waiter.py" alloc/pages "$2" >"$DIR/$1" &
	waiter=$!
	until_true 500 grep -qs started "$DIR/$1" || fail "the writer does not start"
	sleep 0.2
	is "a writer that must wait" "$(cat "$DIR/$1")" started
}

others_answer() {
	for file in README weights/node0 stats/all stats/buddyinfo stats/zoneinfo live/hog/pages; do
		[ -n "$(cat $file)" ] || fail "$file is empty"
	done
	ls live >/dev/null && stat -f . >/dev/null || fail "ls or statfs"
	echo 5 >weights/node0 || fail "weights/node0"
	echo interleave:0 >tasks/default/policy || fail "policy of the task that waits"
	check_engine
}

# Interrupted: everything is undone.
hog
wait_in_background out "w count=300 $NOFAIL"
others_answer
[ ! -e live/w ] || fail "a name that waits can be seen"
kill -INT $waiter
wait $waiter
holds "the writer" "$(cat "$DIR/out")" EINTR
holds "its reason" "$(cat "$DIR/out")" "alloc/pages: "
[ ! -e live/w ] || fail "the name stays"
rmdir live/hog || fail "rmdir live/hog"
drained | cmp - "$DIR/initial" || fail "an interrupted command lost pages"

# The same file answers others meanwhile, and keeps its inode number.
hog
number=$(stat -c %i alloc/pages)
wait_in_background out "w count=300 $NOFAIL"
is "a taken name" "$(timeout 20 python3 "$HELPERS/waiter.py" alloc/pages hog | tail -n 1)" \
	"EEXIST alloc/pages: hog exists"
is "a name that waits" "$(timeout 20 python3 "$HELPERS/waiter.py" alloc/pages w | tail -n 1)" \
	"EEXIST alloc/pages: w exists"
is "order 11" "$(timeout 20 python3 "$HELPERS/waiter.py" alloc/pages 'x order=11' | tail -n 1 | cut -d ' ' -f 1)" EINVAL
is "the inode number" "$(stat -c %i alloc/pages)" "$number"
kill -INT $waiter
wait $waiter
rmdir live/hog || fail "rmdir live/hog"
drained | cmp - "$DIR/initial" || fail "pages lost"

# Those of an interleaving task queue behind it: more than there are workers, and each can be killed.
echo interleave:0 >tasks/default/policy || fail "policy"
hog
wait_in_background out "w count=300 $NOFAIL"
queued=
for i in 1 2 3 4; do
	python3 "$HELPERS/waiter.py" alloc/pages "q$i" >"$DIR/out$i" &
	last=$!
	[ "$i" = 4 ] || queued="$queued $last"
	until_true 500 grep -qs started "$DIR/out$i" || fail "a writer does not start"
done
sleep 0.2
others_answer
kill -9 $last
wait $last 2>/dev/null
rmdir live/hog || fail "rmdir live/hog"
# shellcheck disable=SC2086 # a list of process numbers
wait $waiter $queued
is "the writer" "$(tail -n 1 "$DIR/out")" "ok w returned=300 node0=300"
for i in 1 2 3; do
	is "queued writer $i" "$(tail -n 1 "$DIR/out$i")" "ok q$i returned=1 node0=1"
	rmdir "live/q$i" || fail "rmdir live/q$i"
done
[ ! -e live/q4 ] || fail "a killed writer allocated"
rmdir live/w || fail "rmdir live/w"
echo default >tasks/default/policy || fail "policy"
drained | cmp - "$DIR/initial" || fail "pages lost"

# Killed: likewise.
hog
wait_in_background out "w count=300 $NOFAIL"
kill -9 $waiter
wait $waiter 2>/dev/null
rmdir live/hog || fail "rmdir live/hog"
[ ! -e live/w ] || fail "the name of a killed writer stays"
drained | cmp - "$DIR/initial" || fail "a killed writer lost pages"

# A free lets it succeed.
hog
wait_in_background out "w count=300 $NOFAIL"
rmdir live/hog || fail "rmdir live/hog"
wait $waiter
is "the writer" "$(tail -n 1 "$DIR/out")" "ok w returned=300 node0=300"
is "its pages" "$(cat live/w/pages)" 300
rmdir live/w
drained | cmp - "$DIR/initial" || fail "pages lost"

# Several wait at once, more than there are workers; each gets its own.
hog
for i in 1 2 3 4 5 6 7 8; do
	python3 "$HELPERS/waiter.py" alloc/pages "w$i count=200 $NOFAIL" >"$DIR/out$i" &
	eval "waiter$i=\$!"
done
for i in 1 2 3 4 5 6 7 8; do
	until_true 500 grep -qs started "$DIR/out$i" || fail "a writer does not start"
done
others_answer
rmdir live/hog || fail "rmdir live/hog"
for i in 1 2 3 4 5 6 7 8; do
	eval "wait \$waiter$i"
	is "writer $i" "$(tail -n 1 "$DIR/out$i")" "ok w$i returned=200 node0=200"
	rmdir "live/w$i" || fail "rmdir live/w$i"
done
drained | cmp - "$DIR/initial" || fail "pages lost"

# The end of the mount ends the wait.
hog
wait_in_background out "w count=300 $NOFAIL"
cd /
kill $DAEMON
await_end
wait $waiter
holds "the writer" "$(cat "$DIR/out")" EINTR
