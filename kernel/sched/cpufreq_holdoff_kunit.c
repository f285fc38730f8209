// SPDX-License-Identifier: GPL-2.0
/* KUnit tests of the schedutil governor's hold-off, table by table. */
#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/module.h>

#include "cpufreq_holdoff.h"

#define MS(x)	((x) * (u64)NSEC_PER_MSEC)

/* The range that needs no change after the level was set for @set and @learned needed none */
static void test_range(struct kunit *test)
{
	static const struct {
		u32 set, learned[2], lo, hi;
	} cases[] = {
		{ 500, { 500, 500 }, 492, 500 },	/* noise below, nothing above */
		{ 500, { 520, 510 }, 492, 520 },
		{ 500, { 400, 450 }, 400, 500 },
		{ 500, { 400, 600 }, 400, 600 },
		{ 8, { 8, 8 }, 0, 8 },
		{ 7, { 7, 7 }, 0, 7 },
		{ 0, { 0, 3 }, 0, 3 },
		{ 1280, { 1300, 1272 }, 1272, 1300 },
	};
	struct holdoff h = { .lo = 1, .since = 5 };
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		holdoff_set(&h, cases[i].set);
		KUNIT_EXPECT_EQ(test, h.set, cases[i].set);
		KUNIT_EXPECT_EQ(test, h.since, 0);
		h.since = 5;
		holdoff_same(&h, cases[i].learned[0]);
		holdoff_same(&h, cases[i].learned[1]);
		KUNIT_EXPECT_EQ_MSG(test, h.lo, cases[i].lo, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, h.hi, cases[i].hi, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, h.since, 0, "row %d", i);
	}
}

static void test_small(struct kunit *test)
{
	static const struct {
		u32 set, util;
		bool small;
	} cases[] = {
		{ 500, 501, false }, { 500, 500, false }, { 500, 499, true },
		{ 500, 437, true }, { 500, 436, false }, { 500, 0, false },
		{ 10, 0, true }, { 0, 0, false }, { 0, 1024, false },
	};
	struct holdoff h = { };
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		h.set = cases[i].set;
		KUNIT_EXPECT_EQ_MSG(test, holdoff_small(&h, cases[i].util), cases[i].small,
				    "%u to %u", cases[i].set, cases[i].util);
	}
}

/* A first request after the level was set for 500, in the window and beyond */
static void test_window(struct kunit *test)
{
	static const struct {
		bool over;
		u32 util;
		bool due;
	} cases[] = {
		{ false, 501, false }, { false, 627, false }, { false, 628, true },
		{ false, 1024, true }, { false, 372, false }, { false, 0, false },
		{ true, 501, true }, { true, 499, true }, { true, 0, true },
		{ true, 1024, true },
	};
	static const u64 now[] = { 1, MS(5), U64_MAX };
	struct holdoff h;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		for (j = 0; j < ARRAY_SIZE(now); j++) {
			h = (struct holdoff){ .set = 500 };
			KUNIT_EXPECT_EQ_MSG(test, holdoff_due(&h, now[j], cases[i].over,
							      cases[i].util, 0),
					    cases[i].due, "row %d, time %d", i, j);
		}
	}
}

/* Requests of one change that settles for 20 ms, one after the other */
static void test_settle(struct kunit *test)
{
	static const struct {
		u64 at;
		bool over;
		bool same;	/* a request that needs no change */
		bool due;
	} rows[] = {
		{ MS(1), false, false, false },	/* in the window: does not begin to settle */
		{ MS(3), true, false, false },	/* begins */
		{ MS(22), true, false, false },
		{ MS(23) - 1, true, false, false },
		{ MS(23), true, false, true },
		{ MS(24), true, true, false },	/* begins anew after this */
		{ MS(25), true, false, false },
		{ MS(45) - 1, true, false, false },
		{ MS(45), true, false, true },
	};
	struct holdoff h = { };
	int i;

	holdoff_set(&h, 500);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].same)
			holdoff_same(&h, 500);
		else
			KUNIT_EXPECT_EQ_MSG(test, holdoff_due(&h, rows[i].at, rows[i].over, 480,
							      HOLDOFF_SETTLE),
					    rows[i].due, "row %d", i);
	}
	KUNIT_EXPECT_TRUE_MSG(test, holdoff_due(&h, MS(1), false, 628, HOLDOFF_SETTLE), "urgent");
}

/* The wait began by the clock of a CPU that is 10 us ahead. */
static void test_clock_ahead(struct kunit *test)
{
	static const struct {
		s64 settle;
		u64 now;
		bool due;
	} cases[] = {
		{ 0, MS(5) - 10000, true }, { 0, MS(5), true },
		{ HOLDOFF_SETTLE, MS(5) - 10000, false }, { HOLDOFF_SETTLE, MS(25) - 1, false },
		{ HOLDOFF_SETTLE, MS(25), true },
	};
	struct holdoff h;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		h = (struct holdoff){ .set = 500, .since = MS(5) };
		KUNIT_EXPECT_EQ_MSG(test, holdoff_due(&h, cases[i].now, true, 480, cases[i].settle),
				    cases[i].due, "row %d", i);
	}
}

static struct kunit_case holdoff_cases[] = {
	KUNIT_CASE(test_range),
	KUNIT_CASE(test_small),
	KUNIT_CASE(test_window),
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
