#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# What a descriptor reads after a command: its reply, or why it failed.
. "$(dirname "$0")/lib.sh"

start topology=2x32M:cpus=1
cd "$MNT" || fail "cannot enter the mount"
echo interleave:0-1 >tasks/default/policy

exec 3<>alloc/pages
echo 'one count=10' >&3 || fail "alloc/pages"
read -r line <&3
is "reply" "$line" "one returned=10 node0=5 node1=5"
echo 'two count=3 node=1' >&3 || fail "the second command"
read -r line <&3
is "second reply" "$line" "two returned=3 node1=3"
if read -r line <&3; then
	fail "a reply was read twice: $line"
fi
exec 3>&-

exec 3<>alloc/pages
echo '- count=1' >&3 || fail "a generated name"
read -r line <&3
name=${line%% *}
is "generated name" "$(cat live/"$name"/pages)" 1
exec 3>&-

# A failed write has not moved the file position.
exec 3<>alloc/pages
if echo 'bad colour=red' 2>/dev/null >&3; then
	fail "colour=red was taken"
fi
reason=$(cat <&3)
is "reason" "$reason" "$(cat last_cmd_status)"
holds "reason" "$reason" "alloc/pages: "
holds "reason" "$reason" colour
echo 'good count=1' >&3 || fail "a command after a failure"
read -r line <&3
holds "reply after a failure" "$line" "good returned=1 "
if echo 'good count=1' 2>/dev/null >&3; then
	fail "a name was taken twice"
fi
holds "reason behind a reply" "$(cat <&3)" "alloc/pages: "
exec 3>&-

exec 3<>weights/node0
read -r line <&3
is "value" "$line" 1
echo 7 >&3 || fail "weights/node0"
if echo 999 2>/dev/null >&3; then
	fail "999 was taken"
fi
is "reason on a value" "$(cat <&3)" "weights/node0: 999 is not in 1..255"
exec 3>&-

python3 - <<'END' || fail "python descriptors"
import errno, os

def failing(fd, data):
    try:
        os.write(fd, data)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "ok"

fd = os.open("weights/node1", os.O_RDWR)
assert os.pread(fd, 100, 0) == b"1\n"
assert failing(fd, b"0\n") == "EINVAL"
assert os.read(fd, 100) == b"weights/node1: 0 is not in 1..255\n"
assert os.read(fd, 100) == b""
assert os.pread(fd, 100, 0) == b"1\n", "the reason has been read: now the value"
assert os.pwrite(fd, b"9\n", 0) == 2
assert os.pread(fd, 100, 0) == b"9\n"
assert os.pread(fd, 100, 2) == b""
assert failing(fd, b"x" * 5000) == "E2BIG"
assert b"weights/node1: " in os.read(fd, 4096)
os.close(fd)

fd = os.open("alloc/pages", os.O_RDWR)
assert os.read(fd, 100) == b""
assert os.write(fd, b"py count=2 node=0\n") == 18
reply = b"py returned=2 node0=2\n"
assert b"".join(os.read(fd, 1) for _ in reply) == reply
assert os.read(fd, 1) == b""
assert os.pread(fd, 100, 0) == reply
os.close(fd)
END
cd /
stop
