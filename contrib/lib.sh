# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=sh disable=SC2034,SC2154
# What quickstart and check share.  The caller has set $top, the source tree, and $build, where builds go.

say() {
	printf '%s\n' "$*" >&2
}

die() {
	say "$(basename "$0"): $*"
	exit 1
}

# as_root COMMAND...: through sudo for a user who is not root.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "needs root for: $*"
	fi
}

have_package() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# need_packages NAME...: installs those of Debian's packages that are missing, without a question.
need_packages() {
	if ! command -v apt-get >/dev/null; then
		say "no apt-get here: these Debian packages, or what they are called here, are needed: $*"
		return 0
	fi
	missing=
	for package; do
		have_package "$package" || missing="$missing $package"
	done
	[ -n "$missing" ] || return 0
	say "installing:$missing"
	# shellcheck disable=SC2086 # a list of words
	as_root env DEBIAN_FRONTEND=noninteractive sh -c 'apt-get -qq update &&
		apt-get -qq install -y --no-install-recommends "$@"' sh $missing >&2 || die "cannot install$missing"
}

build_packages="autoconf automake libtool pkg-config gcc g++ make libc6-dev libfuse3-dev fuse3 libnuma-dev"

# Makes ./configure unless it is newer than everything it is made from.
prepare_tree() {
	if [ -e "$top/config.status" ]; then
		die "the tree was configured in place; run 'make distclean' in $top first"
	fi
	if [ -e "$top/configure" ] && [ -e "$top/Makefile.in" ] && [ -z "$(find "$top/configure.ac" \
		"$top/Makefile.am" "$top/m4/memfs.m4" "$top"/*/Makefile.inc -newer "$top/Makefile.in" 2>/dev/null)" ]; then
		return 0
	fi
	"$top/autogen.sh" >"$build/autogen.log" 2>&1 || {
		cat "$build/autogen.log" >&2
		die "autogen.sh failed"
	}
}

# configure_in FOLDER ARGUMENT...: configures there, unless it was done with the same arguments.
configure_in() {
	folder=$1
	shift
	mkdir -p "$folder"
	if [ -e "$folder/config.status" ] && [ "$(cat "$folder/arguments" 2>/dev/null)" = "$*" ]; then
		return 0
	fi
	rm -f "$folder/arguments"
	(cd "$folder" && "$top/configure" "$@" >configure.log 2>&1) || {
		tail -n 20 "$folder/configure.log" >&2
		return 1
	}
	printf '%s\n' "$*" >"$folder/arguments"
}

jobs() {
	nproc 2>/dev/null || echo 2
}
