#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# A read in pieces never mixes two states.
. "$(dirname "$0")/lib.sh"

start topology=2x32M:cpus=1
cd "$MNT" || fail "cannot enter the mount"

python3 - <<'END' || fail "see above"
import os, threading

VALUES = [b"weighted interleave:0-1\n", b"local\n", b"bind:0\n", b"prefer (many):0-1\n"]
PATH = "tasks/default/policy"

def put(value):
    fd = os.open(PATH, os.O_WRONLY)
    assert os.write(fd, value) == len(value)
    os.close(fd)

def rest(fd, text):
    while True:
        byte = os.read(fd, 1)
        if not byte:
            return text
        text += byte

# In step: the change comes between two bytes.
for i in range(40):
    old, new = VALUES[i % 4], VALUES[(i + 1) % 4]
    put(old)
    fd = os.open(PATH, os.O_RDONLY)
    first = os.read(fd, 1)
    put(new)
    assert rest(fd, first) == old
    assert os.pread(fd, 100, 3) == old[3:]
    assert os.pread(fd, 100, 0) == new, "offset 0 makes a new snapshot"
    os.close(fd)

# At random: a writer beside four readers.
stop = threading.Event()
wrong = []

def write():
    i = 0
    while not stop.is_set():
        put(VALUES[i % 4])
        i += 1

def read():
    for _ in range(150):
        fd = os.open(PATH, os.O_RDONLY)
        text = rest(fd, b"")
        os.close(fd)
        if text not in VALUES:
            wrong.append(text)

writer = threading.Thread(target=write)
readers = [threading.Thread(target=read) for _ in range(4)]
writer.start()
for reader in readers:
    reader.start()
for reader in readers:
    reader.join()
stop.set()
writer.join()
assert not wrong, wrong
END
cd /
stop
