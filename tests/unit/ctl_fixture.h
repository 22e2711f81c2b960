/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reading and writing control files by path, for the tests of src/ctl/.
 */
#ifndef MF_TESTS_CTL_FIXTURE_H
#define MF_TESTS_CTL_FIXTURE_H

#include "ctl/ctl.h"
#include "engine_fixture.h"

#include <unistd.h>

/* An instance on a topology FILE of these lines. */
static inline struct memfs *fixture_file(const char *lines)
{
	char path[] = "/tmp/memfs-topology-XXXXXX", options[64];
	int fd = mkstemp(path);
	struct memfs *m;

	if (fd < 0 || write(fd, lines, strlen(lines)) != (ssize_t)strlen(lines))
		abort();
	close(fd);
	snprintf(options, sizeof(options), "topology=@%s", path);
	m = fixture(options);
	unlink(path);
	return m;
}

/* What a file holds, to be freed; on an error its number and a newline. */
static inline char *content(struct memfs *m, const char *path)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	struct mf_ctl_node node;
	int error = mf_ctl_resolve(m, mf_text_of(path), &node);

	if (!error)
		error = mf_ctl_show(m, &node, &out);
	if (error) {
		mf_outbuf_clear(&out);
		mf_outbuf_printf(&out, "error %d\n", -error);
	}
	return out.data ? out.data : strdup("");
}

/* The reply of the last put. */
static char put_reply[1024];

static inline int put_bytes(struct memfs *m, const char *path, const char *bytes, size_t length)
{
	struct mf_outbuf reply = MF_OUTBUF_INIT;
	struct mf_ctl_node node;
	int error = mf_ctl_resolve(m, mf_text_of(path), &node);

	put_reply[0] = '\0';
	if (error)
		return error;
	error = mf_ctl_store(m, &node, bytes, length, &reply, NULL);
	snprintf(put_reply, sizeof(put_reply), "%s", reply.length ? reply.data : "");
	mf_outbuf_free(&reply);
	return error;
}

static inline int put(struct memfs *m, const char *path, const char *text)
{
	return put_bytes(m, path, text, strlen(text));
}

static inline bool holds(struct memfs *m, const char *path, const char *wanted)
{
	char *text = content(m, path);
	bool same = strcmp(text, wanted) == 0;

	if (!same)
		fprintf(stderr, "%s: \"%s\" instead of \"%s\"\n", path, text, wanted);
	free(text);
	return same;
}

static inline bool contains(struct memfs *m, const char *path, const char *wanted)
{
	char *text = content(m, path);
	bool found = strstr(text, wanted) != NULL;

	if (!found)
		fprintf(stderr, "%s: no \"%s\" in \"%s\"\n", path, wanted, text);
	free(text);
	return found;
}

#define ASSERT_HOLDS(m, path, wanted) CU_ASSERT(holds(m, path, wanted))
#define ASSERT_CONTAINS(m, path, wanted) CU_ASSERT(contains(m, path, wanted))

#endif
