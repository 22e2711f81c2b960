#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a table of operations on a mounted tree and compares their errno.

expect.py ROOT < TABLE, a line an operation:  ERRNO | OP | PATH | ARGUMENT | REASON
ERRNO is "ok" or a name, ARGUMENT a Python bytes literal without its quotes
(write) or "TEXT*N", REASON a part of what last_cmd_status must say ("-": not
looked at).  A failed write must also leave its reason on its descriptor.
"""
import ctypes
import errno
import os
import sys


def argument_bytes(text):
    text, star, count = text.partition("*")
    data = text.encode().decode("unicode_escape").encode("latin-1")
    return data * int(count) if star else data


def write(path, argument):
    """Returns the reason that the descriptor holds after a failure."""
    fd = os.open(path, os.O_RDWR)
    try:
        data = argument_bytes(argument)
        done = os.write(fd, data)
        if done != len(data):
            raise SystemExit("short write to %s" % path)
        return None
    except OSError as error:
        error.reason = os.read(fd, 4096).decode()
        raise
    finally:
        os.close(fd)


def fallocate(path, argument):
    """Not os.posix_fallocate(), which writes when the file system will not."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(os.open(path, os.O_RDWR), 0, ctypes.c_long(0), ctypes.c_long(10)):
        raise OSError(ctypes.get_errno(), "fallocate")


OPS = {
    "write": write,
    "append": lambda path, arg: os.write(os.open(path, os.O_WRONLY | os.O_APPEND), argument_bytes(arg)),
    "read": lambda path, arg: os.close(os.open(path, os.O_RDONLY)),
    "open-write": lambda path, arg: os.close(os.open(path, os.O_WRONLY)),
    "create": lambda path, arg: os.close(os.open(path, os.O_WRONLY | os.O_CREAT)),
    "mkdir": lambda path, arg: os.mkdir(path),
    "rmdir": lambda path, arg: os.rmdir(path),
    "unlink": lambda path, arg: os.unlink(path),
    "rename": lambda path, arg: os.rename(path, os.path.join(os.path.dirname(path), arg)),
    "link": lambda path, arg: os.link(path, os.path.join(os.path.dirname(path), arg)),
    "symlink": lambda path, arg: os.symlink(arg, path),
    "mkfifo": lambda path, arg: os.mkfifo(path),
    "chmod": lambda path, arg: os.chmod(path, 0o777),
    "chown": lambda path, arg: os.chown(path, 1, 1),
    "utime": lambda path, arg: os.utime(path),
    "truncate": lambda path, arg: os.truncate(path, int(arg)),
    "fallocate": fallocate,
    "fsync": lambda path, arg: os.fsync(os.open(path, os.O_RDONLY)),
    "getxattr": lambda path, arg: os.getxattr(path, "user.x"),
    "setxattr": lambda path, arg: os.setxattr(path, "user.x", b"1"),
    "listdir": lambda path, arg: os.listdir(path),
    "statvfs": lambda path, arg: os.statvfs(path),
}


def run(root, line):
    wanted, op, name, argument, reason = (part.strip() for part in line.split("|"))
    path = os.path.join(root, name) if name else root
    got, left = "ok", None
    try:
        OPS[op](path, argument)
    except OSError as error:
        got = "EOPNOTSUPP" if error.errno == errno.EOPNOTSUPP else errno.errorcode[error.errno]
        left = getattr(error, "reason", None)
    if got != wanted:
        return "got %s" % got
    if reason != "-":
        status = open(os.path.join(root, "last_cmd_status")).read()
        if reason not in status or status.count("\n") != 1:
            return "last_cmd_status says %r" % status
        if left is not None and left != status:
            return "the descriptor says %r, last_cmd_status %r" % (left, status)
    return None


def main():
    bad = 0
    for line in sys.stdin:
        if not line.strip() or line.startswith("#"):
            continue
        complaint = run(sys.argv[1], line)
        if complaint:
            print("%s: %s" % (line.rstrip(), complaint))
            bad += 1
    sys.exit(1 if bad else 0)


main()
