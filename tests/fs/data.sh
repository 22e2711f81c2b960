#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# live/NAME/data is the memory itself: read, write, mmap, and nothing after the free.
. "$(dirname "$0")/lib.sh"

start topology=2x16M:cpus=1
cd "$MNT" || fail "cannot enter the mount"
cat stats/buddyinfo >"$DIR/initial"
timeout 60 python3 "$HELPERS/data.py" || fail "see above"

echo 'sh count=4' >alloc/pages || fail "alloc/pages"
head -c 16384 /dev/urandom >"$DIR/bytes"
cp "$DIR/bytes" live/sh/data || fail "cp to data"
cmp "$DIR/bytes" live/sh/data || fail "data differs"
echo hello >live/sh/data || fail "echo > data"
is "the start of data" "$(head -n 1 live/sh/data)" hello
is "its size" "$(stat -c %s live/sh/data)" 16384
if dd if=/dev/zero of=live/sh/data bs=4096 count=5 conv=notrunc 2>"$DIR/dd"; then
	fail "a write past the end succeeded"
fi
holds "the message" "$(cat "$DIR/dd")" "No space left"
rmdir live/sh
drained | cmp - "$DIR/initial" || fail "pages lost"
check_engine

# Freed by a command with data open: no noise in the log, and the name can be taken at once.
echo 'o count=4' >alloc/pages || fail "alloc/pages"
exec 4<live/o/data
echo o >alloc/free || fail "alloc/free"
echo 'o count=2' >alloc/pages || fail "the name of a freed allocation"
is "the size of the new one" "$(stat -c %s live/o/data)" 8192
if head -c 1 <&4 2>"$DIR/head"; then
	fail "freed memory can be read"
fi
exec 4<&-
rmdir live/o || fail "rmdir live/o"

# The end of the mount with a mapping that is dirty and an allocation just freed.
echo 'm count=4' >alloc/pages || fail "alloc/pages"
python3 -c "
import mmap, os, time
fd = os.open('live/m/data', os.O_RDWR)
memory = mmap.mmap(fd, 16384)
memory[0] = 1
print('mapped', flush=True)
time.sleep(60)
" >"$DIR/out" &
mapper=$!
until_true 500 grep -qs mapped "$DIR/out" || fail "no mapping"
rmdir live/m || fail "rmdir live/m"
cd /
kill $DAEMON
await_end
kill $mapper
wait $mapper 2>/dev/null
exit 0
