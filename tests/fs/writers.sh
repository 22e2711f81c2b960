#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# One write(2) is one command, whatever tool and offset it comes from.
. "$(dirname "$0")/lib.sh"

start topology=2x32M:cpus=1
cd "$MNT" || fail "cannot enter the mount"
file=weights/node0

# takes WHAT VALUE: the command that ran has set VALUE
takes() {
	is "$1" "$(cat $file)" "$2"
	is "$1, size" "$(stat -c %s $file)" 0
}

echo 2 >$file && takes "echo >" 2
printf 3 >$file && takes "printf without newline" 3
echo 4 >>$file && takes "echo >>" 4
{ echo 5 && echo 6; } >$file && takes "two writes on one descriptor" 6
{ echo 7 && echo 8; } >>$file && takes "two appends on one descriptor" 8
echo 9 | tee $file >/dev/null && takes tee 9
echo 10 | tee -a $file >/dev/null && takes "tee -a" 10
echo 11 | dd of=$file 2>/dev/null && takes dd 11
echo 12 | dd of=$file bs=64 seek=3 conv=notrunc 2>/dev/null && takes "dd seek=3" 12
echo 13 | dd of=$file oflag=append conv=notrunc 2>/dev/null && takes "dd append" 13
echo 14 >"$DIR/value" && cp "$DIR/value" $file && takes cp 14
cat "$DIR/value" >$file && takes "cat >" 14
python3 -c "open('$file', 'w').write('15\n')" && takes "python write" 15
python3 -c "open('$file', 'a').write('16\n')" && takes "python append" 16
python3 -c "
import os
fd = os.open('$file', os.O_RDWR)
assert os.pwrite(fd, b'17\n', 1000000) == 3
assert os.pread(fd, 100, 0) == b'17\n'
assert os.pread(fd, 100, 3) == b''
os.ftruncate(fd, 0)
os.ftruncate(fd, 77)
assert os.pread(fd, 100, 0) == b'17\n'
" || fail "python descriptors"
takes "python pwrite" 17
truncate -s 0 $file && takes "truncate -s 0" 17
truncate -s 50 $file && takes "truncate -s 50" 17
: >$file && takes "open with O_TRUNC" 17
if printf '18\n19\n' | dd of=$file 2>/dev/null; then
	fail "two lines in one write were taken"
fi
takes "two lines in one write" 17
if echo 20 | dd of=$file bs=1 2>/dev/null; then
	# dd writes each byte by itself: "2", "0" and an empty line are three commands.
	fail "an empty line was taken"
fi

# Readers of every kind see the same bytes.
echo 200 >$file
takes cat 200
is "dd bs=1" "$(dd if=$file bs=1 2>/dev/null)" 200
is "head -c" "$(head -c 2 $file)" 20
is tail "$(tail -n 1 $file)" 200
is grep "$(grep -c 200 $file)" 1
is wc "$(wc -c <$file | tr -d ' ')" 4
read -r value <$file
is "read of the shell" "$value" 200
cp $file "$DIR/copy" && is cp "$(cat "$DIR/copy")" 200
cat stats/buddyinfo >"$DIR/whole"
dd if=stats/buddyinfo bs=1 2>/dev/null | cmp - "$DIR/whole" || fail "byte by byte"
is "reading past the end" "$(dd if=$file bs=1 skip=100 2>/dev/null | wc -c | tr -d ' ')" 0

# A long line arrives whole: bash would cut it at 4096 with a smaller st_blksize.
long=$(printf '%04090d' 5)
echo "$long" >$file || fail "a command of 4091 bytes"
takes "a long command" 5
is st_blksize "$(stat -c %o $file)" 65536
cd /
stop
