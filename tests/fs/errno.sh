#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Each case of bad input: its errno, its reason, and nothing changed by it.
. "$(dirname "$0")/lib.sh"

n64=$(printf '%064d' 0)
cat >"$DIR/machine" <<END
node 0 cpus 0-1 zones Normal=64M
node 1 cpus - zones Normal=64M
node 3 cpus 2 zones -
END
start "topology=@$DIR/machine"
echo 'taken count=4' >"$MNT/alloc/pages" || fail "alloc/pages"
mkdir "$MNT/tasks/busy" || fail "mkdir"
echo 'held count=1 task=busy' >"$MNT/alloc/pages" || fail "alloc/pages"

state() {
	cd "$MNT" || fail "cannot enter the mount"
	cat weights/* tasks/*/policy tasks/*/mems_allowed tasks/*/cpu tune/* nodes/*/bandwidth
	ls live tasks
	drained
	cd / || exit 1
}
state >"$DIR/before"

python3 "$HELPERS/expect.py" "$MNT" <<END || fail "see above"
EINVAL | write | weights/node0 | 0\\n | weights/node0: 0 is not in 1..255
EINVAL | write | weights/node0 | 256\\n | weights/node0: 256 is not in 1..255
EINVAL | write | weights/node0 | -1\\n | weights/node0: 
EINVAL | write | weights/node0 | three\\n | weights/node0: 
EINVAL | write | weights/node0 | 3 4\\n | weights/node0: 
EINVAL | write | weights/node0 | 3\\n4\\n | weights/node0: 
EINVAL | write | weights/node0 | 18446744073709551616\\n | weights/node0: 
EINVAL | write | weights/node0 | 18446744073709551619\\n | weights/node0: 
EINVAL | write | weights/node0 | \\n | weights/node0: 
EINVAL | write | weights/node0 | 3\\0\\n | weights/node0: 
EINVAL | write | weights/node0 | \\0 | weights/node0: 
E2BIG | write | weights/node0 | 3*5000 | weights/node0: 
E2BIG | write | weights/node0 | 3*4097 | weights/node0: 
EINVAL | write | weights/node0 | 3*4096 | weights/node0: 
E2BIG | write | weights/node0 | 3*3000000 | weights/node0: 
EINVAL | write | weights/auto | maybe\\n | weights/auto: 
ENODEV | write | weights/auto | true\\n | weights/auto: 
ENOENT | read | weights/node3 |  | -
ENOENT | read | weights/node2 |  | -
ENOENT | create | weights/node2 |  | weights/node2: 
ENOENT | create | nothing |  | nothing: 
EINVAL | write | tasks/default/policy | bind:7\\n | tasks/default/policy: 
EINVAL | write | tasks/default/policy | bind\\n | tasks/default/policy: 
EINVAL | write | tasks/default/policy | nonsense:0\\n | tasks/default/policy: 
EINVAL | write | tasks/default/policy | bind:3\\n | tasks/default/policy: 
EINVAL | write | tasks/default/mems_allowed | 9\\n | tasks/default/mems_allowed: 
EINVAL | write | tasks/default/cpu | 77\\n | tasks/default/cpu: 
EINVAL | write | alloc/pages | a count=0\\n | alloc/pages: 
EINVAL | write | alloc/pages | a count=18446744073709551616\\n | alloc/pages: 
EINVAL | write | alloc/pages | a order=11\\n | alloc/pages: 
EINVAL | write | alloc/pages | a count\\n | alloc/pages: 
EINVAL | write | alloc/pages | a colour=red\\n | alloc/pages: 
EINVAL | write | alloc/pages | a gfp=GFP_WRONG\\n | alloc/pages: 
EINVAL | write | alloc/pages | a via=air\\n | alloc/pages: 
EINVAL | write | alloc/pages | a type=other\\n | alloc/pages: 
EINVAL | write | alloc/pages | a context=nmi\\n | alloc/pages: 
EINVAL | write | alloc/pages | a node=0 policy=local\\n | alloc/pages: 
EINVAL | write | alloc/pages | a node=3\\n | alloc/pages: 
ENOENT | write | alloc/pages | a node=7\\n | alloc/pages: 
EINVAL | write | alloc/pages | a policy=bind:7\\n | alloc/pages: 
ENOENT | write | alloc/pages | a task=nobody\\n | alloc/pages: 
EINVAL | write | alloc/pages | a cpu=99\\n | alloc/pages: 
EINVAL | write | alloc/pages | a/b count=1\\n | alloc/pages: 
EINVAL | write | alloc/pages | . count=1\\n | alloc/pages: 
EINVAL | write | alloc/pages | 0$n64 count=1\\n | alloc/pages: 
EINVAL | write | alloc/pages | \\n | alloc/pages: 
EEXIST | write | alloc/pages | taken count=1\\n | alloc/pages: 
ENOMEM | write | alloc/pages | a count=1000000\\n | alloc/pages: 
ENOMEM | write | alloc/pages | a count=40000 order=1\\n | alloc/pages: 
E2BIG | write | alloc/pages | a*5000 | alloc/pages: 
ENOENT | write | alloc/free | nobody\\n | alloc/free: 
EINVAL | write | alloc/free | taken count=5\\n | alloc/free: 
EINVAL | write | alloc/drain | 2\\n | alloc/drain: 
ENOENT | write | alloc/drain | node9\\n | alloc/drain: 
EINVAL | write | tune/tick_ms | often\\n | tune/tick_ms: 
EINVAL | write | tune/pcp_mode | spin\\n | tune/pcp_mode: 
EINVAL | write | tune/numa | 2\\n | tune/numa: 
EINVAL | write | debug/tick | now\\n | debug/tick: 
EACCES | open-write | stats/buddyinfo |  | -
EACCES | open-write | live/taken/pages |  | -
ok | read | alloc/pages |  | -
EINVAL | mkdir | tasks/0$n64 |  | tasks/0$n64: 
EINVAL | mkdir | tasks/a b |  | tasks/a b: 
EEXIST | mkdir | tasks/busy |  | -
EPERM | mkdir | newdir |  | newdir: 
EPERM | mkdir | live/newdir |  | live/newdir: 
EPERM | rmdir | weights |  | weights: 
EPERM | rmdir | nodes/node0 |  | nodes/node0: 
EBUSY | rmdir | tasks/default |  | tasks/default: 
EBUSY | rmdir | tasks/busy |  | tasks/busy: 
ENOENT | rmdir | live/nobody |  | -
ENOTDIR | rmdir | README |  | -
EPERM | unlink | README |  | README: 
EPERM | unlink | live/taken/data |  | live/taken/data: 
EPERM | rename | README | OTHER | README: 
EPERM | rename | live/taken | other | live/taken: 
EPERM | link | README | OTHER | OTHER: 
EPERM | symlink | weights/x | y | weights/x: 
EPERM | mkfifo | weights/fifo |  | weights/fifo: 
EPERM | chmod | README |  | README: 
EPERM | chown | README |  | README: 
ok | utime | weights/node0 |  | -
ok | truncate | weights/node0 | 0 | -
ok | truncate | weights/node0 | 100 | -
EACCES | truncate | README | 0 | README: 
EOPNOTSUPP | fallocate | weights/node0 |  | -
EOPNOTSUPP | getxattr | README |  | -
EOPNOTSUPP | setxattr | weights/node0 |  | -
ok | fsync | README |  | -
ok | statvfs |  |  | -
END

state >"$DIR/after"
diff "$DIR/before" "$DIR/after" || fail "a refused command changed something"

python3 "$HELPERS/expect.py" "$MNT" <<END || fail "see above"
ok | write | weights/node0 | +0x3\\n | ok
ok | write | weights/node0 | 03 | ok
ok | write | alloc/pages | $n64 count=1\\n | ok
ok | mkdir | tasks/$n64 |  | ok
ok | rmdir | tasks/$n64 |  | ok
ok | rmdir | live/$n64 |  | ok
ok | write | alloc/pages | half count=1000000 partial\\n | ok
ENOMEM | write | alloc/pages | more count=1000\\n | alloc/pages: 
ok | rmdir | live/half |  | ok
END
check_engine
is "a weight in octal" "$(cat "$MNT/weights/node0")" 3

# What a shell makes of it.
for shell in dash bash; do
	command -v $shell >/dev/null || continue
	said=$($shell -c "echo 0 >'$MNT/weights/node0'" 2>&1) && fail "$shell: echo succeeded"
	case $said in
	*nvalid\ argument* | *I/O\ error*) ;;
	*) fail "$shell says '$said'" ;;
	esac
done
stop
