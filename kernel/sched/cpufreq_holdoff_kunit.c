// SPDX-License-Identifier: GPL-2.0
/* KUnit tests of the schedutil governor's hold-off, table by table. */
#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/module.h>

#include "cpufreq_holdoff.h"

#define MS(x)	((x) * (u64)NSEC_PER_MSEC)
#define CAP	1024

/* The range that needs no change, after the level was chosen and @learned needed none */
static void test_range(struct kunit *test)
{
	static const struct {
		u32 first, last, learned[2], lo, end;
	} cases[] = {
		{ 500, 500, { 500, 500 }, 484, 500 },	/* noise below, nothing above */
		{ 500, 500, { 520, 510 }, 484, 520 },
		{ 500, 500, { 400, 450 }, 400, 500 },
		{ 500, 500, { 400, 600 }, 400, 600 },
		{ 400, 500, { 500, 500 }, 384, 500 },	/* a limit cut it */
		{ 400, 500, { 380, 510 }, 380, 510 },
		{ 16, 16, { 16, 16 }, 0, 16 },
		{ 15, 15, { 15, 15 }, 0, 15 },
		{ 0, 0, { 0, 3 }, 0, 3 },
		{ 1023, 1023, { 1023, 1023 }, 1007, 1023 },
		{ 1024, 1024, { 1024, 1024 }, 1008, U32_MAX - 1 },	/* more: the same */
		{ 1280, 1280, { 1300, 1264 }, 1264, U32_MAX - 1 },
		{ 1000, 1000, { 1024, 1000 }, 984, U32_MAX - 1 },
	};
	struct holdoff h = { };
	int i, j;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		holdoff_forget(&h, CAP);
		holdoff_add(&h, cases[i].first, cases[i].last);
		for (j = 0; j < ARRAY_SIZE(cases[i].learned); j++)
			holdoff_add(&h, cases[i].learned[j], cases[i].learned[j]);
		KUNIT_EXPECT_FALSE_MSG(test, cases[i].lo && holdoff_has(&h, cases[i].lo - 1),
				       "row %d", i);
		KUNIT_EXPECT_TRUE_MSG(test, holdoff_has(&h, cases[i].lo), "row %d", i);
		KUNIT_EXPECT_TRUE_MSG(test, holdoff_has(&h, cases[i].end), "row %d", i);
		KUNIT_EXPECT_FALSE_MSG(test, holdoff_has(&h, cases[i].end + 1), "row %d", i);
	}
	holdoff_forget(&h, 160);
	holdoff_add(&h, 100, 100);
	KUNIT_EXPECT_EQ_MSG(test, h.lo, 98, "noise of a small CPU");
	holdoff_add(&h, 160, 160);
	KUNIT_EXPECT_TRUE_MSG(test, holdoff_has(&h, 200), "all of a small CPU");
	holdoff_add(&h, 50, 100);
	KUNIT_EXPECT_EQ_MSG(test, h.lo, 48, "a limit cut what needed no change");
}

/* After a level was forgotten, the range is what is learned again. */
static void test_forget(struct kunit *test)
{
	struct holdoff h = { };
	u32 util;

	KUNIT_EXPECT_FALSE_MSG(test, h.unit == CAP, "at the start");
	holdoff_forget(&h, CAP);
	holdoff_add(&h, 600, 600);
	holdoff_forget(&h, 700);
	KUNIT_EXPECT_EQ(test, h.unit, 700);
	for (util = 0; util <= 1300; util++)
		KUNIT_EXPECT_FALSE_MSG(test, holdoff_has(&h, util), "%u", util);
	KUNIT_EXPECT_FALSE(test, holdoff_has(&h, U32_MAX));

	holdoff_add(&h, 500, 500);
	for (util = 0; util <= 1300; util++)
		KUNIT_EXPECT_EQ_MSG(test, holdoff_has(&h, util), util >= 490 && util <= 500,
				    "%u", util);
}

/* Requests of small rises in sequence */
static void test_settle(struct kunit *test)
{
	static const struct {
		u64 at;
		bool forget;	/* another level is chosen */
		bool settled;
	} rows[] = {
		{ MS(3), false, false },	/* begins */
		{ MS(12), false, false },
		{ MS(13) - 1, false, false },
		{ MS(13), false, true },
		{ MS(14), true, false },	/* begins anew after this */
		{ MS(15), false, false },
		{ MS(25) - 1, false, false },
		{ MS(25), false, true },
	};
	struct holdoff h = { };
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].forget)
			holdoff_forget(&h, CAP);
		else
			KUNIT_EXPECT_EQ_MSG(test, holdoff_settled(&h, rows[i].at), rows[i].settled,
					    "row %d", i);
	}
}

/* The delay began by the clock of a CPU that is 10 us ahead. */
static void test_clock_ahead(struct kunit *test)
{
	static const struct {
		u64 now;
		bool settled;
	} cases[] = {
		{ MS(5) - 10000, false }, { MS(5), false }, { MS(15) - 1, false }, { MS(15), true },
	};
	struct holdoff h;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		h = (struct holdoff){ .since = MS(5) };
		KUNIT_EXPECT_EQ_MSG(test, holdoff_settled(&h, cases[i].now), cases[i].settled,
				    "row %d", i);
	}
}

static struct kunit_case holdoff_cases[] = {
	KUNIT_CASE(test_range),
	KUNIT_CASE(test_forget),
	KUNIT_CASE(test_settle),
	KUNIT_CASE(test_clock_ahead),
	{}
};

static struct kunit_suite holdoff_suite = {
	.name = "schedutil_holdoff",
	.test_cases = holdoff_cases,
};

kunit_test_suite(holdoff_suite);

MODULE_DESCRIPTION("KUnit tests of the schedutil governor's hold-off");
MODULE_LICENSE("GPL");
