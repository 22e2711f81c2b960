#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# poll(2) tells of changes, and of nothing else.
. "$(dirname "$0")/lib.sh"

start topology=2x16M:cpus=1
cd "$MNT" || fail "cannot enter the mount"
timeout 120 python3 "$HELPERS/poll.py" || fail "see above"
cd /
stop
