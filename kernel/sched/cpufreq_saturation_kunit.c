// SPDX-License-Identifier: GPL-2.0
/* KUnit tests of what schedutil asks for on behalf of a CPU that does not idle. */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/time64.h>

#include "cpufreq_saturation.h"

#define MS(x)	((x) * (u64)NSEC_PER_MSEC)
#define TICK	MS(4)
#define WAIT	MS(8)

/* Ticks until the highest capacity is asked for, by what the CPU begins with */
static void test_ticks_to_the_top(struct kunit *test)
{
	static const struct {
		u32 given;
		u64 usual;
		int ticks;
	} cases[] = {
		{ 1024, 0, 2 }, { 512, 0, 2 }, { 511, 0, 3 }, { 215, 0, 4 }, { 100, 0, 5 },
		{ 215, MS(5), 4 }, { 215, MS(6), 5 }, { 215, MS(13), 7 }, { 215, MS(32), 14 },
	};
	struct saturation s;
	u32 given, floor;
	int i, ticks;
	bool more;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		s = (struct saturation){ .since = 100, .usual = cases[i].usual };
		given = cases[i].given;
		for (ticks = 0; s.floor < 1024 && ticks < 50; ticks++) {
			floor = s.floor;
			more = saturation_tick(&s, 100 + (ticks + 1) * TICK, WAIT, given, 1024);
			KUNIT_EXPECT_EQ_MSG(test, more, s.floor > floor, "row %d", i);
			given = max(given, s.floor);
		}
		KUNIT_EXPECT_FALSE(test, saturation_tick(&s, MS(500), WAIT, 1024, 1024));
		KUNIT_EXPECT_EQ_MSG(test, ticks, cases[i].ticks, "row %d", i);
	}
}

static void test_idle_ends_it(struct kunit *test)
{
	struct saturation s = { };

	saturation_tick(&s, WAIT - 1, WAIT, 300, 1024);
	KUNIT_EXPECT_EQ_MSG(test, s.floor, 0, "a ns early");
	saturation_tick(&s, WAIT, WAIT, 300, 1024);
	KUNIT_EXPECT_EQ(test, s.floor, 600);
	saturation_idle(&s, WAIT + 1);
	KUNIT_EXPECT_EQ(test, s.floor, 0);
	saturation_tick(&s, WAIT + TICK, WAIT, 600, 1024);
	KUNIT_EXPECT_EQ_MSG(test, s.floor, 0, "waits anew");
}

/* It does not fall while the CPU is busy, whatever limits the frequency. */
static void test_never_falls(struct kunit *test)
{
	struct saturation s = { };

	saturation_tick(&s, WAIT, WAIT, 400, 1024);
	saturation_tick(&s, WAIT + TICK, WAIT, 100, 1024);
	KUNIT_EXPECT_EQ(test, s.floor, 800);
	saturation_tick(&s, WAIT + 2 * TICK, WAIT, 1024, 700);
	KUNIT_EXPECT_EQ_MSG(test, s.floor, 800, "capacity became less");
}

/* What is usual after a stretch of @busy in a period of @period */
static void test_usual(struct kunit *test)
{
	static const struct {
		u64 before, busy, period, usual;
	} cases[] = {
		{ 0, 0, MS(10), 0 },
		{ 0, MS(5), MS(10), MS(5) },
		{ MS(16), MS(5), MS(32), MS(14) },	/* forgets 1/16 of the time */
		{ MS(16), MS(15), MS(32), MS(15) },
		{ MS(2), 0, MS(64), 0 },
		{ MS(16), MS(500), MS(500), MS(32) },	/* no more than 4 waits */
	};
	struct saturation s;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		s = (struct saturation){ .usual = cases[i].before };
		if (cases[i].busy)
			saturation_tick(&s, cases[i].busy, WAIT, 100, 1024);
		saturation_idle(&s, cases[i].period);
		KUNIT_EXPECT_EQ_MSG(test, s.usual, cases[i].usual, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, s.since, cases[i].period, "row %d", i);
	}
}

static struct kunit_case saturation_cases[] = {
	KUNIT_CASE(test_ticks_to_the_top),
	KUNIT_CASE(test_idle_ends_it),
	KUNIT_CASE(test_never_falls),
	KUNIT_CASE(test_usual),
	{}
};

static struct kunit_suite saturation_suite = {
	.name = "schedutil_saturation",
	.test_cases = saturation_cases,
};

kunit_test_suite(saturation_suite);

MODULE_DESCRIPTION("KUnit tests of what schedutil asks for on behalf of a busy CPU");
MODULE_LICENSE("GPL");
