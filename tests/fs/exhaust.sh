#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# No memory left: echo fails, nothing is lost, the system goes on.
. "$(dirname "$0")/lib.sh"

start topology=2x16M:cpus=1
cd "$MNT" || fail "cannot enter the mount"
cat stats/buddyinfo >"$DIR/initial"

fails() {
	if echo "$1" 2>/dev/null >alloc/pages; then
		fail "'$1' succeeded"
	fi
	holds "reason" "$(cat last_cmd_status)" "alloc/pages: "
	[ ! -e live/big ] || fail "'$1' left a name"
	drained | cmp - "$DIR/initial" || fail "'$1' left pages behind"
}

fails 'big count=100000'
fails 'big count=5000 order=1'
fails 'big count=10 order=10'
fails 'big count=5000 node=0 gfp=GFP_KERNEL|__GFP_THISNODE'
fails 'big count=5000 policy=bind:1'
fails 'big count=9000 via=single'

# Fill it in four ways, free in another order.
for round in 1 2 3; do
	echo interleave:0-1 >tasks/default/policy
	echo 'a count=3000' >alloc/pages || fail "a"
	echo 'b count=300 order=2' >alloc/pages || fail "b"
	echo 'c count=100000 order=3 partial' >alloc/pages || fail "c"
	echo 'd count=100000 partial' >alloc/pages || fail "d"
	if echo 'e count=2000' 2>/dev/null >alloc/pages; then
		fail "there were pages left"
	fi
	[ ! -e live/e ] || fail "e is there"
	check_engine
	for name in b d a c; do
		rmdir live/$name || fail "rmdir live/$name"
	done
	drained | cmp - "$DIR/initial" || fail "round $round lost pages"
done

# In pieces from the end.
echo 'f count=1000' >alloc/pages || fail "f"
echo 'f count=999' >alloc/free || fail "free in pieces"
is "pages left" "$(cat live/f/pages)" 1
echo f >alloc/free || fail "free the rest"
[ ! -e live/f ] || fail "f is there"
drained | cmp - "$DIR/initial" || fail "pages lost"
check_engine
cd /
stop
