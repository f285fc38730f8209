// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of freq_policy.c.
 */
#include <kunit/test.h>
#include <linux/errno.h>
#include <linux/module.h>

#include "freq_policy.h"

/* No word has this number */
#define UNTOUCHED	77777

static const struct word_case {
	const char		*word;
	enum freq_family	family;
	unsigned int		policy;
} word_cases[] = {
	{ "base",	FREQ_FAMILY_TURBO, 0 },
	{ "1c",		FREQ_FAMILY_TURBO, 1 },
	{ "4c",		FREQ_FAMILY_TURBO, 4 },
	{ "12c\n",	FREQ_FAMILY_TURBO, 12 },
	{ "9999c",	FREQ_FAMILY_TURBO, 9999 },
	{ "all\n",	FREQ_FAMILY_TURBO, FREQ_POLICY_ALL_CORES },
	{ "nominal",	FREQ_FAMILY_BOOST, 0 },
	{ "midpoint",	FREQ_FAMILY_BOOST, FREQ_POLICY_MIDPOINT },
	{ "boost\n",	FREQ_FAMILY_BOOST, 2 },
	{ "",		FREQ_FAMILY_TURBO, UNTOUCHED },
	{ "\n",		FREQ_FAMILY_TURBO, UNTOUCHED },
	{ "c",		FREQ_FAMILY_TURBO, UNTOUCHED },
	{ "4",		FREQ_FAMILY_TURBO, UNTOUCHED },
	{ "0c",		FREQ_FAMILY_TURBO, UNTOUCHED },
	{ "04c",	FREQ_FAMILY_TURBO, UNTOUCHED },
	{ "+4c",	FREQ_FAMILY_TURBO, UNTOUCHED },
	{ "-4c",	FREQ_FAMILY_TURBO, UNTOUCHED },
	{ " 4c",	FREQ_FAMILY_TURBO, UNTOUCHED },
	{ "4cc",	FREQ_FAMILY_TURBO, UNTOUCHED },
	{ "4c\n\n",	FREQ_FAMILY_TURBO, UNTOUCHED },
	{ "10000c",	FREQ_FAMILY_TURBO, UNTOUCHED },
	{ "4294967300c", FREQ_FAMILY_TURBO, UNTOUCHED },
	{ "basement",	FREQ_FAMILY_TURBO, UNTOUCHED },
	{ "active",	FREQ_FAMILY_TURBO, UNTOUCHED },
	{ "boost",	FREQ_FAMILY_TURBO, UNTOUCHED },
	{ "4c",		FREQ_FAMILY_BOOST, UNTOUCHED },
	{ "base",	FREQ_FAMILY_BOOST, UNTOUCHED },
};

static void word_desc(const struct word_case *c, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s: %*pE",
		 c->family == FREQ_FAMILY_TURBO ? "turbo" : "boost",
		 (int)strlen(c->word), c->word);
}

KUNIT_ARRAY_PARAM(word, word_cases, word_desc);

static void word_test(struct kunit *test)
{
	const struct word_case *c = test->param_value;
	unsigned int policy = UNTOUCHED;
	char word[FREQ_POLICY_WORD];

	KUNIT_EXPECT_EQ(test, freq_policy_parse(c->word, c->family, &policy),
			c->policy == UNTOUCHED ? -EINVAL : 0);
	KUNIT_EXPECT_EQ(test, policy, c->policy);
	if (policy == UNTOUCHED)
		return;

	freq_policy_word(policy, c->family, word);
	KUNIT_EXPECT_TRUE_MSG(test, sysfs_streq(word, c->word), "%s", word);
}

static void boost_test(struct kunit *test)
{
	/* EPYC 7742: highest performance 255, nominal 168 */
	KUNIT_EXPECT_EQ(test, freq_policy_boost(0, 1554), 1024);
	KUNIT_EXPECT_EQ(test, freq_policy_boost(FREQ_POLICY_MIDPOINT, 1554), 1289);
	KUNIT_EXPECT_EQ(test, freq_policy_boost(2, 1554), 1554);
}

static struct kunit_case freq_policy_cases[] = {
	KUNIT_CASE_PARAM(word_test, word_gen_params),
	KUNIT_CASE(boost_test),
	{}
};

static struct kunit_suite freq_policy_suite = {
	.name		= "freq_policy",
	.test_cases	= freq_policy_cases,
};

kunit_test_suite(freq_policy_suite);

MODULE_DESCRIPTION("KUnit tests of policies for freq_max");
MODULE_IMPORT_NS(EXPORTED_FOR_KUNIT_TESTING);
MODULE_LICENSE("GPL");
