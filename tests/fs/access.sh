#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Who may do what: root writes, all read; uid=, gid= and mode= change that.
. "$(dirname "$0")/lib.sh"

chmod 755 "$DIR"
nobody=$(id -u nobody) || skip "there is no user nobody"

# as UID GID COMMAND
as() {
	uid=$1 gid=$2
	shift 2
	setpriv --reuid "$uid" --regid "$gid" --clear-groups sh -c "$*"
}

refuses() {
	if as "$@" 2>"$DIR/err"; then
		fail "as $1:$2: $3 succeeded"
	fi
	holds "as $1:$2: $3" "$(cat "$DIR/err")" "ermission denied"
}

start topology=2x16M:cpus=1
echo 'x count=1' >"$MNT/alloc/pages" || fail "alloc/pages"
is "nobody reads" "$(as "$nobody" 65534 "cat $MNT/weights/node0")" 1
as "$nobody" 65534 "ls -lR $MNT" >/dev/null || fail "nobody lists"
as "$nobody" 65534 "cat $MNT/stats/all $MNT/live/x/map $MNT/README" >/dev/null || fail "nobody reads"
refuses "$nobody" 65534 "echo 3 >$MNT/weights/node0"
refuses "$nobody" 65534 "echo y >$MNT/alloc/pages"
refuses "$nobody" 65534 "mkdir $MNT/tasks/t"
refuses "$nobody" 65534 "rmdir $MNT/live/x"
refuses "$nobody" 65534 "echo 1 >$MNT/live/x/data"
is "the weight" "$(cat "$MNT/weights/node0")" 1
stop

start "topology=2x16M:cpus=1,uid=$nobody,gid=12345,mode=0770"
is "owner" "$(stat -c %u:%g "$MNT/weights/node0")" "$nobody:12345"
is "mode" "$(stat -c %a "$MNT/weights/node0")" 660
is "mode of a command" "$(stat -c %a "$MNT/stats/all")" 440
as "$nobody" 65534 "echo 3 >$MNT/weights/node0" || fail "the owner writes"
as 54321 12345 "echo 4 >$MNT/weights/node0" || fail "the group writes"
as 54321 12345 "mkdir $MNT/tasks/t && rmdir $MNT/tasks/t" || fail "the group makes a task"
refuses 54321 54321 "cat $MNT/weights/node0"
is "the weight" "$(cat "$MNT/weights/node0")" 4
stop
