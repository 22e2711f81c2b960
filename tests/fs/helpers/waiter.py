#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes one command: waiter.py FILE TEXT.  Prints "started", then "ok" or the
errno, and what the descriptor reads afterwards.

SIGINT interrupts the write (a shell's background job would ignore it).  The
write is the C library's: Python's own starts again after EINTR."""
import ctypes
import errno
import os
import signal
import sys

signal.signal(signal.SIGINT, lambda number, frame: None)
libc = ctypes.CDLL(None, use_errno=True)
libc.write.restype = ctypes.c_ssize_t
fd = os.open(sys.argv[1], os.O_RDWR)
text = sys.argv[2].encode() + b"\n"
print("started", flush=True)
done = libc.write(fd, text, ctypes.c_size_t(len(text)))
result = "ok" if done == len(text) else errno.errorcode[ctypes.get_errno()]
try:
    reply = os.read(fd, 4096).decode().strip()
except OSError as error:
    reply = errno.errorcode[error.errno]
print(result, reply, flush=True)
