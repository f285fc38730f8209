// SPDX-License-Identifier: GPL-2.0
/*
 * Policies for freq_max: from a word to a rule, from a rule and what a CPU can
 * give to a ratio. Values in, values out.
 */
#include <kunit/visibility.h>
#include <linux/ctype.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/string.h>

#include "freq_invariance.h"

static const struct freq_word {
	const char		*word;
	enum freq_family	family;
	enum freq_policy_kind	kind;
} freq_words[] = {
	{ "base",	FREQ_FAMILY_TURBO, FREQ_POLICY_BASE },
	{ "second",	FREQ_FAMILY_TURBO, FREQ_POLICY_SECOND },
	{ "all",	FREQ_FAMILY_TURBO, FREQ_POLICY_ALL },
	{ "active",	FREQ_FAMILY_TURBO, FREQ_POLICY_ACTIVE },
	{ "boost",	FREQ_FAMILY_BOOST, FREQ_POLICY_BOOST },
	{ "midpoint",	FREQ_FAMILY_BOOST, FREQ_POLICY_MIDPOINT },
	{ "nominal",	FREQ_FAMILY_BOOST, FREQ_POLICY_BASE },
};

/**
 * freq_policy_words() - The words that a family of CPUs understands
 * @family: the family
 *
 * Return: the words, separated by spaces; "Nc" stands for any number of cores.
 */
const char *freq_policy_words(enum freq_family family)
{
	return family == FREQ_FAMILY_TURBO ? "base 1c 4c Nc second all active" :
					     "boost midpoint nominal";
}

/* "4c": digits without a leading zero, up to 9999, and a c */
static unsigned int parse_cores(const char *word)
{
	unsigned int cores = 0;
	const char *c = word;

	for (; isdigit(*c) && c < word + 4; c++)
		cores = 10 * cores + *c - '0';

	return *word == '0' || strcmp(c, "c") ? 0 : cores;
}

/**
 * freq_policy_parse() - The policy that a word stands for
 * @policy: the result, untouched on error
 * @family: where the CPU's clocks are known from
 * @word: the word; a newline at its end is ignored
 *
 * Return: 0, or -EINVAL if the family has no such word.
 */
int freq_policy_parse(struct freq_policy *policy, enum freq_family family,
		      const char *word)
{
	char text[FREQ_POLICY_WORD];
	unsigned int i, cores;

	if (strscpy(text, word) < 0)
		return -EINVAL;
	strreplace(text, '\n', '\0');
	if (strlen(text) + 1 < strlen(word))
		return -EINVAL;

	cores = parse_cores(text);
	if (cores && family == FREQ_FAMILY_TURBO) {
		*policy = (struct freq_policy){ FREQ_POLICY_CORES, cores };
		return 0;
	}

	for (i = 0; i < ARRAY_SIZE(freq_words); i++) {
		if (freq_words[i].family == family && !strcmp(freq_words[i].word, text)) {
			*policy = (struct freq_policy){ freq_words[i].kind };
			return 0;
		}
	}

	return -EINVAL;
}
EXPORT_SYMBOL_IF_KUNIT(freq_policy_parse);

/**
 * freq_policy_word() - The word that stands for a policy
 * @policy: one that freq_policy_parse() has made for the family
 * @family: the family
 * @word: the result
 */
void freq_policy_word(struct freq_policy policy, enum freq_family family,
		      char word[FREQ_POLICY_WORD])
{
	unsigned int i;

	snprintf(word, FREQ_POLICY_WORD, "%uc", policy.cores);

	for (i = 0; i < ARRAY_SIZE(freq_words); i++) {
		if (freq_words[i].family == family && freq_words[i].kind == policy.kind)
			strscpy(word, freq_words[i].word, FREQ_POLICY_WORD);
	}
}
EXPORT_SYMBOL_IF_KUNIT(freq_policy_word);

/**
 * freq_policy_default() - The policy of an Intel CPU model
 * @cores: as in struct turbo_model
 *
 * Return: the policy.
 */
struct freq_policy freq_policy_default(unsigned int cores)
{
	if (cores == TURBO_SECOND_RATIO)
		return (struct freq_policy){ FREQ_POLICY_SECOND };

	return (struct freq_policy){ FREQ_POLICY_CORES, cores };
}
EXPORT_SYMBOL_IF_KUNIT(freq_policy_default);

/**
 * freq_policy_turbo() - freq_max by a policy and a turbo table
 * @policy: the policy; %FREQ_POLICY_ACTIVE counts as one core, because that is
 *	what limits it
 * @table: a decoded table, not empty
 * @package_cores: cores of the package
 *
 * Return: freq_max / base frequency in 1/1024.
 */
u32 freq_policy_turbo(struct freq_policy policy, const struct turbo_table *table,
		      unsigned int package_cores)
{
	unsigned int turbo;

	switch (policy.kind) {
	case FREQ_POLICY_CORES:
		turbo = turbo_table_freq_max(table, policy.cores);
		break;
	case FREQ_POLICY_SECOND:
		turbo = turbo_table_freq_max(table, TURBO_SECOND_RATIO);
		break;
	case FREQ_POLICY_ALL:
		turbo = turbo_table_ratio(table, package_cores);
		break;
	case FREQ_POLICY_ACTIVE:
		turbo = turbo_table_ratio(table, 1);
		break;
	default:
		turbo = table->base;
	}

	return freq_max_ratio(turbo, table->base);
}
EXPORT_SYMBOL_IF_KUNIT(freq_policy_turbo);

/**
 * freq_policy_boost() - freq_max by a policy and a boost ratio
 * @policy: the policy
 * @boost: highest clock / base frequency, in 1/1024
 *
 * Return: freq_max / base frequency in 1/1024.
 */
u32 freq_policy_boost(struct freq_policy policy, u32 boost)
{
	switch (policy.kind) {
	case FREQ_POLICY_BOOST:
		return boost;
	case FREQ_POLICY_MIDPOINT:
		return (boost + SCHED_CAPACITY_SCALE) / 2;
	default:
		return SCHED_CAPACITY_SCALE;
	}
}
EXPORT_SYMBOL_IF_KUNIT(freq_policy_boost);

/**
 * freq_max_limit() - Keep freq_max within what cpufreq can request
 * @ratio: freq_max / base frequency, in 1/1024
 * @max_khz: highest frequency that can be requested, 0 if that is not known
 * @base_khz: base frequency
 *
 * A governor takes utilisation for a share of the highest frequency that it can
 * request. If freq_max were above that, a busy CPU would look as if it had room,
 * get less than it can have, and so look smaller again.
 *
 * Return: @ratio, or @max_khz / @base_khz rounded up if that is less. Rounded
 * up, lest an error of the measured base frequency cost a bin: the next unit is
 * less than 0.1 % of base.
 */
u32 freq_max_limit(u32 ratio, unsigned int max_khz, unsigned int base_khz)
{
	if (!max_khz || !base_khz)
		return ratio;

	return min(ratio, DIV_ROUND_UP_ULL((u64)max_khz << SCHED_CAPACITY_SHIFT, base_khz));
}
EXPORT_SYMBOL_IF_KUNIT(freq_max_limit);

/**
 * freq_active_step() - Let freq_max follow the number of busy cores
 * @level: its present level, a ratio with %FREQ_ACTIVE_SHIFT more places
 * @ratio: what the turbo table gives with the cores that are busy just now
 *
 * An eighth of the distance with each count: utilisation has a half-life of 32
 * ms, and counts come every 4 ms. What a count that is wrong by one changes is
 * an eighth of a bin.
 *
 * Return: the new level.
 */
u32 freq_active_step(u32 level, u32 ratio)
{
	s64 distance = ((s64)ratio << FREQ_ACTIVE_SHIFT) - level;

	return level + div_s64(distance, 8);
}
EXPORT_SYMBOL_IF_KUNIT(freq_active_step);
