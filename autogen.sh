#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes ./configure from a git checkout.  Needs autoconf, automake, libtool, pkg-config.
set -e
cd "$(dirname "$0")"
exec autoreconf --install --force
