#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# How often lists of partial slabs are looked at when a cache searches other
# nodes for one: the three ways of tune/slab_skip side by side.  A zonelist names
# a node once for each of its zones, and the search begins after the CPU's own
# node had nothing.  none looks at a node as often as it is named; last, the
# patch of 2018, not at the one that had nothing just before; visited not at one
# twice.
#
# usage: contrib/experiments/slab-search.sh [MOUNT]
#
#   MOUNT   a mount of memfs (/run/memfs), writable by the caller.  The machine
#           of the patch's second table needs nodes of unequal zones:
#
#           node 0 cpus 0 zones DMA=16M,DMA32=112M,Normal=128M
#           node 1 cpus 1 zones Normal=256M
#           node 2 cpus 2 zones Normal=256M
#           node 3 cpus 3 zones Normal=256M
#
#           in a file: memfs -o topology=@FILE MOUNT
#
# Two loads on CPU 0, with a cache of 256 bytes an object and without sheaves,
# as kernels were then: "growing" takes objects only, so no list has anything;
# "left over" begins with half-empty slabs on the other nodes, so that searches
# find some.  Knobs are as before when the script ends; the cache is its own.
# Exit status 1: it could not measure.
set -eu
mount_point=${1:-/run/memfs}
me=slab-search
name=$me.$$
objects=20000

die() {
	printf '%s: %s\n' "$me" "$*" >&2
	exit 1
}

# write_to FILE TEXT: one write, and the reason if it is refused.
write_to() {
	printf '%s\n' "$2" >"$mount_point/$1" || die "$1: $(cat "$mount_point/last_cmd_status")"
}

# counter NAME: the cache's, over all CPUs.
counter() {
	read -r total _ <"$mount_point/slab/$name/$1"
	printf '%s' "$total"
}

# Objects of this script, then its cache.
clean() {
	for allocation in "$mount_point/live/$name".*; do
		[ ! -d "$allocation" ] || rmdir "$allocation"
	done
	[ ! -d "$mount_point/slab/$name" ] || rmdir "$mount_point/slab/$name"
}

restore() {
	trap - EXIT
	clean
	[ ! -d "$mount_point/tasks/$name" ] || rmdir "$mount_point/tasks/$name"
	write_to tune/slab_skip "$old_skip"
	write_to tune/slab_sheaves "$old_sheaves"
}

# Nodes with memory, by number.
nodes() {
	for file in "$mount_point"/weights/node*; do
		printf '%s\n' "${file##*/node}"
	done | sort -n
}

# The node that CPU 0 belongs to.
home_node() {
	for node in $(nodes); do
		case ,$(cat "$mount_point/nodes/node$node/cpulist"), in
		,0,* | ,0-*) printf '%s' "$node" ;;
		esac
	done
}

# Every node but CPU 0's gets slabs with one object in use; they lie on the nodes' lists.
leave_over() {
	for node in $(nodes); do
		[ "$node" != "$home" ] || continue
		part=0
		while [ "$part" -lt 40 ]; do
			write_to alloc/slab "$name.keep$node.$part cache=$name count=1 node=$node task=$name"
			write_to alloc/slab "$name.drop$node.$part cache=$name count=15 node=$node task=$name"
			part=$((part + 1))
		done
	done
	for allocation in "$mount_point/live/$name".drop*; do
		[ ! -d "$allocation" ] || rmdir "$allocation"
	done
	# CPU slabs and partial ones go to their nodes.
	write_to "slab/$name/cpu_partial" 0
}

# measure SKIP LOAD: prints searches, looks, hits
measure() {
	clean
	write_to tune/slab_skip "$1"
	write_to slab/create "$name size=256 flags=no_merge"
	[ "$2" = growing ] || leave_over
	for file in partial_search partial_probe partial_remote_hit; do
		write_to "slab/$name/$file" 0
	done
	write_to alloc/slab "$name.load cache=$name count=$objects task=$name"
	printf '%s %s %s\n' "$(counter partial_search)" "$(counter partial_probe)" "$(counter partial_remote_hit)"
}

# published NODES SKIP: the patch's table
published() {
	case $1.$2 in
	1.none) printf '1:3' ;;
	1.last) printf '1:0' ;;
	4.none) printf '1:5.8' ;;
	4.last) printf '1:2.5' ;;
	*) printf -- '-' ;;
	esac
}

# show LOAD: a line for each way
show() {
	for skip in none last visited; do
		result=$(measure "$skip" "$1")
		printf '%s\n' "$result" | awk -v load="$1" -v skip="$skip" -v objects="$objects" \
			-v published="$(published "$nr_nodes" "$skip")" '{
			printf "%-10s %-8s %9d %9.2f%% %9d %9s %6d  %s\n", load, skip, $1, 100 * $1 / objects, $2,
				$1 ? sprintf("1:%.2f", $2 / $1) : "-", $3, published
		}'
	done
}

[ -e "$mount_point/slab/create" ] || die "no memfs with caches is mounted at $mount_point"
[ -w "$mount_point/slab/create" ] || die "$mount_point cannot be written: run it as root"

old_skip=$(cat "$mount_point/tune/slab_skip")
old_sheaves=$(cat "$mount_point/tune/slab_sheaves")
nr_nodes=$(nodes | wc -l | tr -d ' ')
trap restore EXIT
trap 'exit 1' HUP INT TERM
mkdir "$mount_point/tasks/$name" || die "cannot make a task: $(cat "$mount_point/last_cmd_status")"
write_to "tasks/$name/cpu" 0
write_to tune/slab_sheaves 0
home=$(home_node)
printf '%s nodes with memory; CPU 0 takes %s objects\n' "$nr_nodes" "$objects"
printf '%-10s %-8s %9s %10s %9s %9s %6s  %s\n' load skip searches 'of allocs' looks ratio hits published
show growing
[ "$nr_nodes" = 1 ] || show 'left over'
