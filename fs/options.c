/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command line: memfs [-f] [-o opt,...] [SOURCE] MOUNTPOINT.
 *
 * Words of -o are of three kinds: those of every mount (a fixed list, most
 * without effect here), those of the file system (uid= gid= mode=), and all
 * others with a '=', which the engine judges: topology=, or a file of the tree
 * and its first value.
 */
#include "fs.h"

#include "base/parse.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USAGE_STATUS 2

/* What mount(8), mount.fuse3(8) and fstab(5) may pass and what changes nothing here. */
static const char *const ignored_words[] = {
	"defaults",	 "rw",	     "auto",	    "noauto",
	"user",		 "nouser",   "users",	    "owner",
	"group",	 "nofail",   "_netdev",	    "dev",
	"nodev",	 "suid",     "nosuid",	    "exec",
	"noexec",	 "async",    "sync",	    "atime",
	"noatime",	 "diratime", "nodiratime",  "relatime",
	"norelatime",	 "silent",   "allow_other", "default_permissions",
	"dirsync",	 "lazytime", "nolazytime",  "strictatime",
	"nostrictatime",
};
static const char *const ignored_prefixes[] = { "x-", "fsname=", "subtype=", "comment=", "context=" };

static const char help_text[] =
	"Usage: memfs [-f] [-o OPTION[,OPTION...]] [SOURCE] MOUNTPOINT\n"
	"Mounts a NUMA page allocator as files at MOUNTPOINT.  SOURCE is ignored.\n"
	"\n"
	"  -f, --foreground  stay in the foreground, log to standard error\n"
	"  -o OPTIONS        mount options, see below; may be repeated\n"
	"  -h, --help        print this and exit\n"
	"  -V, --version     print the version and exit\n"
	"\n"
	"Options:\n"
	"  topology=TEXT     auto, host, NODE[+NODE...] with NODE = [Nx]SIZE[:cpus=K],\n"
	"                    or @FILE (default auto)\n"
	"  PATH=VALUE        write VALUE to the file PATH of the tree at the start,\n"
	"                    as in weights/node0=3 or tune/tick_ms=0\n"
	"  uid=N, gid=N      owner and group of all files (default 0)\n"
	"  mode=OCTAL        what owner, group and others may at most do (default 0755)\n"
	"  ro                mount read-only\n"
	"allow_other, default_permissions, nosuid, nodev and noexec are always set.\n"
	"\n"
	"The file README of a mounted tree explains every file; see also memfs(1).\n";

static int bad_usage(const char *what, struct mf_text word)
{
	fprintf(stderr, "memfs: %s%.*s (try memfs --help)\n", what, (int)word.length, word.at);
	return USAGE_STATUS;
}

static bool is_ignored(struct mf_text word)
{
	for (size_t i = 0; i < sizeof(ignored_words) / sizeof(*ignored_words); i++)
		if (mf_text_is(word, ignored_words[i]))
			return true;
	for (size_t i = 0; i < sizeof(ignored_prefixes) / sizeof(*ignored_prefixes); i++) {
		size_t length = strlen(ignored_prefixes[i]);

		if (word.length >= length && !memcmp(word.at, ignored_prefixes[i], length))
			return true;
	}
	return false;
}

/* Octal with or without its leading 0, nothing but permission bits. */
static int parse_mode(struct mf_text text, unsigned *out)
{
	unsigned mode = 0;

	if (!text.length || text.length > 5)
		return -EINVAL;
	for (size_t i = 0; i < text.length; i++) {
		if (text.at[i] < '0' || text.at[i] > '7')
			return -EINVAL;
		mode = mode << 3 | (unsigned)(text.at[i] - '0');
	}
	if (mode > 0777)
		return -EINVAL;
	*out = mode;
	return 0;
}

static int parse_id(struct mf_text text, unsigned *out)
{
	uint64_t id;
	int error = mf_parse_u64(text, UINT32_MAX - 1, &id);

	if (!error)
		*out = (unsigned)id;
	return error;
}

/* 0 done, -EINVAL bad value, 1 not one of the file system's own. */
static int parse_own(struct mf_text key, struct mf_text value, struct fs_options *out)
{
	if (mf_text_is(key, "uid"))
		return parse_id(value, &out->uid);
	if (mf_text_is(key, "gid"))
		return parse_id(value, &out->gid);
	if (mf_text_is(key, "mode"))
		return parse_mode(value, &out->mode);
	return 1;
}

static int add_engine_word(struct fs_options *out, struct mf_text word)
{
	size_t old = out->engine ? strlen(out->engine) : 0;
	char *grown = realloc(out->engine, old + word.length + 2);

	if (!grown)
		return -ENOMEM;
	out->engine = grown;
	if (old)
		grown[old++] = ',';
	memcpy(grown + old, word.at, word.length);
	grown[old + word.length] = '\0';
	return 0;
}

static int parse_word(struct mf_text word, struct fs_options *out)
{
	struct mf_text value = word, key;
	int error;

	if (!word.length || is_ignored(word))
		return -1;
	if (mf_text_is(word, "ro")) {
		out->read_only = true;
		return -1;
	}
	key = mf_text_until(&value, '=');
	if (key.length == word.length || !key.length)
		return bad_usage("unknown option ", word);
	error = parse_own(key, value, out);
	if (error == 1)
		error = add_engine_word(out, word);
	if (error == -ENOMEM)
		return bad_usage("no memory for option ", word);
	return error ? bad_usage("bad value in option ", word) : -1;
}

static int parse_words(const char *words, struct fs_options *out)
{
	struct mf_text rest = mf_text_of(words);
	int status = -1;

	while (rest.length && status < 0)
		status = parse_word(mf_text_until(&rest, ','), out);
	return status;
}

/* An absolute path, also if its last component is a dead mount, which realpath() may refuse to look at. */
static char *absolute_path(const char *path)
{
	char *whole = realpath(path, NULL), *copy, *slash, *parent, *joined = NULL;
	int saved = errno;

	if (whole || (saved != ENOTCONN && saved != ECONNABORTED))
		return whole;
	copy = strdup(path);
	if (!copy)
		return NULL;
	while (strlen(copy) > 1 && copy[strlen(copy) - 1] == '/')
		copy[strlen(copy) - 1] = '\0';
	slash = strrchr(copy, '/');
	if (slash)
		*slash = '\0';
	parent = realpath(!slash ? "." : slash == copy ? "/" : copy, NULL);
	if (parent && asprintf(&joined, "%s/%s", parent[1] ? parent : "", slash ? slash + 1 : copy) < 0)
		joined = NULL;
	free(parent);
	free(copy);
	errno = saved;
	return joined;
}

static int parse_arguments(int argc, char **argv, struct fs_options *out)
{
	if (argc == 0)
		return bad_usage("no mount point given", mf_text_of(""));
	if (argc > 2)
		return bad_usage("too many arguments, from ", mf_text_of(argv[2]));
	out->mountpoint = absolute_path(argv[argc - 1]);
	if (!out->mountpoint) {
		fprintf(stderr, "memfs: %s: %s\n", argv[argc - 1], strerror(errno));
		return 1;
	}
	return -1;
}

int fs_options_parse(int argc, char **argv, struct fs_options *out)
{
	static const struct option long_options[] = {
		{ "foreground", no_argument, NULL, 'f' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int option, status = -1;

	*out = (struct fs_options){ .mode = 0755 };
	opterr = 0;
	while (status < 0 && (option = getopt_long(argc, argv, ":fo:hV", long_options, NULL)) != -1) {
		switch (option) {
		case 'f':
			out->foreground = true;
			break;
		case 'o':
			status = parse_words(optarg, out);
			break;
		case 'h':
			fputs(help_text, stdout);
			return 0;
		case 'V':
			printf("memfs %s\n", memfs_version());
			return 0;
		case ':':
			status = bad_usage("a value is missing after ", mf_text_of(argv[optind - 1]));
			break;
		default:
			status = bad_usage("unknown option ", mf_text_of(argv[optind - 1]));
		}
	}
	return status >= 0 ? status : parse_arguments(argc - optind, argv + optind, out);
}

void fs_options_free(struct fs_options *options)
{
	free(options->engine);
	free(options->mountpoint);
}
