/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Restartable sequences on the registration that glibc (2.35 and later) makes
 * for every thread.  A sequence reads what it needs, checks that it still runs
 * on the CPU it was prepared for, and ends with one store.  If the thread is
 * preempted, migrated or interrupted by a signal before that store, the kernel
 * restarts it at the abort label: all or nothing, without a locked instruction.
 *
 * The data of a CPU begins with an owner word: the CPU's number while its own
 * sequences may use the data, MF_RSEQ_SHUT otherwise.  One compare with the
 * number the kernel keeps for the running thread answers both questions: am I
 * still on that CPU, and may I?  Another CPU that wants the data stores
 * MF_RSEQ_SHUT and calls mf_rseq_fence(cpu): afterwards no sequence that saw
 * it open is running or can commit on that CPU.
 *
 * x86-64 only; elsewhere, under thread sanitizer, or where glibc did not
 * register, mf_rseq_usable() is false and callers take their lock.
 */
#ifndef MF_PLAT_RSEQ_H
#define MF_PLAT_RSEQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MF_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) && !defined(MF_TSAN)
#define MF_TSAN 1
#endif

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(MF_TSAN) && !defined(MF_NO_RSEQ)
#if __GLIBC_PREREQ(2, 35)
#define MF_HAVE_RSEQ 1
#endif
#endif
#ifndef MF_HAVE_RSEQ
#define MF_HAVE_RSEQ 0
#endif

#define MF_RSEQ_SHUT UINT32_MAX

enum mf_rseq_result {
	MF_RSEQ_DONE,
	MF_RSEQ_EMPTY, /* nothing to take, or no room */
	MF_RSEQ_MISS,  /* not this CPU's to use, something changed, or aborted */
};

/*
 * A stack of words that grows downwards: [top, bottom) are its entries, the
 * newest at top, so that taking several is one copy in rising order.  Pushing
 * stops at top == limit.
 */
struct mf_rseq_stack {
	uint32_t *top;
	uint32_t *bottom;
	uint32_t *limit;
};

/*
 * A sheaf: an array of pointers behind one word that holds how many there are
 * (the low 16 bits) and how many were ever taken (the rest), so that one
 * store commits both.  Its layout is the slab's; these are the offsets.
 */
struct mf_sheaf;
#define MF_RSEQ_SHEAF_ROOM 8	   /* uint16_t; the word is at 0 */
#define MF_RSEQ_SHEAF_OBJECT 24	   /* void *[] */
#define MF_RSEQ_SHEAF_CPU_SHIFT 10 /* of a CPU's entry: its owner word at 0, a tag and main here */
#define MF_RSEQ_SHEAF_CPU_TAG 4
#define MF_RSEQ_SHEAF_CPU_MAIN 8
#define MF_RSEQ_SHEAF_TAKE 65535 /* to the word: one less, one more taken */

/* Once a process, before the first fence: registers for the fence too.  False: use locks. */
bool mf_rseq_usable(void);

/* One more than the highest CPU number this host can ever have; at least 1. */
unsigned mf_rseq_cpu_limit(void);

/* After it returns, no sequence begun before on @cpu is still running (membarrier). */
void mf_rseq_fence(int cpu);

#if MF_HAVE_RSEQ
#include <sys/rseq.h>

/* Offsets in struct rseq, part of the kernel's ABI. */
#define MF_RSEQ_CPU_START "0"
#define MF_RSEQ_CPU "4"
#define MF_RSEQ_CS "8"

static inline int mf_rseq_cpu(void)
{
	int cpu;

	__asm__ volatile("movl %%fs:" MF_RSEQ_CPU_START "(%1), %0" : "=r"(cpu) : "r"(__rseq_offset));
	return cpu;
}

/*
 * The frame of a sequence: a descriptor {version, flags, start, length, abort}
 * in its own section, the store that arms it, and the abort entry, which must
 * follow the signature glibc registered.
 */
#define MF_RSEQ_ARM \
	".pushsection .data.rel.ro.mf_rseq, \"aw\"\n\t" \
	".balign 32\n" \
	"3:\n\t" \
	".long 0, 0\n\t" \
	".quad 1f, 2f - 1f, 4f\n\t" \
	".popsection\n\t" \
	"leaq 3b(%%rip), %%rax\n\t" \
	"movq %%rax, %%fs:" MF_RSEQ_CS "(%[rseq])\n" \
	"1:\n\t"

#define MF_RSEQ_BEGIN \
	MF_RSEQ_ARM \
	"movl %[owner], %%eax\n\t" \
	"cmpl %%eax, %%fs:" MF_RSEQ_CPU "(%[rseq])\n\t" \
	"jne %l[miss]\n\t"

/*
 * The same for the entry of the CPU it runs on, which only the sequence itself
 * can be sure of: %r11 is its address.  Of zeroed entries only the first looks open.
 */
#define MF_RSEQ_BEGIN_OWN \
	MF_RSEQ_ARM \
	"movl %%fs:" MF_RSEQ_CPU_START "(%[rseq]), %%r11d\n\t" \
	"shlq %[shift], %%r11\n\t" \
	"addq %[cpus], %%r11\n\t" \
	"movl (%%r11), %%eax\n\t" \
	"cmpl %%eax, %%fs:" MF_RSEQ_CPU "(%[rseq])\n\t" \
	"jne %l[miss]\n\t"

#define MF_RSEQ_END \
	"2:\n\t" \
	".pushsection .text.unlikely, \"ax\"\n\t" \
	".byte 0x0f, 0xb9, 0x3d\n\t" \
	".long 0x53053053\n" \
	"4:\n\t" \
	"jmp %l[miss]\n\t" \
	".popsection\n\t"

/* Takes the newest entry.  @rseq is __rseq_offset, which callers keep at hand. */
static inline enum mf_rseq_result mf_rseq_pop(ptrdiff_t rseq, const uint32_t *owner,
					      struct mf_rseq_stack *stack, uint32_t *out)
{
	__asm__ goto volatile(MF_RSEQ_BEGIN "movq %[top], %%rax\n\t"
					    "cmpq %[bottom], %%rax\n\t"
					    "je %l[empty]\n\t"
					    "movl (%%rax), %%ecx\n\t"
					    "movl %%ecx, %[out]\n\t"
					    "addq $4, %%rax\n\t"
					    "movq %%rax, %[top]\n" /* commit */
			      MF_RSEQ_END
			      :
			      : [rseq] "r"(rseq), [owner] "m"(*owner), [out] "m"(*out), [top] "m"(stack->top),
				[bottom] "m"(stack->bottom)
			      : "rax", "rcx", "memory", "cc"
			      : miss, empty);
	return MF_RSEQ_DONE;
miss:
	return MF_RSEQ_MISS;
empty:
	return MF_RSEQ_EMPTY;
}

/* Puts an entry on top unless top has reached limit. */
static inline enum mf_rseq_result mf_rseq_push(ptrdiff_t rseq, const uint32_t *owner,
					       struct mf_rseq_stack *stack, uint32_t value)
{
	__asm__ goto volatile(MF_RSEQ_BEGIN "movq %[top], %%rax\n\t"
					    "cmpq %[limit], %%rax\n\t"
					    "je %l[full]\n\t"
					    "movl %[value], -4(%%rax)\n\t"
					    "addq $-4, %%rax\n\t"
					    "movq %%rax, %[top]\n" /* commit */
			      MF_RSEQ_END
			      :
			      : [rseq] "r"(rseq), [owner] "m"(*owner), [value] "r"(value),
				[top] "m"(stack->top), [limit] "m"(stack->limit)
			      : "rax", "memory", "cc"
			      : miss, full);
	return MF_RSEQ_DONE;
miss:
	return MF_RSEQ_MISS;
full:
	return MF_RSEQ_EMPTY;
}

/*
 * Copies @count entries from @from to @to and then stores top = new_top,
 * provided top still is old_top and nobody has visited since the caller read
 * *visits: everything else was computed from values that only visits change.
 */
static inline enum mf_rseq_result mf_rseq_copy(ptrdiff_t rseq, const uint32_t *owner, const uint32_t *visits,
					       uint32_t old_visits, uint32_t **top, uint32_t *old_top,
					       uint32_t *new_top, uint32_t *to, const uint32_t *from,
					       uint64_t count)
{
	__asm__ goto volatile(MF_RSEQ_BEGIN "cmpl %[old_visits], %[visits]\n\t"
					    "jne %l[miss]\n\t"
					    "cmpq %[old_top], %[top]\n\t"
					    "jne %l[miss]\n\t"
					    "movq %[to], %%rdi\n\t"
					    "movq %[from], %%rsi\n\t"
					    "movq %[count], %%rcx\n\t"
					    "cld\n\t"
					    "rep movsl\n\t"
					    "movq %[new_top], %[top]\n" /* commit */
			      MF_RSEQ_END
			      :
			      : [rseq] "r"(rseq), [owner] "m"(*owner), [visits] "m"(*visits),
				[old_visits] "r"(old_visits), [top] "m"(*top), [old_top] "r"(old_top),
				[new_top] "r"(new_top), [to] "r"(to), [from] "r"(from), [count] "r"(count)
			      : "rax", "rcx", "rsi", "rdi", "memory", "cc"
			      : miss);
	return MF_RSEQ_DONE;
miss:
	return MF_RSEQ_MISS;
}

/*
 * Takes the newest object of the sheaf that *main points to.  It comes in a
 * register, as a detour by memory would be on every user's way.  The word is
 * loaded and stored whole: what loads a part of it later waits longer.  Registers
 * that carry no arguments spare the callers moves.
 */
static inline enum mf_rseq_result mf_rseq_sheaf_pop(ptrdiff_t rseq, const uint32_t *owner,
						    struct mf_sheaf *const *main, void **out)
{
	void *object;

	__asm__ goto volatile(MF_RSEQ_BEGIN "movq %[main], %%rax\n\t"
					    "movq (%%rax), %%r10\n\t"
					    "movzwl %%r10w, %%r11d\n\t"
					    "testl %%r11d, %%r11d\n\t"
					    "je %l[empty]\n\t"
					    "movq %c[first] - 8(%%rax, %%r11, 8), %[object]\n\t"
					    "addq %[take], %%r10\n\t"
					    "movq %%r10, (%%rax)\n" /* commit */
			      MF_RSEQ_END
			      : [object] "=&r"(object)
			      : [rseq] "r"(rseq), [owner] "m"(*owner), [main] "m"(*main),
				[first] "i"(MF_RSEQ_SHEAF_OBJECT), [take] "i"(MF_RSEQ_SHEAF_TAKE)
			      : "rax", "r10", "r11", "memory", "cc"
			      : miss, empty);
	*out = object;
	return MF_RSEQ_DONE;
miss:
	return MF_RSEQ_MISS;
empty:
	return MF_RSEQ_EMPTY;
}

/* Puts an object into the sheaf that *main points to, unless it holds all it may. */
static inline enum mf_rseq_result mf_rseq_sheaf_push(ptrdiff_t rseq, const uint32_t *owner,
						     struct mf_sheaf *const *main, void *object)
{
	__asm__ goto volatile(
		MF_RSEQ_BEGIN "movq %[main], %%rax\n\t"
			      "movq (%%rax), %%r10\n\t"
			      "movzwl %%r10w, %%r11d\n\t"
			      "cmpw %%r10w, %c[room](%%rax)\n\t"
			      "je %l[full]\n\t"
			      "movq %[object], %c[first](%%rax, %%r11, 8)\n\t"
			      "addq $1, %%r10\n\t"
			      "movq %%r10, (%%rax)\n" /* commit */
		MF_RSEQ_END
		:
		: [rseq] "r"(rseq), [owner] "m"(*owner), [main] "m"(*main), [object] "r"(object),
		  [first] "i"(MF_RSEQ_SHEAF_OBJECT), [room] "i"(MF_RSEQ_SHEAF_ROOM)
		: "rax", "r10", "r11", "memory", "cc"
		: miss, full);
	return MF_RSEQ_DONE;
miss:
	return MF_RSEQ_MISS;
full:
	return MF_RSEQ_EMPTY;
}

/* As mf_rseq_sheaf_pop() from the entry of the caller's CPU in @cpus. */
static inline enum mf_rseq_result mf_rseq_sheaf_pop_own(ptrdiff_t rseq, void *const *cpus, void **out)
{
	void *object;

	__asm__ goto volatile(MF_RSEQ_BEGIN_OWN "movq %c[main](%%r11), %%rax\n\t"
						"movq (%%rax), %%r10\n\t"
						"movzwl %%r10w, %%r11d\n\t"
						"testl %%r11d, %%r11d\n\t"
						"je %l[empty]\n\t"
						"movq %c[first] - 8(%%rax, %%r11, 8), %[object]\n\t"
						"addq %[take], %%r10\n\t"
						"movq %%r10, (%%rax)\n" /* commit */
			      MF_RSEQ_END
			      : [object] "=&r"(object)
			      : [rseq] "r"(rseq), [cpus] "m"(*cpus), [shift] "i"(MF_RSEQ_SHEAF_CPU_SHIFT),
				[main] "i"(MF_RSEQ_SHEAF_CPU_MAIN), [first] "i"(MF_RSEQ_SHEAF_OBJECT),
				[take] "i"(MF_RSEQ_SHEAF_TAKE)
			      : "rax", "r10", "r11", "memory", "cc"
			      : miss, empty);
	*out = object;
	return MF_RSEQ_DONE;
miss:
	return MF_RSEQ_MISS;
empty:
	return MF_RSEQ_EMPTY;
}

/* As mf_rseq_sheaf_push(), provided the entry has the tag; another is a miss. */
static inline enum mf_rseq_result mf_rseq_sheaf_push_own(ptrdiff_t rseq, void *const *cpus, uint32_t tag,
							 void *object)
{
	__asm__ goto volatile(
		MF_RSEQ_BEGIN_OWN "cmpl %[tag], %c[at_tag](%%r11)\n\t"
				  "jne %l[miss]\n\t"
				  "movq %c[main](%%r11), %%rax\n\t"
				  "movq (%%rax), %%r10\n\t"
				  "movzwl %%r10w, %%r11d\n\t"
				  "cmpw %%r10w, %c[room](%%rax)\n\t"
				  "je %l[full]\n\t"
				  "movq %[object], %c[first](%%rax, %%r11, 8)\n\t"
				  "addq $1, %%r10\n\t"
				  "movq %%r10, (%%rax)\n" /* commit */
		MF_RSEQ_END
		:
		: [rseq] "r"(rseq), [cpus] "m"(*cpus), [shift] "i"(MF_RSEQ_SHEAF_CPU_SHIFT), [tag] "r"(tag),
		  [at_tag] "i"(MF_RSEQ_SHEAF_CPU_TAG), [main] "i"(MF_RSEQ_SHEAF_CPU_MAIN),
		  [object] "r"(object), [first] "i"(MF_RSEQ_SHEAF_OBJECT), [room] "i"(MF_RSEQ_SHEAF_ROOM)
		: "rax", "r10", "r11", "memory", "cc"
		: miss, full);
	return MF_RSEQ_DONE;
miss:
	return MF_RSEQ_MISS;
full:
	return MF_RSEQ_EMPTY;
}

/* *main = new, provided it still is @old and nothing was taken or put since its word was @old_word. */
static inline enum mf_rseq_result mf_rseq_sheaf_swap(ptrdiff_t rseq, const uint32_t *owner,
						     struct mf_sheaf **main, struct mf_sheaf *old,
						     uint64_t old_word, struct mf_sheaf *new)
{
	__asm__ goto volatile(MF_RSEQ_BEGIN "cmpq %[old], %[main]\n\t"
					    "jne %l[miss]\n\t"
					    "cmpq %[old_word], (%[old])\n\t"
					    "jne %l[miss]\n\t"
					    "movq %[new], %[main]\n" /* commit */
			      MF_RSEQ_END
			      :
			      : [rseq] "r"(rseq), [owner] "m"(*owner), [main] "m"(*main), [old] "r"(old),
				[old_word] "r"(old_word), [new] "r"(new)
			      : "rax", "memory", "cc"
			      : miss);
	return MF_RSEQ_DONE;
miss:
	return MF_RSEQ_MISS;
}

/* Shuts the data, provided the caller runs on the CPU that owns it. */
static inline enum mf_rseq_result mf_rseq_shut(uint32_t *owner)
{
	__asm__ goto volatile(MF_RSEQ_BEGIN "movl $-1, %[owner]\n" /* commit */
			      MF_RSEQ_END
			      :
			      : [rseq] "r"(__rseq_offset), [owner] "m"(*owner)
			      : "rax", "memory", "cc"
			      : miss);
	return MF_RSEQ_DONE;
miss:
	return MF_RSEQ_MISS;
}

static inline ptrdiff_t mf_rseq_offset(void)
{
	return __rseq_offset;
}

/* The caller's CPU, with the offset at hand. */
static inline unsigned mf_rseq_cpu_at(ptrdiff_t rseq)
{
	unsigned cpu;

	__asm__ volatile("movl %%fs:" MF_RSEQ_CPU_START "(%1), %0" : "=r"(cpu) : "r"(rseq));
	return cpu;
}

#else /* !MF_HAVE_RSEQ: never called, mf_rseq_usable() is false */

static inline int mf_rseq_cpu(void)
{
	return -1;
}

static inline ptrdiff_t mf_rseq_offset(void)
{
	return 0;
}

static inline unsigned mf_rseq_cpu_at(ptrdiff_t rseq)
{
	(void)rseq;
	return 0;
}

static inline enum mf_rseq_result mf_rseq_pop(ptrdiff_t rseq, const uint32_t *owner,
					      struct mf_rseq_stack *stack, uint32_t *out)
{
	(void)rseq, (void)owner, (void)stack, (void)out;
	return MF_RSEQ_MISS;
}

static inline enum mf_rseq_result mf_rseq_push(ptrdiff_t rseq, const uint32_t *owner,
					       struct mf_rseq_stack *stack, uint32_t value)
{
	(void)rseq, (void)owner, (void)stack, (void)value;
	return MF_RSEQ_MISS;
}

static inline enum mf_rseq_result mf_rseq_copy(ptrdiff_t rseq, const uint32_t *owner, const uint32_t *visits,
					       uint32_t old_visits, uint32_t **top, uint32_t *old_top,
					       uint32_t *new_top, uint32_t *to, const uint32_t *from,
					       uint64_t count)
{
	(void)rseq, (void)owner, (void)visits, (void)old_visits, (void)top, (void)old_top, (void)new_top;
	(void)to, (void)from, (void)count;
	return MF_RSEQ_MISS;
}

static inline enum mf_rseq_result mf_rseq_sheaf_pop(ptrdiff_t rseq, const uint32_t *owner,
						    struct mf_sheaf *const *main, void **out)
{
	(void)rseq, (void)owner, (void)main, (void)out;
	return MF_RSEQ_MISS;
}

static inline enum mf_rseq_result mf_rseq_sheaf_push(ptrdiff_t rseq, const uint32_t *owner,
						     struct mf_sheaf *const *main, void *object)
{
	(void)rseq, (void)owner, (void)main, (void)object;
	return MF_RSEQ_MISS;
}

static inline enum mf_rseq_result mf_rseq_sheaf_pop_own(ptrdiff_t rseq, void *const *cpus, void **out)
{
	(void)rseq, (void)cpus, (void)out;
	return MF_RSEQ_MISS;
}

static inline enum mf_rseq_result mf_rseq_sheaf_push_own(ptrdiff_t rseq, void *const *cpus, uint32_t tag,
							 void *object)
{
	(void)rseq, (void)cpus, (void)tag, (void)object;
	return MF_RSEQ_MISS;
}

static inline enum mf_rseq_result mf_rseq_sheaf_swap(ptrdiff_t rseq, const uint32_t *owner,
						     struct mf_sheaf **main, struct mf_sheaf *old,
						     uint64_t old_word, struct mf_sheaf *new)
{
	(void)rseq, (void)owner, (void)main, (void)old, (void)old_word, (void)new;
	return MF_RSEQ_MISS;
}

static inline enum mf_rseq_result mf_rseq_shut(uint32_t *owner)
{
	(void)owner;
	return MF_RSEQ_MISS;
}

#endif
#endif
