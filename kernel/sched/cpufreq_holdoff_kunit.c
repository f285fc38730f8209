// SPDX-License-Identifier: GPL-2.0
/* KUnit tests of the schedutil governor's hold-off, table by table. */
#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/module.h>

#include "cpufreq_holdoff.h"

#define MS(x)	((x) * (u64)NSEC_PER_MSEC)
#define CAP	1024

/* The range that needs no change after the level was set for @set and @learned needed none */
static void test_range(struct kunit *test)
{
	static const struct {
		u32 set, learned[2], lo, hi;
	} cases[] = {
		{ 500, { 500, 500 }, 484, 500 },	/* noise below, nothing above */
		{ 500, { 520, 510 }, 484, 520 },
		{ 500, { 400, 450 }, 400, 500 },
		{ 500, { 400, 600 }, 400, 600 },
		{ 16, { 16, 16 }, 0, 16 },
		{ 15, { 15, 15 }, 0, 15 },
		{ 0, { 0, 3 }, 0, 3 },
		{ 1280, { 1300, 1264 }, 1264, 1300 },
	};
	struct holdoff h = { .since = 5 };
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		holdoff_set(&h, CAP, cases[i].set);
		KUNIT_EXPECT_EQ(test, h.set, cases[i].set);
		KUNIT_EXPECT_EQ(test, h.since, 0);
		h.since = 5;
		holdoff_same(&h, CAP, cases[i].learned[0]);
		holdoff_same(&h, CAP, cases[i].learned[1]);
		KUNIT_EXPECT_EQ_MSG(test, h.lo, cases[i].lo, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, h.hi, cases[i].hi, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, h.since, 0, "row %d", i);
		KUNIT_EXPECT_TRUE_MSG(test, holdoff_has(&h, cases[i].lo), "row %d", i);
		KUNIT_EXPECT_TRUE_MSG(test, holdoff_has(&h, cases[i].hi), "row %d", i);
		KUNIT_EXPECT_FALSE_MSG(test, holdoff_has(&h, cases[i].hi + 1), "row %d", i);
	}
}

/* What is known in one unit says nothing in another. */
static void test_unit(struct kunit *test)
{
	static const struct {
		u32 learned, asked;
		bool known;
	} cases[] = {
		{ 0, 0, false },	/* not invariant */
		{ 0, CAP, false }, { CAP, 0, false }, { CAP, 700, false }, { 700, CAP, false },
		{ CAP, CAP, true }, { 1, 1, true },
	};
	struct holdoff h;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		holdoff_set(&h, cases[i].learned, 300);
		KUNIT_EXPECT_EQ_MSG(test, holdoff_knows(&h, cases[i].asked), cases[i].known,
				    "row %d", i);
		holdoff_same(&h, cases[i].asked, 400);
		KUNIT_EXPECT_EQ_MSG(test, h.unit, cases[i].asked, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, holdoff_has(&h, 300), cases[i].learned == cases[i].asked,
				    "row %d", i);
	}
	h = (struct holdoff){ };
	KUNIT_EXPECT_FALSE_MSG(test, holdoff_knows(&h, CAP), "at the start");
	holdoff_set(&h, 160, 100);
	KUNIT_EXPECT_EQ_MSG(test, h.lo, 98, "noise of a small CPU");
}

/* Requests of one small rise, one after the other */
static void test_settle(struct kunit *test)
{
	static const struct {
		u64 at;
		bool same;	/* a request that needs no change */
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

	holdoff_set(&h, CAP, 500);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].same)
			holdoff_same(&h, CAP, 500);
		else
			KUNIT_EXPECT_EQ_MSG(test, holdoff_settled(&h, rows[i].at), rows[i].settled,
					    "row %d", i);
	}
}

/* The wait began by the clock of a CPU that is 10 us ahead. */
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
		h = (struct holdoff){ .set = 500, .since = MS(5) };
		KUNIT_EXPECT_EQ_MSG(test, holdoff_settled(&h, cases[i].now), cases[i].settled,
				    "row %d", i);
	}
}

static struct kunit_case holdoff_cases[] = {
	KUNIT_CASE(test_range),
	KUNIT_CASE(test_unit),
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
