// SPDX-License-Identifier: GPL-2.0
/* KUnit tests of what schedutil asks for on behalf of a CPU that is never idle. */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/time64.h>

#include "cpufreq_saturation.h"

#define TICK	(4 * (u64)NSEC_PER_MSEC)
#define WAIT	(8 * (u64)NSEC_PER_MSEC)

/* Ticks until the highest frequency is asked for, by what the CPU begins with */
static void test_ticks_to_the_top(struct kunit *test)
{
	static const struct {
		u32 given;
		bool longer;
		int ticks;
	} cases[] = {
		{ 1024, true, 2 }, { 512, true, 2 }, { 511, true, 3 }, { 215, true, 4 },
		{ 100, true, 5 }, { 215, false, 18 },
	};
	struct saturation s;
	u32 given;
	int i, ticks;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		given = cases[i].given;
		saturation_idle(&s, 100);
		for (ticks = 0; s.floor < 1024 && ticks < 50; ticks++) {
			saturation_tick(&s, 100 + (ticks + 1) * TICK, WAIT, cases[i].longer,
					given, 1024);
			given = max(given, s.floor);
		}
		KUNIT_EXPECT_EQ_MSG(test, ticks, cases[i].ticks, "from %u", cases[i].given);
	}
}

static void test_idle_ends_it(struct kunit *test)
{
	struct saturation s;

	saturation_idle(&s, 0);
	saturation_tick(&s, WAIT - 1, WAIT, true, 300, 1024);
	KUNIT_EXPECT_EQ_MSG(test, s.floor, 0, "a ns early");
	saturation_tick(&s, WAIT, WAIT, true, 300, 1024);
	KUNIT_EXPECT_EQ(test, s.floor, 600);
	saturation_idle(&s, WAIT + 1);
	KUNIT_EXPECT_EQ(test, s.floor, 0);
	saturation_tick(&s, WAIT + TICK, WAIT, true, 600, 1024);
	KUNIT_EXPECT_EQ_MSG(test, s.floor, 0, "waits anew");
}

/* It does not fall while the CPU is busy, whatever limits the frequency. */
static void test_never_falls(struct kunit *test)
{
	struct saturation s;

	saturation_idle(&s, 0);
	saturation_tick(&s, WAIT, WAIT, true, 400, 1024);
	saturation_tick(&s, WAIT + TICK, WAIT, false, 100, 1024);
	KUNIT_EXPECT_EQ(test, s.floor, 800);
	saturation_tick(&s, WAIT + 2 * TICK, WAIT, true, 1024, 700);
	KUNIT_EXPECT_EQ_MSG(test, s.floor, 800, "capacity became less");
}

static void test_clock(struct kunit *test)
{
	struct saturation s;

	saturation_idle(&s, U64_MAX - 5);
	saturation_tick(&s, 10, WAIT, true, 300, 1024);
	KUNIT_EXPECT_EQ_MSG(test, s.floor, 0, "early, over the wrap");
	saturation_tick(&s, WAIT - 6, WAIT, true, 300, 1024);
	KUNIT_EXPECT_EQ_MSG(test, s.floor, 600, "in time, over the wrap");
	saturation_idle(&s, 1000 * WAIT);
	saturation_tick(&s, 0, WAIT, true, 300, 1024);
	KUNIT_EXPECT_EQ_MSG(test, s.floor, 0, "the clock was set back");
}

static struct kunit_case saturation_cases[] = {
	KUNIT_CASE(test_ticks_to_the_top),
	KUNIT_CASE(test_idle_ends_it),
	KUNIT_CASE(test_never_falls),
	KUNIT_CASE(test_clock),
	{}
};

static struct kunit_suite saturation_suite = {
	.name = "schedutil_saturation",
	.test_cases = saturation_cases,
};
kunit_test_suite(saturation_suite);

MODULE_DESCRIPTION("KUnit tests of the schedutil governor's answer to saturation");
MODULE_LICENSE("GPL");
