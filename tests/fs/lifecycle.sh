#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Start and end: signals, crashes, a second mount, the command line.
. "$(dirname "$0")/lib.sh"

TOPOLOGY=topology=2x16M:cpus=1

# --- the command line
"$MEMFS" --help >"$DIR/out" || fail "--help"
holds "--help" "$(cat "$DIR/out")" "Usage: memfs"
"$MEMFS" --version >"$DIR/out" || fail "--version"
holds "--version" "$(cat "$DIR/out")" "memfs "

# refused STATUS TEXT ARGUMENTS...: one line on stderr, and nothing mounted
refused() {
	wanted=$1 text=$2
	shift 2
	"$MEMFS" "$@" >/dev/null 2>"$DIR/err"
	is "exit status of memfs $*" $? "$wanted"
	is "lines on stderr of memfs $*" "$(wc -l <"$DIR/err" | tr -d ' ')" 1
	holds "message of memfs $*" "$(cat "$DIR/err")" "$text"
	! mounted || fail "memfs $* has mounted"
}
refused 2 "no mount point"
refused 2 "unknown option" --colour "$MNT"
refused 2 "unknown option" -x "$MNT"
refused 2 "a value is missing" "$MNT" -o
refused 2 "unknown option colour" -o colour "$MNT"
refused 2 "mode=9" -o mode=9 "$MNT"
refused 2 "uid=me" -o uid=me "$MNT"
refused 2 "too many arguments" a b "$MNT"
refused 1 "No such file" "$DIR/nothing"
refused 1 "Not a directory" "$LOG"
refused 1 huge -o topology=huge "$MNT"
refused 1 huge -f -o topology=huge "$MNT"
refused 1 "weights/node0" -o "$TOPOLOGY,weights/node0=0" "$MNT"
refused 1 "nothing/here" -o "$TOPOLOGY,nothing/here=1" "$MNT"

# --- signals, without and with open files
for signal in TERM INT HUP; do
	start $TOPOLOGY
	kill -$signal $DAEMON
	await_end
	! mounted || fail "still mounted after SIG$signal"
	start $TOPOLOGY
	exec 3<>"$MNT/weights/node0" 4<"$MNT/stats/all"
	echo 3 >&3 || fail "weights/node0"
	kill -$signal $DAEMON
	await_end
	! mounted || fail "still mounted after SIG$signal with open files"
	exec 3>&- 4<&-
done

# --- options reach the tree
start "rw,defaults,nosuid,x-systemd.automount,$TOPOLOGY,weights/node0=3,tune/tick_ms=0"
is "weight by option" "$(cat "$MNT/weights/node0")" 3
is "tick by option" "$(cat "$MNT/tune/tick_ms")" 0
holds "mount options" "$(grep " $MNT " /proc/self/mountinfo)" "rw,nosuid,nodev,noexec"

# --- a second mount on the same point
refused_second() {
	"$MEMFS" "$@" "$MNT" 2>"$DIR/err"
	is "exit status of a second mount" $? 1
	holds "message" "$(cat "$DIR/err")" "already mounted"
}
refused_second
refused_second -f
is "the first mount" "$(cat "$MNT/weights/node0")" 3

# --- a crash leaves a dead mount, the next start heals it
echo 'x count=5' >"$MNT/alloc/pages"
kill -9 $DAEMON
wait $DAEMON 2>/dev/null
DAEMON=
mounted || fail "the dead mount has gone by itself"
if cat "$MNT/version" >/dev/null 2>&1; then
	fail "the mount is not dead"
fi
start $TOPOLOGY
is "names in a new mount" "$(ls "$MNT/live")" ""
is "mounts" "$(grep -c " $MNT " /proc/self/mountinfo)" 1
stop

# --- in the background: ready when the command returns
daemons() {
	cat /proc/[0-9]*/stat 2>/dev/null | awk -v name="($(basename "$MEMFS" | cut -c 1-15))" \
		'$2 == name && $4 == 1 || $2 == name && $6 == $1 { print $1 }' | while read -r pid; do
		tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q "$MNT" && echo "$pid"
	done
}
no_daemon() {
	[ -z "$(daemons)" ]
}

for source in "" none; do
	"$MEMFS" $source "$MNT" -o rw,$TOPOLOGY,noauto,user,nofail,_netdev >"$DIR/out" 2>&1 || fail "memfs $source"
	is "what a daemon prints" "$(cat "$DIR/out")" ""
	is "a weight at once" "$(cat "$MNT/weights/node0")" 1
	cd "$MNT" && cd / || fail "cannot enter"
	umount "$MNT" || fail umount
	! mounted || fail "still mounted"
	until_true 500 no_daemon || fail "the daemon does not end after umount"
done
"$MEMFS" "$MNT" -o $TOPOLOGY || fail "again in the background"
daemon=$(daemons)
[ -n "$daemon" ] || fail "no daemon found"
kill "$daemon"
until_true 500 is_gone "$daemon" || fail "the daemon does not end"
! mounted || fail "still mounted after SIGTERM to the daemon"

# --- as mount(8) calls it
if command -v mount.fuse3 >/dev/null; then
	mkdir "$DIR/bin"
	printf '#!/bin/sh\nexec "%s" "$@"\n' "$MEMFS" >"$DIR/bin/memfs"
	chmod +x "$DIR/bin/memfs"
	PATH=$DIR/bin:$PATH mount.fuse3 "$DIR/bin/memfs#none" "$MNT" -o $TOPOLOGY,rw,dev,suid || fail "mount.fuse3"
	is "a weight" "$(cat "$MNT/weights/node0")" 1
	holds "mount options" "$(grep " $MNT " /proc/self/mountinfo)" "nosuid,nodev,noexec"
	umount "$MNT" || fail umount
fi

# --- read-only
start ro,$TOPOLOGY
if echo 3 2>/dev/null >"$MNT/weights/node0"; then
	fail "a read-only mount was written"
fi
stop
