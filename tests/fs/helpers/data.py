#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""live/NAME/data as memory: run inside a mounted tree of at least 2 x 16 MiB."""
import errno
import mmap
import os
import time

PAGE = 4096


def command(path, text):
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode() + b"\n")
    finally:
        os.close(fd)


def error_of(function, *arguments):
    try:
        function(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "ok"


def new(name, pages):
    command("alloc/pages", "%s count=%d" % (name, pages))
    return os.open("live/%s/data" % name, os.O_RDWR)


def read_and_write():
    fd = new("rw", 64)
    size = 64 * PAGE
    assert os.fstat(fd).st_size == size
    assert os.pread(fd, 2 * size, 0) == bytes(size), "new pages are clear"
    pattern = os.urandom(size)
    assert os.pwrite(fd, pattern, 0) == size
    assert os.pread(fd, size, 0) == pattern
    assert os.pwrite(fd, b"abc", 5000) == 3
    with open("live/rw/data", "rb") as other:
        assert other.read() == pattern[:5000] + b"abc" + pattern[5003:]
    assert os.pread(fd, 10, size) == b""
    assert os.pread(fd, 10, size - 4) == pattern[-4:]
    assert error_of(os.pwrite, fd, b"x", size) == "ENOSPC"
    assert error_of(os.pwrite, fd, b"x", size + 12345) == "ENOSPC"
    assert os.fstat(fd).st_size == size
    os.ftruncate(fd, 0)
    assert os.fstat(fd).st_size == size, "a truncate does nothing"
    with open("live/rw/data", "wb") as other:
        other.write(b"from the start")
    assert os.stat("live/rw/data").st_size == size
    assert os.pread(fd, 20, 0) == b"from the start" + pattern[14:20]
    os.close(fd)
    os.rmdir("live/rw")


def map_shared():
    fd = new("map", 16)
    size = 16 * PAGE
    with mmap.mmap(fd, size) as memory:
        assert memory[:] == bytes(size)
        memory[100:105] = b"hello"
        memory[size - 1] = 7
        memory.flush()
        with open("live/map/data", "rb") as other:
            text = other.read()
        assert text[100:105] == b"hello" and text[-1] == 7
        os.pwrite(fd, b"HELLO", 100)
        assert memory[100:105] == b"HELLO"
        memory[PAGE] = 9
    os.close(fd)
    with open("live/map/data", "rb") as other:
        assert other.read()[PAGE] == 9, "close writes back"
    os.rmdir("live/map")


def use_after_free():
    fd = new("old", 8)
    kind = os.open("live/old/pages", os.O_RDONLY)
    before = os.fstat(fd).st_ino
    os.pwrite(fd, b"secret" * 1000, 0)
    memory = mmap.mmap(fd, 8 * PAGE)
    memory[:6] = b"SECRET"
    memory.flush()
    memory[7 * PAGE] = 1  # dirty: written back after the free
    os.rmdir("live/old")
    # The same pages come back at once, in the same order or not.
    other = new("old", 8)
    assert os.fstat(other).st_ino != before, "inode numbers are not used again"
    assert os.pread(other, 8 * PAGE, 0) == bytes(8 * PAGE), "pages of an earlier owner are cleared"
    for _ in range(500):  # the cached pages go as soon as the notifier has run
        if error_of(os.pread, fd, 10, 0) != "ok":
            break
        time.sleep(0.02)
    assert error_of(os.pread, fd, 10, 0) == "ENODEV"
    assert error_of(os.pwrite, fd, b"evil", 0) == "ENODEV"
    assert error_of(os.fstat, fd) == "ENODEV"
    assert error_of(os.pread, kind, 10, 0) == "ENODEV"
    error_of(memory.flush)
    memory.close()
    os.close(fd)
    os.close(kind)
    assert os.pread(other, 8 * PAGE, 0) == bytes(8 * PAGE), "a late write reached somebody else"
    os.close(other)
    os.rmdir("live/old")


def free_in_pieces():
    fd = new("part", 10)
    os.pwrite(fd, b"A" * 10 * PAGE, 0)
    command("alloc/free", "part count=6")
    assert os.fstat(fd).st_size == 4 * PAGE
    assert os.pread(fd, 20 * PAGE, 0) == b"A" * 4 * PAGE
    assert error_of(os.pwrite, fd, b"x", 4 * PAGE) == "ENOSPC"
    other = new("rest", 6)
    assert os.pread(other, 6 * PAGE, 0) == bytes(6 * PAGE)
    os.close(other)
    os.close(fd)
    os.rmdir("live/part")
    os.rmdir("live/rest")


def bigger_blocks():
    command("alloc/pages", "huge count=2 order=9")
    fd = os.open("live/huge/data", os.O_RDWR)
    size = 1024 * PAGE
    assert os.fstat(fd).st_size == size
    block = bytes(range(256)) * 4096
    for offset in range(0, size, len(block)):
        assert os.pwrite(fd, block, offset) == len(block)
    os.lseek(fd, 0, os.SEEK_SET)
    with os.fdopen(fd, "rb") as file:
        assert file.read() == block * (size // len(block))
    os.rmdir("live/huge")


def inodes_are_unique():
    seen = set()
    for i in range(50):
        command("alloc/pages", "i count=1")
        inode = os.stat("live/i/data").st_ino
        assert inode not in seen
        seen.add(inode)
        os.rmdir("live/i")


for test in (read_and_write, map_shared, use_after_free, free_in_pieces, bigger_blocks, inodes_are_unique):
    test()
    print("ok", test.__name__)
