// SPDX-License-Identifier: GPL-2.0
/*
 * Policies for freq_max: from a word to a number and back. Values in, values out.
 */
#include <kunit/visibility.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "freq_policy.h"

static const struct freq_word {
	enum freq_family	family;
	const char		*word;
	unsigned int		policy;
} freq_words[] = {
	{ FREQ_FAMILY_TURBO, "base",	 0 },
	{ FREQ_FAMILY_TURBO, "all",	 FREQ_POLICY_ALL_CORES },
	{ FREQ_FAMILY_BOOST, "nominal",	 0 },
	{ FREQ_FAMILY_BOOST, "midpoint", FREQ_POLICY_MIDPOINT },
	{ FREQ_FAMILY_BOOST, "boost",	 2 },
};

/**
 * freq_policy_words() - The words that a family of CPUs understands
 * @family: the family
 *
 * Return: the words, separated by spaces; "Nc" stands for any number of cores.
 */
const char *freq_policy_words(enum freq_family family)
{
	return family == FREQ_FAMILY_TURBO ? "base 1c 4c Nc all" : "boost midpoint nominal";
}

/**
 * freq_policy_word() - The word that stands for a policy
 * @policy: one that freq_policy_parse() has made for the family, or a number of cores
 * @family: the family
 * @word: the result
 */
void freq_policy_word(unsigned int policy, enum freq_family family,
		      char word[FREQ_POLICY_WORD])
{
	unsigned int i;

	snprintf(word, FREQ_POLICY_WORD, "%uc", policy);

	for (i = 0; i < ARRAY_SIZE(freq_words); i++) {
		if (freq_words[i].family == family && freq_words[i].policy == policy)
			strscpy(word, freq_words[i].word, FREQ_POLICY_WORD);
	}
}
EXPORT_SYMBOL_IF_KUNIT(freq_policy_word);

/**
 * freq_policy_parse() - The policy that a word stands for
 * @word: the word; a newline at its end is ignored
 * @family: where the CPU's clocks are known from
 * @policy: the result, untouched on error
 *
 * Return: 0, or -EINVAL if the family has no such word.
 */
int freq_policy_parse(const char *word, enum freq_family family, unsigned int *policy)
{
	char again[FREQ_POLICY_WORD];
	unsigned int i, cores;

	for (i = 0; i < ARRAY_SIZE(freq_words); i++) {
		if (freq_words[i].family == family && sysfs_streq(freq_words[i].word, word)) {
			*policy = freq_words[i].policy;
			return 0;
		}
	}

	if (family != FREQ_FAMILY_TURBO || sscanf(word, "%4uc", &cores) != 1 || !cores)
		return -EINVAL;

	/* No sign, no zeros in front, nothing behind */
	snprintf(again, sizeof(again), "%uc", cores);
	if (!sysfs_streq(again, word))
		return -EINVAL;

	*policy = cores;
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(freq_policy_parse);

/**
 * freq_policy_boost() - freq_max by a policy and a boost ratio
 * @policy: the policy
 * @boost: highest clock / base frequency, in 1/1024
 *
 * Return: freq_max / base frequency in 1/1024.
 */
u32 freq_policy_boost(unsigned int policy, u32 boost)
{
	return ((2 - policy) * SCHED_CAPACITY_SCALE + policy * boost) / 2;
}
EXPORT_SYMBOL_IF_KUNIT(freq_policy_boost);
