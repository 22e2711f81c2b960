#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Every file of the tree: readable, documented, and refusing garbage.
. "$(dirname "$0")/lib.sh"

cat >"$DIR/machine" <<END
node 0 cpus 0-1 zones DMA=16M,DMA32=32M,Normal=64M
node 2 cpus 2 zones Normal=64M
END
start "topology=@$DIR/machine"
cd "$MNT" || fail "cannot enter the mount"
mkdir tasks/t1 || fail mkdir
echo 'thing count=3' >alloc/pages || fail "alloc/pages"
echo 'range pages=3' >alloc/vmalloc || fail "alloc/vmalloc"
echo 'frame size=600 flags=no_merge' >slab/create || fail "slab/create"
echo 'objects cache=frame count=10' >alloc/slab || fail "alloc/slab"

# The caches of kmalloc have the files of any other.
find . -type f >"$DIR/all"
sed 's,^\./,,' "$DIR/all" | grep -v '^slab/kmalloc-' | sort >"$DIR/files"
find . -type d | sed 's,^\./,,' | sort >"$DIR/folders"
for name in README version last_cmd_status weights/auto weights/node0 weights/node2 nodes/online nodes/possible \
	nodes/has_cpu nodes/has_memory nodes/has_normal_memory nodes/node2/Normal/free nodes/node0/DMA/managed \
	nodes/node0/distance tasks/default/policy tasks/t1/numastat alloc/pages alloc/free alloc/drain alloc/trim \
	live/thing/map live/thing/data live/range/address live/range/data alloc/vmalloc vmalloc/areas \
	vmalloc/free_space vmalloc/lazy_pages vmalloc/mappings vmalloc/purge stats/vmallocinfo alloc/slab slab/create \
	slab/frame/objects slab/frame/shrink slab/frame/alloc_slab live/objects/cache stats/slabinfo \
	stats/counters/partial_probe tune/slab_skip stats/all stats/buddyinfo stats/pagetypeinfo stats/zoneinfo stats/vmstat \
	stats/meminfo tune/pcp_mode tune/min_free_kbytes debug/check debug/tick; do
	grep -qxF "$name" "$DIR/files" || fail "$name is missing"
done
! grep -qxF weights/node1 "$DIR/files" || fail "there is no node 1"
! grep -qxF live/thing/address "$DIR/files" || fail "an address of pages"
! grep -qxF live/thing/cache "$DIR/files" || fail "a cache of pages"

cat README >"$DIR/readme"
sed -n '/^COUNTERS OF A CACHE/,/^FAILURE/s/^\([a-z_]*\) .*/\1/p' "$DIR/readme" >"$DIR/counters"
[ "$(wc -l <"$DIR/counters")" -ge 30 ] || fail "README: counters of a cache"
counters=$(paste -s -d '|' "$DIR/counters")

# pattern_of FILE: as its row has it
pattern_of() {
	echo "$1" | sed -E "s,(^|/)node[0-9]+,\\1node*,
		s,^tasks/[^/]+,tasks/{task},
		s,^live/[^/]+,live/{live},
		s,^stats/counters/.*,stats/counters/{counter},
		s,^debug/fault/.*,debug/fault/{fault},
		s,^slab/[^/]+/($counters)\$,slab/{cache}/{slabstat},
		s,^slab/[^/]+/,slab/{cache}/,
		s,^(nodes/node\*)/(DMA|DMA32|Normal|Movable)/,\\1/{zone}/,"
}
while read -r file; do
	pattern_of "$file"
done <"$DIR/files" | sort -u >"$DIR/patterns"
while read -r pattern; do
	grep -qF -- "$pattern" "$DIR/readme" || fail "$pattern is not in README"
done <"$DIR/patterns"

# Readable files are read whole, twice as long as their state is still; others refuse.
while read -r file; do
	mode=$(stat -c %a "$file")
	case $mode in
	444 | 644 | 600 | 400)
		cat "$file" >"$DIR/out" || fail "cat $file"
		;;
	200)
		if cat "$file" >/dev/null 2>&1; then
			fail "$file can be read"
		fi
		;;
	*) fail "$file has mode $mode" ;;
	esac
	is "owner of $file" "$(stat -c %u:%g "$file")" 0:0
	[ "${file##*/}" = data ] || is "size of $file" "$(stat -c %s "$file")" 0
done <"$DIR/files"
while read -r folder; do
	case $(stat -c %a "$folder") in
	555 | 755) ;;
	*) fail "mode of $folder" ;;
	esac
done <"$DIR/folders"
find . -type f | xargs stat -c %i | sort | uniq -d >"$DIR/double"
is "inode numbers used twice" "$(cat "$DIR/double")" ""

# Garbage is refused, and changes nothing.  Of the counters of a cache, all alike, one is enough.
grep -v -E "^slab/frame/(${counters#*|})\$" "$DIR/files" >"$DIR/some"
for garbage in '~garbage~' '' ' ' '-1' '18446744073709551616' 'a=b=c' "$(printf '\001')"; do
	while read -r file; do
		case $file in
		live/*/data) continue ;;
		esac
		case $(stat -c %a "$file") in
		444 | 400) continue ;;
		esac
		before=
		[ "$(stat -c %a "$file")" = 200 ] || before=$(cat "$file")
		case "$garbage$file" in
		-1tune/*) continue ;; # a value of some knobs
		-1alloc/pages | 184*alloc/pages) continue ;; # names
		esac
		if echo "$garbage" 2>/dev/null >"$file"; then
			case $file in
			*/mems_allowed) [ -n "$garbage" ] || continue ;;
			esac
			fail "$file took '$garbage'"
		fi
		holds "last_cmd_status" "$(cat last_cmd_status)" "$file: "
		[ "$(stat -c %a "$file")" = 200 ] || is "$file after '$garbage'" "$(cat "$file")" "$before"
	done <"$DIR/some"
done

# Read-only files cannot be opened for writing, by root either.
while read -r file; do
	case $(stat -c %a "$file") in
	444 | 400) ;;
	*) continue ;;
	esac
	if echo 1 2>/dev/null >"$file"; then
		fail "$file was written"
	fi
done <"$DIR/files"

# Tools that walk: ls, find, tar, du, df.
ls -lR . >/dev/null || fail "ls -lR"
du -s . >/dev/null || fail du
df . >/dev/null || fail df
tar cf "$DIR/tar" README weights stats || fail tar
is "files the walk found" "$(find . -type f | wc -l)" "$(wc -l <"$DIR/all")"

# A folder with many names lists each once, also while others come and go.
i=0
while [ $i -lt 300 ]; do
	echo "many$i count=1"
	i=$((i + 1))
done >"$DIR/names"
while read -r line; do
	echo "$line" >alloc/pages || fail "$line"
done <"$DIR/names"
is "names listed" "$(ls live | grep -c '^many')" 300
is "names twice" "$(ls live | sort | uniq -d)" ""
ls -l live >/dev/null || fail "ls -l live"
check_engine
cd /
stop
