# SPDX-License-Identifier: LGPL-2.1-or-later
# What every script of this folder starts with:  . "$(dirname "$0")/lib.sh"
#
# A script gets a folder of its own, mounts there (start), and whatever happens
# is unmounted and removed when it ends.  Exit 0 is a pass, 77 a skip, anything
# else a failure; the daemon's log is scanned at each stop.
#
# Environment: MEMFS, the program; the shell is the one that runs the script.

set -u

HELPERS=$(cd "$(dirname "$0")" && pwd)/helpers
MEMFS=${MEMFS:-memfs}
SUSPICIOUS='error|sanitizer|assert|leak|abort|violation|segmentation|broke|writing device'

skip() {
	echo "skipped: $*"
	exit 77
}

[ -c /dev/fuse ] || skip "there is no /dev/fuse"
[ "$(id -u)" = 0 ] || skip "mounting for all users needs root"

DIR=$(mktemp -d "${TMPDIR:-/tmp}/memfs-test.XXXXXX") || exit 1
MNT=$DIR/mnt
LOG=$DIR/log
DAEMON=
mkdir "$MNT"
: >"$LOG"

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

# is WHAT GOT WANTED
is() {
	[ "$2" = "$3" ] || fail "$1: got '$2', wanted '$3'"
}

# holds WHAT TEXT PART
holds() {
	case $2 in
	*"$3"*) ;;
	*) fail "$1: '$2' does not hold '$3'" ;;
	esac
}

mounted() {
	grep -q " $MNT .* - fuse.memfs " /proc/self/mountinfo
}

# until_true TRIES COMMAND...: every 20 ms; for what must happen, however slow the machine is
until_true() {
	tries=$1
	shift
	while ! "$@"; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || return 1
		sleep 0.02
	done
}

# serves: names and attributes of a dead mount may still be cached, contents are not
serves() {
	mounted && cat "$MNT/version" >/dev/null 2>&1
}

is_up() {
	serves || is_gone "$DAEMON"
}

# A child that has ended is there until it is waited for.
is_gone() {
	! kill -0 "$1" 2>/dev/null || grep -qs '^[0-9]* (.*) Z ' "/proc/$1/stat"
}

# start [OPTIONS]: mounts in the foreground, as a background job of the script
start() {
	"$MEMFS" -f ${1:+-o "$1"} "$MNT" 2>>"$LOG" &
	DAEMON=$!
	until_true 1000 is_up || fail "not mounted after 20 s"
	serves || fail "memfs ended at once: $(cat "$LOG")"
}

scan_log() {
	! grep -E -i "$SUSPICIOUS" "$LOG" || fail "the daemon's log, above"
}

# The exit status of the daemon, which must end by itself now.
await_end() {
	wait "$DAEMON"
	is "exit status of memfs" $? 0
	DAEMON=
	scan_log
}

unmount() {
	umount "$MNT" 2>/dev/null || fusermount3 -u "$MNT"
}

stop() {
	unmount || fail "cannot be unmounted"
	await_end
}

cleanup() {
	status=$?
	trap - EXIT
	cd /
	if [ -n "$DAEMON" ] && kill -0 "$DAEMON" 2>/dev/null; then
		unmount 2>/dev/null || kill "$DAEMON"
		until_true 250 is_gone "$DAEMON" || kill -9 "$DAEMON"
		wait "$DAEMON" 2>/dev/null
	fi
	! mounted || umount -l "$MNT"
	if [ "$status" -ne 0 ] && [ "$status" -ne 77 ]; then
		sed 's/^/daemon: /' "$LOG" >&2
	fi
	rm -rf --one-file-system "$DIR"
	exit "$status"
}
trap cleanup EXIT
trap 'exit 1' HUP INT TERM

# Gives everything back that per-CPU lists hold, then prints buddyinfo.
drained() {
	echo 1 >"$MNT/alloc/drain" || fail "alloc/drain"
	cat "$MNT/stats/buddyinfo"
}

# check_engine: every structure in order
check_engine() {
	is debug/check "$(cat "$MNT/debug/check")" ok
}
