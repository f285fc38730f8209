// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of freq_max.h.
 */
#include <kunit/test.h>
#include <linux/module.h>

#include "freq_max.h"

static const struct word_case {
	const char	*word;
	bool		turbo;
	int		choice;
} word_cases[] = {
	{ "off",	false,	FREQ_MAX_OFF },
	{ "off\n",	true,	FREQ_MAX_OFF },
	{ "nominal",	false,	FREQ_MAX_NOMINAL },
	{ "midpoint",	false,	FREQ_MAX_MIDPOINT },
	{ "boost\n",	false,	FREQ_MAX_BOOST },
	{ "1c",		true,	1 },
	{ "4c",		true,	4 },
	{ "12c\n",	true,	12 },
	{ "255c",	true,	255 },
	{ "4c",		false,	-EINVAL },
	{ "",		true,	-EINVAL },
	{ "\n",		true,	-EINVAL },
	{ "c",		true,	-EINVAL },
	{ "4",		true,	-EINVAL },
	{ "0c",		true,	-EINVAL },
	{ "00c",	true,	-EINVAL },
	{ "04c",	true,	-EINVAL },
	{ "+4c",	true,	-EINVAL },
	{ "-4c",	true,	-EINVAL },
	{ "4\nc",	true,	-EINVAL },
	{ " 4c",	true,	-EINVAL },
	{ "4cc",	true,	-EINVAL },
	{ "4c\n\n",	true,	-EINVAL },
	{ "256c",	true,	-EINVAL },
	{ "1000c",	true,	-EINVAL },
	{ "4294967300c", true,	-EINVAL },
	{ "boostc",	true,	-EINVAL },
	{ "boos",	true,	-EINVAL },
	{ "active",	true,	-EINVAL },
};

static void word_desc(const struct word_case *c, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s: %*pE", c->turbo ? "turbo" : "no table",
		 (int)strlen(c->word), c->word);
}

KUNIT_ARRAY_PARAM(word, word_cases, word_desc);

static void word_test(struct kunit *test)
{
	const struct word_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, freq_max_parse(c->word, c->turbo), c->choice);
}

static struct kunit_case freq_max_cases[] = {
	KUNIT_CASE_PARAM(word_test, word_gen_params),
	{}
};

static struct kunit_suite freq_max_suite = {
	.name		= "freq_max",
	.test_cases	= freq_max_cases,
};

kunit_test_suite(freq_max_suite);

MODULE_DESCRIPTION("KUnit tests of the words for freq_max");
MODULE_LICENSE("GPL");
