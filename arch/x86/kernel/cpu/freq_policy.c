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

/* By policy */
static const char * const boost_words[] = { "nominal", "midpoint", "boost" };

/* All words of a family, separated by spaces; "Nc" stands for any number of cores */
const char *freq_policy_words(enum freq_family family)
{
	return family == FREQ_FAMILY_TURBO ? "base 1c 4c Nc all" : "boost midpoint nominal";
}

/* @policy is one that freq_policy_parse() has made; @word has room for %FREQ_POLICY_WORD */
void freq_policy_word(unsigned int policy, enum freq_family family, char *word)
{
	if (family == FREQ_FAMILY_BOOST)
		strscpy(word, boost_words[policy], FREQ_POLICY_WORD);
	else if (!policy || policy == FREQ_POLICY_ALL_CORES)
		strscpy(word, policy ? "all" : "base", FREQ_POLICY_WORD);
	else
		snprintf(word, FREQ_POLICY_WORD, "%uc", policy);
}
EXPORT_SYMBOL_IF_KUNIT(freq_policy_word);

/* -EINVAL if the family has no such word, with or without a newline at its end */
int freq_policy_parse(const char *word, enum freq_family family, unsigned int *policy)
{
	unsigned int found = FREQ_POLICY_ALL_CORES;
	char again[FREQ_POLICY_WORD];
	int ret;

	if (family == FREQ_FAMILY_BOOST) {
		ret = sysfs_match_string(boost_words, word);
		if (ret < 0)
			return ret;
		*policy = ret;
		return 0;
	}

	if (sscanf(word, "%4uc", &found) != 1 && sysfs_streq(word, "base"))
		found = 0;

	/* Nothing in front, nothing behind */
	freq_policy_word(found, family, again);
	if (!sysfs_streq(again, word))
		return -EINVAL;

	*policy = found;
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(freq_policy_parse);

/* freq_max by a policy and the highest clock; both / base frequency, in 1/1024 */
u32 freq_policy_boost(unsigned int policy, u32 boost)
{
	return ((2 - policy) * SCHED_CAPACITY_SCALE + policy * boost) / 2;
}
EXPORT_SYMBOL_IF_KUNIT(freq_policy_boost);
