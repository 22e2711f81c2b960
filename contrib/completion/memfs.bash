# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Completion of the memfs command line for bash.

# What may stand behind the last comma of -o.  A path is one of the tree and has its value behind "=".
_memfs_options() {
	local done_words=$1 word=$2 paths topologies
	paths="weights/node weights/auto= nodes/node tasks/default/policy= tasks/default/mems_allowed=
		tasks/default/cpu= tune/min_free_kbytes= tune/watermark_scale_factor= tune/watermark_boost_factor=
		tune/lowmem_reserve_ratio= tune/percpu_pagelist_high_fraction= tune/numa_stat= tune/numa=
		tune/bulk_algorithm= tune/pcp_mode= tune/pcp_irq_bypass= tune/init_on_alloc= tune/trim_seconds=
		tune/vmalloc_large_order= tune/vmalloc_linear= tune/vmalloc_small_pages= tune/vmalloc_lazy_max=
		tune/vmalloc_max_mappings= tune/slab_skip= tune/slab_sheaves= tune/slab_stock_bytes= tune/max_caches=
		tune/tick_ms= tune/max_live_allocations= tune/max_tasks="
	topologies="auto host 2x256M:cpus=2 2x1G:cpus=4 1G:cpus=4+256M:cpus=0"

	case $word in
	topology=@*)
		mapfile -t COMPREPLY < <(compgen -f -P "${done_words}topology=@" -- "${word#topology=@}")
		compopt -o filenames
		;;
	topology=*)
		mapfile -t COMPREPLY < <(compgen -P "${done_words}topology=" -W "$topologies @" -- "${word#topology=}")
		;;
	weights/auto=*)
		mapfile -t COMPREPLY < <(compgen -P "${done_words}weights/auto=" -W "true false" -- "${word#*=}")
		;;
	tune/bulk_algorithm=*)
		mapfile -t COMPREPLY < <(compgen -P "$done_words${word%%=*}=" -W "carryover split" -- "${word#*=}")
		;;
	tune/pcp_mode=*)
		mapfile -t COMPREPLY < <(compgen -P "$done_words${word%%=*}=" -W "rseq trylock off" -- "${word#*=}")
		;;
	tune/vmalloc_large_order=*)
		mapfile -t COMPREPLY < <(compgen -P "$done_words${word%%=*}=" -W "bounded off max" -- "${word#*=}")
		;;
	tune/slab_skip=*)
		mapfile -t COMPREPLY < <(compgen -P "$done_words${word%%=*}=" -W "visited last none" -- "${word#*=}")
		;;
	tune/numa=* | tune/numa_stat=* | tune/pcp_irq_bypass=* | tune/init_on_alloc=* | tune/vmalloc_linear=* | \
		tune/slab_sheaves=*)
		mapfile -t COMPREPLY < <(compgen -P "$done_words${word%%=*}=" -W "0 1" -- "${word#*=}")
		;;
	tasks/default/policy=*)
		mapfile -t COMPREPLY < <(compgen -P "$done_words${word%%=*}=" \
			-W "default local prefer: bind: interleave: weighted-interleave:" -- "${word#*=}")
		;;
	*=*) ;;
	*)
		mapfile -t COMPREPLY < <(compgen -P "$done_words" -W "topology= uid= gid= mode= ro $paths" -- "$word")
		;;
	esac
	compopt -o nospace
}

_memfs() {
	# Cut at blanks alone: ":" and "=" are part of a word here.
	local line=${COMP_LINE:0:COMP_POINT} previous word prefix i
	local -a words
	read -ra words <<<"$line"
	[[ $line == *[[:blank:]] ]] && words+=("")
	word=${words[-1]}
	previous=${words[-2]-}

	COMPREPLY=()
	if [[ $previous == -o || $word == -o?* ]]; then
		prefix=
		[[ $previous == -o ]] || prefix=-o
		word=${word#"$prefix"}
		if [[ $word == *,* ]]; then
			prefix=$prefix${word%,*},
			word=${word##*,}
		fi
		_memfs_options "$prefix" "$word"
	elif [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "-f --foreground -o -h --help -V --version" -- "$word")
	else
		mapfile -t COMPREPLY < <(compgen -d -- "$word")
		compopt -o filenames
	fi

	# Readline replaces only what stands behind the last of its own separators.
	prefix=${words[-1]%"${COMP_WORDS[COMP_CWORD]#[:=]}"}
	if [[ $prefix == *[:=] ]]; then
		for i in "${!COMPREPLY[@]}"; do
			COMPREPLY[i]=${COMPREPLY[i]#"$prefix"}
		done
	fi
}

complete -F _memfs memfs
