#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Notification by poll, epoll and select; run inside a mounted tree."""
import os
import select
import threading
import time

LONG = 20000  # milliseconds that a notification may take on a slow machine


def put(path, text):
    fd = os.open(path, os.O_WRONLY)
    os.write(fd, text.encode() + b"\n")
    os.close(fd)


def due(fd, timeout):
    poller = select.poll()
    poller.register(fd, select.POLLPRI | select.POLLERR)
    return [events for _, events in poller.poll(timeout)]


def changes(path, write, text, other):
    fd = os.open(path, os.O_RDONLY)
    os.read(fd, 4096)
    assert due(fd, 0) == [], path + ": due before a change"
    put(write, text)
    events = due(fd, LONG)
    assert len(events) == 1 and events[0] & select.POLLPRI and events[0] & select.POLLERR, (path, events)
    assert due(fd, 0), path + ": due until it is read"
    os.pread(fd, 4096, 0)
    assert due(fd, 0) == [], path + ": due after the read"
    # A change that comes while the poll sleeps.
    writer = threading.Thread(target=lambda: (time.sleep(0.3), put(write, other)))
    writer.start()
    assert due(fd, LONG), path + ": the sleeper was not woken"
    writer.join()
    os.close(fd)


def by_epoll_and_select():
    fd = os.open("weights/node0", os.O_RDONLY)
    os.read(fd, 100)
    epoll = select.epoll()
    epoll.register(fd, select.EPOLLPRI | select.EPOLLERR)
    assert epoll.poll(0) == []
    assert select.select([], [], [fd], 0)[2] == []
    put("weights/node0", "9")
    assert epoll.poll(LONG / 1000)
    assert select.select([], [], [fd], LONG / 1000)[2] == [fd]
    os.close(fd)


def many_and_unrelated():
    fds = [os.open("weights/node1", os.O_RDONLY) for _ in range(100)]
    for fd in fds:
        os.read(fd, 100)
    poller = select.poll()
    for fd in fds:
        poller.register(fd, select.POLLPRI | select.POLLERR)
    put("tasks/default/policy", "interleave:0")
    assert poller.poll(300) == [], "a policy is no weight"
    put("weights/node1", "4")
    woken = set()
    while len(woken) < 100:
        events = poller.poll(LONG)
        assert events, "only %d of 100 were woken" % len(woken)
        for fd, _ in events:
            woken.add(fd)
            poller.unregister(fd)
    for fd in fds:
        os.close(fd)


def never():
    fd = os.open("version", os.O_RDONLY)
    os.read(fd, 100)
    put("weights/node0", "11")
    assert due(fd, 300) == []
    os.close(fd)


def gone():
    os.mkdir("tasks/t")
    fd = os.open("tasks/t/policy", os.O_RDONLY)
    os.read(fd, 100)
    os.rmdir("tasks/t")
    assert due(fd, LONG), "the end of a task wakes its pollers"
    os.close(fd)


changes("weights/node0", "weights/node0", "5", "6")
changes("tasks/default/policy", "tasks/default/policy", "interleave:0-1", "local")
by_epoll_and_select()
many_and_unrelated()
never()
gone()
