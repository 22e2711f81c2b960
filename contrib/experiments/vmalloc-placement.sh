#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Where the pages of vmalloc ranges go: kernel 6.12, kernel 7.2 and memfs side
# by side, pages per node.  6.12 takes single pages and asks the memory policy
# for each; 7.2 takes large blocks and asks once a block, so that one node may
# get everything; memfs takes large blocks inside each node's share.
#
# usage: contrib/experiments/vmalloc-placement.sh [MOUNT]
#
#   MOUNT   a mount of memfs (/run/memfs), writable by the caller.  With two
#           nodes the cases of two are measured, with four all:
#           memfs -o topology=4x256M:cpus=1 MOUNT
#
# The columns of the kernels are recorded (tests/data, kernels 6.12.117 and
# 7.2.13); where no row was recorded they are what the kernel's algorithm
# gives, marked "computed".  Weights are as before when the script ends; policy
# and rotation are those of a task of its own.  Exit status 1: it could not
# measure.
set -eu
mount_point=${1:-/run/memfs}
me=vmalloc-placement
task=$me.$$

# policy, weights, pages, kernel 6.12, kernel 7.2; pages on node 0/1/...; a * is computed.
cases='
weighted-interleave 3:1 40 30/10 40/0*
weighted-interleave 3:1 250 188/62 234/16
weighted-interleave 3:1 400 300/100* 400/0*
weighted-interleave 3:1 512 384/128* 512/0*
weighted-interleave 3:1 2048 1536/512* 2048/0*
interleave 1:1 20 10/10 16/4
weighted-interleave 4:2:1:1 40 20/10/5/5 40/0/0/0
weighted-interleave 4:2:1:1 250 126/62/31/31 240/10/0/0
interleave 1:1:1:1 20 5/5/5/5 16/4/0/0
'

die() {
	printf '%s: %s\n' "$me" "$*" >&2
	exit 1
}

# write_to FILE TEXT: one write, and the reason if it is refused.
write_to() {
	printf '%s\n' "$2" >"$mount_point/$1" || die "$1: $(cat "$mount_point/last_cmd_status")"
}

# has_nodes N: nodes 0 to N - 1 are there and have memory.
has_nodes() {
	node=0
	while [ "$node" -lt "$1" ]; do
		[ -e "$mount_point/weights/node$node" ] || return 1
		node=$((node + 1))
	done
}

# Node and weight of every node, a line each.
weights() {
	for file in "$mount_point"/weights/node*; do
		printf '%s %s\n' "${file##*/}" "$(cat "$file")"
	done
}

# A mount begins with automatic weights even where it cannot compute any; it is not asked back to that.
restore_auto() {
	(printf '%s\n' "$old_auto" >"$mount_point/weights/auto") 2>/dev/null ||
		printf '%s: weights/auto is false from now on: no bandwidth is known\n' "$me" >&2
}

restore() {
	trap - EXIT
	[ ! -d "$mount_point/live/$task" ] || rmdir "$mount_point/live/$task"
	[ ! -d "$mount_point/tasks/$task" ] || rmdir "$mount_point/tasks/$task"
	printf '%s\n' "$old_weights" | while read -r node weight; do
		[ "$(cat "$mount_point/weights/$node")" = "$weight" ] || write_to "weights/$node" "$weight"
	done
	[ "$(cat "$mount_point/weights/auto")" = "$old_auto" ] || restore_auto
}

# set_weights A:B...
set_weights() {
	node=0
	for weight in $(printf '%s' "$1" | tr : ' '); do
		write_to "weights/node$node" "$weight"
		node=$((node + 1))
	done
}

# placement NODES: pages on node 0/1/... of the range
placement() {
	awk -v nodes="$1" '
		{ pages[substr($1, 5) + 0] = $2 }
		END {
			for (node = 0; node < nodes; node++)
				printf "%s%d", node ? "/" : "", pages[node]
		}' "$mount_point/live/$task/placement"
}

# measure POLICY WEIGHTS PAGES NODES: the rotation starts anew with the policy
measure() {
	[ "$1" = interleave ] || set_weights "$2"
	write_to "tasks/$task/policy" "$1:0-$(($4 - 1))"
	write_to alloc/vmalloc "$task pages=$3 task=$task"
	placement "$4"
	rmdir "$mount_point/live/$task"
}

# column TEXT: a recorded number, or a computed one
column() {
	case $1 in
	*\*) printf '%s computed' "${1%\*}" ;;
	*) printf '%s' "$1" ;;
	esac
}

show_cases() {
	printf '%-28s %6s  %-20s %-20s %s\n' policy pages 'kernel 6.12' 'kernel 7.2' memfs
	printf '%s\n' "$cases" | while read -r policy weights pages old new; do
		[ -n "$policy" ] || continue
		nodes=$(printf '%s' "$weights" | tr : '\n' | wc -l)
		nodes=$((nodes + 1))
		if has_nodes "$nodes"; then
			ours=$(measure "$policy" "$weights" "$pages" "$nodes")
		else
			ours="not measured: no nodes 0-$((nodes - 1)) here"
		fi
		[ "$policy" = interleave ] || policy="$policy $weights"
		printf '%-28s %6s  %-20s %-20s %s\n' "$policy" "$pages" "$(column "$old")" "$(column "$new")" "$ours"
	done
}

[ -e "$mount_point/alloc/vmalloc" ] || die "no memfs is mounted at $mount_point"
[ -w "$mount_point/alloc/vmalloc" ] || die "$mount_point cannot be written: run it as root"
has_nodes 2 || die "$mount_point has no nodes 0 and 1 with memory; mount one: memfs -o topology=2x256M MOUNT"

old_auto=$(cat "$mount_point/weights/auto")
old_weights=$(weights)
trap restore EXIT
trap 'exit 1' HUP INT TERM
mkdir "$mount_point/tasks/$task" || die "cannot make a task: $(cat "$mount_point/last_cmd_status")"
show_cases
