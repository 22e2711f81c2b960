/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Every parser of a text: the first byte chooses which, the rest is its
 * parameters and the text.  What is taken must be what a plain reference
 * takes, and must come back unchanged through its printer; what is refused
 * must leave the result alone and say why.
 */
#include "fuzz.h"

#include "ctl/ctl_internal.h"

#include <errno.h>
#include <inttypes.h>

#define UNTOUCHED UINT64_C(0xa5a5a5a5a5a5a5a5)

static struct mf_text rest_of(const struct fuzz_input *input)
{
	return (struct mf_text){ (const char *)input->at, input->left };
}

static struct mf_text text_of(const struct mf_outbuf *out)
{
	return (struct mf_text){ out->data ? out->data : "", out->length };
}

/* --- numbers --- */

/* What the C library makes of the text, once everything it takes and the grammar does not is out. */
static bool reference_u64(struct mf_text text, uint64_t max, uint64_t *out)
{
	char copy[64], *end;
	size_t sign = text.length && text.at[0] == '+';

	if (text.length <= sign || text.length >= sizeof(copy) || text.at[sign] < '0' || text.at[sign] > '9')
		return false;
	if (text.length > sign + 1 && text.at[sign] == '0' && (text.at[sign + 1] | 0x20) == 'b')
		return false;
	memcpy(copy, text.at, text.length);
	copy[text.length] = '\0';
	errno = 0;
	*out = strtoull(copy, &end, 0);
	return errno == 0 && end == copy + text.length && *out <= max;
}

/* A limit out of eight bytes: any power of two less one, so that both sides of it are tried. */
static uint64_t limit_of(struct fuzz_input *input)
{
	return UINT64_MAX >> fuzz_byte(input) % 64;
}

static void check_printed_u64(const char *format_of_base, uint64_t value)
{
	char text[40];
	uint64_t again = UNTOUCHED;

	if (!strcmp(format_of_base, "x"))
		snprintf(text, sizeof(text), "0x%" PRIx64, value);
	else if (!strcmp(format_of_base, "o"))
		snprintf(text, sizeof(text), "0%" PRIo64, value);
	else
		snprintf(text, sizeof(text), "+%" PRIu64, value);
	FUZZ_CHECK(mf_parse_u64(mf_text_of(text), UINT64_MAX, &again) == 0 && again == value);
}

static void fuzz_u64(struct fuzz_input *input)
{
	uint64_t max = limit_of(input), value = UNTOUCHED, wanted = 0;
	struct mf_text text = rest_of(input);
	int error = mf_parse_u64(text, max, &value);

	if (text.length < 60)
		FUZZ_CHECK((error == 0) == reference_u64(text, max, &wanted));
	if (error) {
		FUZZ_CHECK(error == -EINVAL && value == UNTOUCHED);
		return;
	}
	FUZZ_CHECK(text.length >= 60 || value == wanted);
	FUZZ_CHECK(value <= max);
	check_printed_u64("u", value);
	check_printed_u64("x", value);
	check_printed_u64("o", value);
}

/* Left shift of a suffix, -1 if it is none. */
static int shift_of(char suffix)
{
	const char *known = "kmgt", *at = suffix ? strchr(known, suffix | 0x20) : NULL;

	return at && ((suffix >= 'A' && suffix <= 'Z') || (suffix >= 'a' && suffix <= 'z'))
		       ? 10 * (int)(at - known + 1)
		       : -1;
}

static void fuzz_size(struct fuzz_input *input)
{
	uint64_t max = limit_of(input), value = UNTOUCHED, wanted = 0;
	struct mf_text text = rest_of(input), head = text;
	int error = mf_parse_size(text, max, &value);
	int shift = text.length ? shift_of(text.at[text.length - 1]) : -1;
	char printed[32];

	if (shift > 0)
		head.length--;
	if (mf_parse_u64(head, shift > 0 ? UINT64_MAX >> shift : UINT64_MAX, &wanted))
		wanted = UNTOUCHED;
	else if (shift > 0)
		wanted <<= shift;
	if (error) {
		FUZZ_CHECK(error == -EINVAL && value == UNTOUCHED);
		FUZZ_CHECK(wanted == UNTOUCHED || wanted > max);
		return;
	}
	FUZZ_CHECK(value == wanted && value <= max);
	snprintf(printed, sizeof(printed), "%" PRIu64, value);
	FUZZ_CHECK(mf_parse_size(mf_text_of(printed), max, &wanted) == 0 && wanted == value);
}

static void fuzz_i64(struct fuzz_input *input)
{
	int64_t max = (int64_t)(limit_of(input) >> 1), min = -max - (int64_t)(fuzz_byte(input) & 1);
	int64_t value = (int64_t)UNTOUCHED, again = 0;
	int error = mf_parse_i64(rest_of(input), min, max, &value);
	char printed[32];

	if (error) {
		FUZZ_CHECK(error == -EINVAL && value == (int64_t)UNTOUCHED);
		return;
	}
	FUZZ_CHECK(value >= min && value <= max);
	snprintf(printed, sizeof(printed), "%" PRId64, value);
	FUZZ_CHECK(mf_parse_i64(mf_text_of(printed), min, max, &again) == 0 && again == value);
}

static void fuzz_bool(struct fuzz_input *input)
{
	bool values[2] = { false, true };
	int errors[2];

	for (int i = 0; i < 2; i++)
		errors[i] = mf_parse_bool(rest_of(input), &values[i]);
	FUZZ_CHECK(errors[0] == errors[1]);
	FUZZ_CHECK(errors[0] ? !values[0] && values[1] : values[0] == values[1]);
}

/* --- lists, names, words --- */

static void fuzz_list(struct fuzz_input *input)
{
	unsigned max_bit = fuzz_short(input) % MF_MAX_CPUS, words = max_bit / 64 + 1;
	uint64_t bits[MF_CPU_WORDS + 1], again[MF_CPU_WORDS + 1];
	struct mf_outbuf out = MF_OUTBUF_INIT;
	int error;

	memset(bits, 0xa5, sizeof(bits));
	memset(again, 0xa5, sizeof(again));
	error = mf_parse_list(rest_of(input), max_bit, bits);
	FUZZ_CHECK(bits[words] == UNTOUCHED);
	if (error) {
		FUZZ_CHECK(error == -EINVAL && memcmp(bits, again, sizeof(bits)) == 0);
		return;
	}
	FUZZ_CHECK(max_bit % 64 == 63 || bits[max_bit / 64] >> (max_bit % 64 + 1) == 0);
	mf_outbuf_list(&out, bits, max_bit + 1);
	FUZZ_CHECK(mf_parse_list(text_of(&out), max_bit, again) == 0);
	FUZZ_CHECK(memcmp(bits, again, sizeof(bits)) == 0);
	mf_outbuf_free(&out);
}

static void fuzz_nodelist(struct fuzz_input *input)
{
	mf_nodemask mask = UNTOUCHED, again = 0;
	struct mf_outbuf out = MF_OUTBUF_INIT;
	uint64_t bits = 0;
	int error = mf_parse_nodelist(rest_of(input), &mask);

	FUZZ_CHECK(error == mf_parse_list(rest_of(input), 63, &bits));
	if (error) {
		FUZZ_CHECK(mask == UNTOUCHED);
		return;
	}
	FUZZ_CHECK(mask == bits);
	mf_outbuf_nodelist(&out, mask);
	FUZZ_CHECK(mf_parse_nodelist(text_of(&out), &again) == 0 && again == mask);
	mf_outbuf_free(&out);
}

static void fuzz_name(struct fuzz_input *input)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-";
	struct mf_text text = rest_of(input);
	bool valid = text.length >= 1 && text.length <= 64;

	for (size_t i = 0; i < text.length; i++)
		valid = valid && text.at[i] && strchr(letters, text.at[i]);
	if (mf_text_is(text, ".") || mf_text_is(text, ".."))
		valid = false;
	FUZZ_CHECK(mf_name_is_valid(text) == valid);
}

/* However a text is cut up, the pieces are in it, in order, and nothing but separators is lost. */
static void fuzz_cutting(struct fuzz_input *input)
{
	char separator = (char)fuzz_byte(input);
	struct mf_text text = rest_of(input), rest = text, word;
	size_t cut = 0, separators = 0;

	for (size_t i = 0; i < text.length; i++)
		separators += text.at[i] == separator;
	while (rest.length) {
		word = mf_text_until(&rest, separator);
		FUZZ_CHECK(!memchr(word.at, separator, word.length));
		cut += word.length;
	}
	FUZZ_CHECK(cut + separators == text.length);
	rest = text;
	while ((word = mf_text_word(&rest)).length) {
		FUZZ_CHECK(word.at >= text.at && word.at + word.length <= text.at + text.length);
		FUZZ_CHECK(!memchr(word.at, ' ', word.length));
	}
}

/* --- policies --- */

static mf_nodemask mask_of(struct fuzz_input *input)
{
	mf_nodemask low = fuzz_byte(input), high = fuzz_byte(input);

	return low | high << 56;
}

static void check_rotation(const struct mf_policy *policy, unsigned seed)
{
	struct mf_rotation steps = MF_ROTATION_INIT, jump = MF_ROTATION_INIT;
	struct mf_policy_shares shares;
	struct mf_weights weights;
	uint64_t sum = 0, by_node[64] = { 0 };
	unsigned n = seed % 600;

	for (unsigned i = 0; i < 64; i++)
		weights.of[i] = (uint8_t)(1 + (seed * 31 + i * 17) % 255);
	mf_policy_bulk(policy, &weights, jump, n, &shares);
	mf_policy_advance(policy, &weights, &jump, n);
	for (unsigned i = 0; i < n; i++) {
		int next = mf_policy_peek(policy, &weights, steps);
		int node = mf_policy_step(policy, &weights, &steps);

		FUZZ_CHECK(node == next && mf_node_isset(policy->nodes, node));
		by_node[node]++;
	}
	FUZZ_CHECK(steps.il_prev == jump.il_prev && steps.il_weight == jump.il_weight);
	for (unsigned i = 0; i < shares.nr; i++) {
		FUZZ_CHECK(by_node[shares.node[i]] == shares.share[i]);
		sum += shares.share[i];
	}
	FUZZ_CHECK(sum == n);
}

/* Printed and parsed again: the same policy, and the same text. */
static void check_policy_text(const struct mf_policy *policy, const struct mf_policy_context *context)
{
	struct mf_outbuf first = MF_OUTBUF_INIT, second = MF_OUTBUF_INIT;
	struct mf_policy again;

	mf_policy_print(policy, &first);
	FUZZ_CHECK(mf_policy_parse(text_of(&first), context, &again, NULL, 0) == 0);
	FUZZ_CHECK(again.mode == policy->mode && again.flags == policy->flags);
	FUZZ_CHECK(again.nodes == policy->nodes);
	mf_policy_print(&again, &second);
	FUZZ_CHECK(first.length == second.length && memcmp(first.data, second.data, first.length) == 0);
	mf_outbuf_free(&first);
	mf_outbuf_free(&second);
}

static void fuzz_policy(struct fuzz_input *input)
{
	mf_nodemask exist = mask_of(input) | 1, memory = (mask_of(input) | 1) & exist;
	mf_nodemask allowed = mask_of(input) & exist;
	struct mf_policy_context context = { exist, memory, allowed };
	unsigned seed = fuzz_short(input);
	struct mf_policy policy, before;
	char why[128] = "";
	int error;

	memset(&policy, 0xa5, sizeof(policy));
	before = policy;
	error = mf_policy_parse(rest_of(input), &context, &policy, why, sizeof(why));
	if (error) {
		FUZZ_CHECK(error == -EINVAL && memcmp(&policy, &before, sizeof(policy)) == 0);
		fuzz_check_reason(why, sizeof(why));
		return;
	}
	FUZZ_CHECK((unsigned)policy.mode < MF_NR_MPOL_MODES);
	FUZZ_CHECK(!(policy.nodes & ~memory));
	FUZZ_CHECK(policy.nodes || policy.mode == MF_MPOL_DEFAULT || policy.mode == MF_MPOL_LOCAL);
	check_policy_text(&policy, &context);
	if (mf_policy_interleaves(&policy))
		check_rotation(&policy, seed);
	context.allowed = (allowed ^ seed) & exist;
	before = policy;
	mf_policy_rebind(&policy, &context);
	FUZZ_CHECK(!(policy.nodes & ~memory) && policy.mode == before.mode && policy.user == before.user);
	FUZZ_CHECK(policy.nodes || !before.nodes);
}

/* --- flags and commands --- */

static void fuzz_gfp(struct fuzz_input *input)
{
	memfs_gfp any = (fuzz_short(input) | fuzz_byte(input) << 16) & ((MEMFS___GFP_ACCOUNT << 1) - 1);
	memfs_gfp gfp = ~0u, again = 0;
	struct mf_outbuf out = MF_OUTBUF_INIT;

	if (any) {
		mf_gfp_print(any, &out);
		FUZZ_CHECK(mf_gfp_parse(text_of(&out), &again) == 0 && again == any);
		mf_outbuf_clear(&out);
	}
	if (mf_gfp_parse(rest_of(input), &gfp)) {
		FUZZ_CHECK(gfp == ~0u);
	} else {
		mf_gfp_print(gfp, &out);
		FUZZ_CHECK(mf_gfp_parse(text_of(&out), &again) == 0 && again == gfp);
	}
	mf_outbuf_free(&out);
}

static const struct mf_topo *some_topology(void)
{
	static const char lines[] = "node 1 cpus 0-3 zones DMA=2M,Normal=4M\nnode 5 cpus 9 zones -\n";
	static struct mf_topo *topo;

	if (!topo)
		FUZZ_CHECK(mf_topo_parse_file(lines, sizeof(lines) - 1, &topo, NULL, 0) == 0);
	return topo;
}

static void fuzz_pages_command(struct fuzz_input *input)
{
	const struct mf_topo *topo = some_topology();
	struct mf_text text = rest_of(input);
	struct mf_live_request request;
	char why[128] = "";
	int error = mf_ctl_parse_pages(topo, text, &request, why, sizeof(why));

	mf_ctl_alloc_waits(text);
	if (error) {
		FUZZ_CHECK(error == -EINVAL || error == -ENOENT);
		FUZZ_CHECK(why[0] && memchr(why, '\0', sizeof(why)));
		return;
	}
	FUZZ_CHECK(mf_text_is(request.name, "-") || mf_name_is_valid(request.name));
	FUZZ_CHECK(request.count >= 1 && request.page.order <= MEMFS_MAX_PAGE_ORDER);
	FUZZ_CHECK(request.page.node == MF_NODE_BY_POLICY || request.page.node == 1);
	FUZZ_CHECK(request.page.node == MF_NODE_BY_POLICY || !request.policy_text.length);
	FUZZ_CHECK(request.cpu == MF_CPU_OF_TASK || topo->cpu_node[request.cpu] >= 0);
	FUZZ_CHECK(!request.bulk || request.page.order == 0);
}

static void fuzz_vmalloc_command(struct fuzz_input *input)
{
	const struct mf_topo *topo = some_topology();
	struct mf_live_request request;
	char why[128] = "";
	int error = mf_ctl_parse_vmalloc(topo, rest_of(input), &request, why, sizeof(why));

	if (error) {
		FUZZ_CHECK(error == -EINVAL || error == -ENOENT);
		FUZZ_CHECK(why[0] && memchr(why, '\0', sizeof(why)));
		return;
	}
	FUZZ_CHECK(mf_text_is(request.name, "-") || mf_name_is_valid(request.name));
	FUZZ_CHECK(request.kind == MF_LIVE_VMALLOC && request.size >= 1 && request.size <= INT64_MAX);
	FUZZ_CHECK(!(request.align & (request.align - 1)));
	FUZZ_CHECK(request.page.node == MF_NODE_BY_POLICY || request.page.node == 1);
	FUZZ_CHECK(request.page.node == MF_NODE_BY_POLICY || !request.policy_text.length);
	FUZZ_CHECK(!request.page.order && !request.page.irq && !request.partial && !request.bulk);
}

static void fuzz_slab_command(struct fuzz_input *input)
{
	const struct mf_topo *topo = some_topology();
	struct mf_live_request request;
	char why[128] = "";
	int error = mf_ctl_parse_slab(topo, rest_of(input), &request, why, sizeof(why));

	if (error) {
		FUZZ_CHECK(error == -EINVAL || error == -ENOENT);
		FUZZ_CHECK(why[0] && memchr(why, '\0', sizeof(why)));
		return;
	}
	FUZZ_CHECK(mf_text_is(request.name, "-") || mf_name_is_valid(request.name));
	FUZZ_CHECK(request.kind == MF_LIVE_SLAB && request.count >= 1);
	FUZZ_CHECK(request.cache.length ? mf_name_is_valid(request.cache) && !request.size
					: request.size >= 1);
	FUZZ_CHECK(request.page.node == MF_NODE_BY_POLICY || request.page.node == 1);
	FUZZ_CHECK(!request.page.order && !request.page.irq && !request.partial && !request.bulk &&
		   !request.touch && !request.policy_text.length);
}

static void fuzz_create_command(struct fuzz_input *input)
{
	struct mf_cache_request request, before;
	char why[128] = "";
	int error;

	memset(&request, 0xa5, sizeof(request));
	before = request;
	error = mf_ctl_parse_cache(rest_of(input), &request, why, sizeof(why));
	if (error) {
		FUZZ_CHECK(error == -EINVAL && memcmp(&request, &before, sizeof(request)) == 0);
		FUZZ_CHECK(why[0] && memchr(why, '\0', sizeof(why)));
		return;
	}
	FUZZ_CHECK(mf_name_is_valid(request.name) && request.size >= 1 && !request.ctor);
	FUZZ_CHECK(!(request.align & (request.align - 1)) && !(request.flags >> MF_NR_SLAB_FLAGS));
}

static void fuzz_free_command(struct fuzz_input *input)
{
	struct mf_text name = { NULL, 0 };
	uint64_t count = UNTOUCHED;
	char why[128] = "";

	if (mf_ctl_parse_free(rest_of(input), &name, &count, why, sizeof(why)))
		FUZZ_CHECK(!name.at && count == UNTOUCHED && why[0] && memchr(why, '\0', sizeof(why)));
	else
		FUZZ_CHECK(mf_name_is_valid(name) && count != UNTOUCHED);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	/* By a letter, so that the corpus can be read. */
	static const struct {
		char letter;
		void (*run)(struct fuzz_input *input);
	} parsers[] = {
		{ 'u', fuzz_u64 },
		{ 's', fuzz_size },
		{ 'i', fuzz_i64 },
		{ 'b', fuzz_bool },
		{ 'l', fuzz_list },
		{ 'n', fuzz_nodelist },
		{ 'a', fuzz_name },
		{ 'c', fuzz_cutting },
		{ 'p', fuzz_policy },
		{ 'g', fuzz_gfp },
		{ 'A', fuzz_pages_command },
		{ 'F', fuzz_free_command },
		{ 'V', fuzz_vmalloc_command },
		{ 'S', fuzz_slab_command },
		{ 'C', fuzz_create_command },
	};
	struct fuzz_input input = { bytes, length };
	unsigned letter = fuzz_byte(&input);

	for (size_t i = 0; i < sizeof(parsers) / sizeof(parsers[0]); i++)
		if (letter == (unsigned)parsers[i].letter)
			parsers[i].run(&input);
	return 0;
}
