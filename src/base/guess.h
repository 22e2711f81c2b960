/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Guessing what a table would tell.  A fast path that looks an address up waits
 * for a chain of loads; a switch over the possible answers ends the chain, for
 * the processor guesses the branch and goes on with what it knows already.
 */
#ifndef MF_BASE_GUESS_H
#define MF_BASE_GUESS_H

/*
 * A constant in a register of its own.  Behind a compare the compiler would use
 * the register just compared instead, and with it the chain.
 */
static inline __attribute__((always_inline)) unsigned mf_guess(const unsigned constant)
{
#if defined(__x86_64__) && defined(__OPTIMIZE__)
	unsigned number;

	__asm__ volatile("movl %1, %0" : "=r"(number) : "i"(constant));
	return number;
#else
	return constant;
#endif
}

#endif
