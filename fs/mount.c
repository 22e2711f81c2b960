/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The mount point before and after us: a mount that a killed memfs left behind
 * is detached, a live one is refused, and at the end the connection is cut.
 */
#include "fs.h"

#include <errno.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_STACKED 64 /* dead mounts on one point that are detached */

extern char **environ;

/* Undoes the octal escapes of /proc/self/mountinfo in place. */
static void unescape(char *text)
{
	char *to = text;

	for (; *text; text++) {
		if (text[0] == '\\' && text[1] && text[2] && text[3]) {
			*to++ = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0'));
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

/* Cuts the mount point and the type out of a line; false if it has none. */
static bool cut_line(char *line, char **point, char **type)
{
	char *rest = strstr(line, " - "), *save = NULL, *word = NULL;

	if (!rest)
		return false;
	*rest = '\0';
	*type = strtok_r(rest + 3, " ", &save);
	save = NULL;
	for (unsigned i = 0; i < 5; i++)
		word = strtok_r(i ? NULL : line, " ", &save);
	if (!*type || !word)
		return false;
	unescape(word);
	*point = word;
	return true;
}

/* The type of the uppermost mount at exactly @path; "" if it is no mount point. */
static void mounted_type(const char *path, char *type, size_t type_size)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char *line = NULL, *point, *found;
	size_t line_size = 0;

	*type = '\0';
	if (!file)
		return;
	while (getline(&line, &line_size, file) > 0)
		if (cut_line(line, &point, &found) && !strcmp(point, path))
			snprintf(type, type_size, "%s", found);
	free(line);
	fclose(file);
}

/* What an ordinary user has instead of umount2(). */
static int detach_by_helper(const char *path)
{
	char *const argv[] = { (char *)"fusermount3", (char *)"-u", (char *)"-z",
			       (char *)"--",	      (char *)path, NULL };
	pid_t pid;
	int status;

	if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ))
		return -EPERM;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -EPERM;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EPERM;
}

static int detach(const char *path)
{
	if (!umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW))
		return 0;
	return errno == EPERM ? detach_by_helper(path) : -errno;
}

static bool is_dead(int error)
{
	return error == ENOTCONN || error == ECONNABORTED;
}

/*
 * 0, or the errno that looking at @path gives.  The attributes of a mount of
 * ours may be cached beyond its death, so that one is asked by statfs too.
 */
static int look_at(const char *path, bool ours)
{
	struct stat stat_buf;
	struct statvfs statvfs_buf;

	if (stat(path, &stat_buf) || (ours && statvfs(path, &statvfs_buf)))
		return errno;
	return S_ISDIR(stat_buf.st_mode) ? 0 : ENOTDIR;
}

int fs_mount_heal(const char *path, char *why, size_t why_size)
{
	char type[64];
	int error = 0;

	for (unsigned i = 0; i < MAX_STACKED; i++) {
		bool ours;

		mounted_type(path, type, sizeof(type));
		ours = !strcmp(type, "fuse.memfs");
		error = look_at(path, ours);
		if (!error && ours) {
			snprintf(why, why_size, "%s: already mounted", path);
			return -EBUSY;
		}
		if (!error)
			return 0;
		if (!is_dead(error) || !ours)
			break;
		error = -detach(path);
		if (error)
			break;
	}
	snprintf(why, why_size, "%s: %s%s%s", path, strerror(error), *type ? ", mounted as " : "", type);
	return -error;
}

void fs_mount_cut(struct fuse_session *se, const char *path)
{
	struct pollfd fd = { .fd = fuse_session_fd(se), .events = 0 };

	/* POLLERR: the connection has ended already, and @path may be somebody else's by now. */
	if (fd.fd >= 0 && poll(&fd, 1, 0) == 1 && (fd.revents & POLLERR))
		return;
	/* An ordinary user may not: then libfuse's helper does it when the session is unmounted. */
	if (umount2(path, MNT_FORCE | MNT_DETACH | UMOUNT_NOFOLLOW))
		return;
}
