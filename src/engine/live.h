/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Named allocations: what alloc/pages, alloc/vmalloc and alloc/slab make and
 * live/NAME shows.
 *
 * A name is reserved first (so of two racing commands one gets EEXIST at
 * once), the pages are taken with no lock of this layer held, then the entry
 * becomes visible.  Entries are reference counted: an open live/NAME/... keeps
 * the descriptor, not the pages; after the free every use gets -ENODEV.
 * data_lock orders access to the bytes against the free: readers and writers of
 * data hold it shared, the free holds it while it cuts the pages off.  It is
 * taken with no lock held; cut_mutex, live.lock and the page engine's come after it.
 */
#ifndef MF_ENGINE_LIVE_H
#define MF_ENGINE_LIVE_H

#include "engine/task.h"

#include <sys/types.h>

enum mf_live_kind { MF_LIVE_PAGES, MF_LIVE_VMALLOC, MF_LIVE_SLAB };

struct mf_live {
	struct mf_named named; /* live.table; must be first.  named.serial makes the inode number */
	struct memfs *m;
	struct mf_task *task;		    /* pinned by nr_live: not to be used once nr_blocks is 0 */
	char task_name[MEMFS_NAME_MAX + 1]; /* stays readable after the free */
	_Atomic unsigned refs;
	enum mf_live_kind kind;
	void *address; /* of a vmalloc: where its range starts */
	bool ready;    /* live.lock: visible to others */
	bool irq;      /* context=irq: frees as such */
	unsigned order;
	size_t nr_blocks;  /* written under data_lock (relaxed store); 0 once freed */
	memfs_pfn *blocks; /* in allocation order, of a vmalloc its pages by rising offset; from the heap */
	struct mf_cache *cache;		     /* of a slab: held until all is freed; NULL: by size */
	char cache_name[MEMFS_NAME_MAX + 1]; /* by which it is held */
	void **objects;	      /* of a slab, instead of blocks: in allocation order; from the heap */
	uint64_t object_size; /* of a slab: bytes of each that are the user's */
	char *policy;	      /* text: the policy= given, or the task's at the time; "node=N" when named */
	bool cleared;	      /* the pages (objects) were cleared when they were allocated */
	uint64_t *clear_map; /* data_lock: else a bit a page (object) that was cleared since; NULL none yet */
	pthread_rwlock_t data_lock; /* not ranked */
};

struct mf_live_request {
	enum mf_live_kind kind;
	struct mf_text name;  /* "-": generate one */
	uint64_t size, align; /* of a vmalloc: bytes, instead of count; align 0: a page */
	struct mf_text cache; /* of a slab: whose objects; empty: size, the bytes of each */
	bool huge;	      /* of a vmalloc */
	uint64_t count;	      /* blocks or objects, >= 1 */
	bool bulk;	      /* order 0 only */
	bool partial, touch;
	struct mf_page_request page; /* gfp, order, node, vma, irq, cancel */
	struct mf_policy vma_policy; /* what page.vma points at, if any */
	struct mf_text policy_text;  /* policy=, if page.vma is NULL and there is one: parsed for the task */
	struct mf_text task;	     /* empty: default */
	int cpu;		     /* -2: the task's own; else a CPU of the topology */
};

/*
 * Performs alloc/pages, alloc/vmalloc (whose size is rounded up to pages) or
 * alloc/slab (never partial; node0=a counts objects).
 * All or nothing unless partial (then at least one block, else -ENOMEM).  Fills
 * *reply with "NAME returned=N node0=a node1=b" and a newline, why on failure.
 * -EINVAL -EEXIST -ENOENT (task, node, cache) -ENOMEM -EINTR -ENOSPC (too many
 * allocations; of a vmalloc addresses or mappings, too).
 */
int mf_live_alloc(struct memfs *m, const struct mf_live_request *request, struct mf_outbuf *reply, char *why,
		  size_t why_size);

/* Frees it all (count 0) or its last count blocks.  -ENOENT, -EINVAL (more than it has; part of a range). */
int mf_live_free(struct memfs *m, struct mf_text name, uint64_t count, struct mf_outbuf *reply, char *why,
		 size_t why_size);

struct mf_live *mf_live_get(struct memfs *m, struct mf_text name); /* referenced; NULL: none */
void mf_live_ref(struct mf_live *live);
void mf_live_put(struct mf_live *live);
void mf_live_free_all(struct memfs *m); /* at the end: nobody is told */

uint64_t mf_live_bytes(struct mf_live *live); /* 0 once freed */
/* Pages its bytes lie on, each once; 0 once freed.  Those of objects are counted anew each time. */
uint64_t mf_live_pages(struct mf_live *live);
/* The memory itself.  Bytes moved, 0 at the end; -ENODEV once freed; writes past the end -ENOSPC. */
ssize_t mf_live_read(struct mf_live *live, void *buf, size_t size, uint64_t offset);
ssize_t mf_live_write(struct mf_live *live, const void *buf, size_t size, uint64_t offset);

/* live/NAME/placement and map, of a slab by rising pfn; -ENODEV once freed, -ENOMEM. */
int mf_live_placement(struct mf_live *live, struct mf_outbuf *out);
int mf_live_map(struct mf_live *live, struct mf_outbuf *out);

/* The named ranges there are, as they were at one moment; visited with no lock held.  -ENOMEM. */
int mf_live_for_each_vmalloc(struct memfs *m, void (*visit)(void *arg, const void *address, const char *name),
			     void *arg);

/* Called once by the file system: told (no lock held) that an allocation has been freed. */
typedef void mf_live_freed_fn(void *arg, uint64_t serial, const char *name);
void mf_live_on_freed(struct memfs *m, mf_live_freed_fn *freed, void *arg);

unsigned mf_live_check(struct memfs *m, struct mf_outbuf *out); /* every block used, none twice, sums */

#endif
