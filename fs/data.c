/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * live/NAME/data: the bytes of an allocation's pages.
 *
 * The kernel caches them (no direct I/O), so that mmap works: a store through a
 * shared mapping comes back here as a write at msync, at close or under memory
 * pressure.  The reference a handle holds reaches exactly one allocation, so a
 * write that comes after the free gets -ENODEV and never touches pages that
 * belong to somebody else by then.
 */
#include "fs.h"

#include "engine/live.h"

#include <errno.h>
#include <stdlib.h>

void fs_data_read(fuse_req_t req, struct mf_live *live, size_t size, off_t offset)
{
	char *bytes = malloc(size ? size : 1);
	ssize_t done;

	if (!bytes) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	done = mf_live_read(live, bytes, size, (uint64_t)offset);
	if (done < 0)
		fuse_reply_err(req, (int)-done);
	else
		fuse_reply_buf(req, bytes, (size_t)done);
	free(bytes);
}

void fs_data_write(fuse_req_t req, struct mf_live *live, const char *bytes, size_t size, off_t offset)
{
	ssize_t done = mf_live_write(live, bytes, size, (uint64_t)offset);

	if (done < 0)
		fuse_reply_err(req, (int)-done);
	else
		fuse_reply_write(req, (size_t)done);
}
