// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of freq_sample.h.
 */
#include <kunit/test.h>
#include <linux/module.h>

#include "freq_sample.h"

/* A tick of 4 ms at 10 GHz */
#define MOST	40000000ULL

struct scale_case {
	const char	*name;
	u64		acnt;
	u64		mcnt;
	u32		ratio;
	unsigned long	scale;
};

static const struct scale_case scale_cases[] = {
	{ "0.8 of 3.8 GHz",		8000000,	20000000,	1945,	215 },
	{ "2.2 of 3.3 GHz",		22000000,	22000000,	1536,	682 },
	{ "2.9 of 3.3 GHz",		29000000,	22000000,	1536,	899 },
	{ "freq_max",			33000000,	22000000,	1536,	1024 },
	{ "above it",			36000000,	22000000,	1536,	1024 },
	{ "no turbo",			17000000,	25000000,	1024,	696 },
	{ "freq_max below base",	10000000,	30000000,	614,	569 },
	{ "one unit below freq_max",	3069,		2048,		1536,	1023 },
	{ "lowest that is a scale",	1,		1024,		1024,	1 },
	{ "below it",			1,		1025,		1024,	0 },
	{ "an hour at 5 GHz",		18000000000000,	36000000000000,	1280,	409 },
	{ "a month at 5 GHz",		12960000000000000, 25920000000000000, 1280, 409 },
	{ "MPERF stood still",		20000000,	0,		1536,	0 },
	{ "APERF stood still",		0,		20000000,	1536,	0 },
	{ "both stood still",		0,		0,		1536,	0 },
	{ "MPERF set back",		20000000,	-20000000,	1536,	0 },
	{ "APERF set back",		-20000000,	20000000,	1536,	0 },
	{ "both set back",		-1,		-1,		1536,	0 },
	{ "APERF far ahead",		1ULL << 62,	20000000,	1536,	1024 },
};

KUNIT_ARRAY_PARAM_DESC(scale, scale_cases, name);

static void scale_of_samples(struct kunit *test)
{
	const struct scale_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, freq_sample_scale_any(c->acnt, c->mcnt, c->ratio), c->scale);
	if (freq_sample_usual(c->acnt, c->mcnt, MOST))
		KUNIT_EXPECT_EQ(test, freq_sample_scale(c->acnt, c->mcnt, c->ratio), c->scale);
}

/* In products of 128 bits, which need no shifts; the shifts lose less than 1 */
static void scale_is_exact_at_any_length(struct kunit *test)
{
	unsigned int bits, percent;

	for (bits = 24; bits < 62; bits++) {
		for (percent = 5; percent < 150; percent += 7) {
			u64 mcnt = BIT_ULL(bits) + 12345, acnt = mcnt / 100 * percent;
			u128 above = (u128)acnt << 20, below = (u128)mcnt * 1536;
			unsigned long scale = freq_sample_scale_any(acnt, mcnt, 1536);

			if (scale < 1024)
				KUNIT_EXPECT_TRUE_MSG(test, above < below * (scale + 2),
						      "%llu / %llu", acnt, mcnt);
			KUNIT_EXPECT_TRUE_MSG(test, above + below >= below * scale,
					      "%llu / %llu", acnt, mcnt);
		}
	}
}

struct usual_case {
	const char	*name;
	u64		acnt;
	u64		mcnt;
	bool		usual;
};

static const struct usual_case usual_cases[] = {
	{ "good",			30000000,	20000000,	true },
	{ "the least",			1,		1,		true },
	{ "the most",			1ULL << 43,	MOST,		true },
	{ "MPERF rose by more",		30000000,	MOST + 1,	false },
	{ "APERF rose by more",		(1ULL << 43) + 1, 20000000,	false },
	{ "APERF stood still",		0,		20000000,	false },
	{ "MPERF stood still",		30000000,	0,		false },
	{ "APERF set back",		-1,		20000000,	false },
	{ "MPERF set back",		30000000,	-1,		false },
};

KUNIT_ARRAY_PARAM_DESC(usual, usual_cases, name);

static void what_is_usual(struct kunit *test)
{
	const struct usual_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, freq_sample_usual(c->acnt, c->mcnt, MOST), c->usual);
	/* As while samples are distrusted */
	KUNIT_EXPECT_FALSE(test, freq_sample_usual(c->acnt, c->mcnt, 0));
}

static void mperf_is_bounded_by_the_tsc(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, freq_sample_mperf_max(20000000), 40000000);
	KUNIT_EXPECT_EQ(test, freq_sample_mperf_max(0), 0);
}

struct trouble_case {
	const char	*samples;	/* g: good, b: bad; the scale is given up at an x */
};

static const struct trouble_case trouble_cases[] = {
	{ "bbbx" },
	{ "bgbgbgbgbgbgx" },
	{ "bggbggbggbggbggbggbggbggbggbgg" },
	{ "bbbxggggggggbbbx" },
	{ "bbbggggggbbbx" },
	{ "bbbgggbgbxxggx" },
};

static void trouble_desc(const struct trouble_case *c, char *desc)
{
	strscpy(desc, c->samples, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(trouble, trouble_cases, trouble_desc);

/* As judge_sample() in aperfmperf.c counts */
static void when_the_scale_is_given_up(struct kunit *test)
{
	const struct trouble_case *c = test->param_value;
	const char *sample;
	u8 trouble = 0;

	for (sample = c->samples; *sample; sample++) {
		if (*sample == 'g')
			trouble -= !!trouble;
		else
			trouble = freq_trouble_bad(trouble);
		KUNIT_EXPECT_EQ_MSG(test, trouble == FREQ_TROUBLE_LIMIT, *sample == 'x',
				    "sample %d", (int)(sample - c->samples));
	}
}

static struct kunit_case freq_sample_cases[] = {
	KUNIT_CASE_PARAM(scale_of_samples, scale_gen_params),
	KUNIT_CASE(scale_is_exact_at_any_length),
	KUNIT_CASE_PARAM(what_is_usual, usual_gen_params),
	KUNIT_CASE(mperf_is_bounded_by_the_tsc),
	KUNIT_CASE_PARAM(when_the_scale_is_given_up, trouble_gen_params),
	{}
};

static struct kunit_suite freq_sample_suite = {
	.name		= "freq_sample",
	.test_cases	= freq_sample_cases,
};

kunit_test_suite(freq_sample_suite);

MODULE_DESCRIPTION("KUnit tests of frequency samples");
MODULE_LICENSE("GPL");
