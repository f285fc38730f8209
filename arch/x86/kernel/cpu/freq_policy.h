/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _X86_KERNEL_CPU_FREQ_POLICY_H
#define _X86_KERNEL_CPU_FREQ_POLICY_H

#include <linux/types.h>

/**
 * enum freq_family - where the clocks above base are known from
 * @FREQ_FAMILY_TURBO: a turbo table (Intel); a policy is a number of active cores
 * @FREQ_FAMILY_BOOST: a boost ratio, from ACPI CPPC (AMD); a policy is the share of
 *	boost in freq_max, in halves
 *
 * Policy 0 is the base frequency in either case.
 */
enum freq_family {
	FREQ_FAMILY_TURBO,
	FREQ_FAMILY_BOOST,
};

#define FREQ_POLICY_MIDPOINT	1
#define FREQ_POLICY_BOOST	2
#define FREQ_POLICY_ALL_CORES	10000	/* Written "all"; numbers have four digits */

/* Enough for any word, with its terminating zero */
#define FREQ_POLICY_WORD	12

/* The present one, in aperfmperf.c */
extern unsigned int freq_policy;

enum freq_family freq_family(void);
const char *freq_policy_words(enum freq_family family);
int freq_policy_parse(const char *word, enum freq_family family, unsigned int *policy);
void freq_policy_word(unsigned int policy, enum freq_family family, char *word);
u32 freq_policy_boost(unsigned int policy, u32 boost);

#endif /* _X86_KERNEL_CPU_FREQ_POLICY_H */
