// SPDX-License-Identifier: GPL-2.0
/* KUnit tests of chains: the arithmetic table by table, and tasks that take turns or do not. */
#include <kunit/test.h>
#include <linux/module.h>

#include "chain.h"

#define FULL		1024			/* capacity */
#define UTIL(x)		((u32)(x) << CHAIN_UTIL_SHIFT)
#define MS(x)		((u64)(x) * 1000000 / 1024)
#define MINUTES(x)	MS(60000ULL * (x))
#define DAYS(x)		MINUTES(24 * 60 * (x))

static u32 util_of(const struct sched_chain *c)
{
	return c->util >> (CHAIN_UTIL_SHIFT - 4);	/* in 1/16 */
}

/* Does @is, in 1/16, equal @want to within 1/64 and 1? */
static bool near(u32 is, u32 want)
{
	u32 most = 16 + 16 * want / 64;

	return is + most >= 16 * want && is <= 16 * want + most;
}

/* The task was on a run queue, and has run for @exec in all, or was asleep, until @now. */
static void run(struct sched_chain *c, u64 now, u32 exec, u32 capacity)
{
	u32 slack = chain_run(c, now, exec);

	if (chain_counts(c, slack))
		chain_count(c, slack, capacity);
}

static void woken(struct sched_chain *c, u64 now, u32 capacity)
{
	u32 slack = chain_woken(c, now);

	if (chain_counts(c, slack))
		chain_count(c, slack, capacity);
}

/* What is left of the whole, in 1/1024, after a time; by the definition of a half-life */
static void test_decay(struct kunit *test)
{
	static const struct {
		u32 time, left;
	} cases[] = {
		{ 0, 1024 }, { 1000, 1003 }, { 8192, 861 }, { 16384, 724 }, { 30000, 543 },
		{ 32768, 512 }, { 49152, 362 }, { 65536, 256 }, { 100000, 123 },
		{ 10 * 32768, 1 }, { 31 * 32768, 0 }, { 32 * 32768, 0 }, { U32_MAX, 0 },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		u32 left = chain_decay(CHAIN_FULL, cases[i].time);

		KUNIT_EXPECT_TRUE_MSG(test, near(left >> (CHAIN_UTIL_SHIFT - 4), cases[i].left),
				      "after %u: %u/16", cases[i].time,
				      left >> (CHAIN_UTIL_SHIFT - 4));
	}
	/* Small steps add up to a large one. */
	{
		u32 left = CHAIN_FULL;

		for (i = 0; i < 512; i++)
			left = chain_decay(left, 64);
		KUNIT_EXPECT_TRUE(test, near(left >> (CHAIN_UTIL_SHIFT - 4), 512));
	}
}

/* Busy from rest: the share rises with the work, and a rest makes up for what is lost. */
static void test_busy(struct kunit *test)
{
	static const struct {
		u32 time, capacity, util, lag;
	} cases[] = {
		{ 1000, FULL, 21, 0 }, { 20000, FULL, 353, 0 }, { 32768, FULL, 512, 0 },
		{ 131072, FULL, 960, 0 },
		{ 3000, 215, 14, 2371 }, { 5000, 512, 53, 2500 }, { 10000, 512, 103, 5000 },
		/* lost beyond a quarter of the half-life */
		{ 20000, 512, 226, 8192 }, { 40000, 215, 502, 8192 },
	};
	int i, j;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		for (j = 1; j <= 10; j += 9) {	/* at once, or in 10 parts */
			struct sched_chain c = { };
			int part;

			for (part = 0; part < j; part++) {
				c.ran = cases[i].time / j;
				chain_count(&c, 0, cases[i].capacity);
			}
			KUNIT_EXPECT_TRUE_MSG(test, near(util_of(&c), cases[i].util),
					      "row %d in %d: %u/16", i, j, util_of(&c));
			KUNIT_EXPECT_LE_MSG(test, c.lag, cases[i].lag + 10, "row %d in %d", i, j);
			KUNIT_EXPECT_GE_MSG(test, c.lag + 10, cases[i].lag, "row %d in %d", i, j);
		}
	}
}

static void test_rest(struct kunit *test)
{
	static const struct {
		u32 util, lag, time, then, left;
	} cases[] = {
		{ 512, 0, 1000, 501, 0 }, { 512, 8192, 8192, 362, 0 }, { 1024, 0, 32768, 512, 0 },
		{ 800, 5000, 100, 718, 0 },
		{ 800, 5000, 0, 800, 5000 },	/* it did not rest */
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sched_chain c = { .util = UTIL(cases[i].util), .lag = cases[i].lag };

		chain_count(&c, cases[i].time, FULL);
		KUNIT_EXPECT_TRUE_MSG(test, near(util_of(&c), cases[i].then), "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, c.lag, cases[i].left, "row %d", i);
	}
}

/* Has the wakee's own wake-up come round? Logical clocks of the waker and of the wakee */
static void test_hand(struct kunit *test)
{
	static const struct {
		u32 clock, own;
		bool issued;
		u8 loop, then;
		bool taken;
	} cases[] = {
		{ 8, 7, true, 0, 2, true }, { 10, 7, true, 0, 2, true },
		{ 70, 7, true, 0, 2, true }, { 71, 7, true, 0, 0, true },
		{ 1, U32_MAX, true, 0, 2, true }, { 8, 7, true, 1, 2, true },
		/* it did not issue the wake-up */
		{ 8, 7, false, 0, 0, true }, { 8, 7, false, 2, 1, true },
		/* a wake-up by one before it */
		{ 7, 7, true, 2, 1, true }, { 6, 7, true, 2, 1, true }, { 6, 7, true, 0, 0, true },
		/* strangers: a loop goes on, and ends */
		{ 5, 7, true, 2, 1, false }, { 5, 7, true, 1, 0, false },
		{ 5, 7, true, 0, 0, true }, { 71, 7, true, 2, 1, false },
	};
	static const struct {
		u32 rest, own, slack;
	} rests[] = {
		{ 500, 300, 200 }, { 300, 300, 0 }, { 299, 300, 0 },
		{ 100, U32_MAX - 99, 200 },
	};
	struct sched_chain w;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		bool taken;
		u32 clock = cases[i].own;

		w = (struct sched_chain){ .clock = cases[i].own, .issued = cases[i].issued,
					  .loop = cases[i].loop, .rest = 7 };
		taken = chain_hand(&w, 9, cases[i].clock);
		KUNIT_EXPECT_EQ_MSG(test, taken, cases[i].taken, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, w.handed, taken, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, w.loop, cases[i].then, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, w.issued, cases[i].issued && w.loop != 2, "row %d", i);
		if (taken)
			clock = cases[i].clock + 1;
		KUNIT_EXPECT_EQ_MSG(test, w.clock, clock, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, w.rest, taken ? 9 : 7, "row %d", i);
	}
	for (i = 0; i < ARRAY_SIZE(rests); i++) {
		w = (struct sched_chain){ .rest = rests[i].own };
		chain_hand(&w, rests[i].rest, 1);
		KUNIT_EXPECT_EQ_MSG(test, w.slack, rests[i].slack, "rest %d", i);
	}
}

/* A task of 512 slept for 8192; its waker says for how much of that the chain rested. */
static void test_woken(struct kunit *test)
{
	static const struct {
		bool handed;
		u8 loop;
		u32 slack, util, rest;
	} cases[] = {
		{ true, 1, 4096, 512, 7 },
		{ true, 1, 0, 593, 7 },
		{ true, 1, 32768, 256, 7 },	/* it had been taken for work before */
		{ true, 0, 4096, 431, 7 },	/* of no loop */
		{ false, 1, 0, 431, 7 + 8192 },	/* a timer */
	};
	const u64 now = U32_MAX + 5000ULL;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sched_chain c = { .util = UTIL(512), .time = now - 8192, .rest = 7,
					 .slack = cases[i].slack, .loop = cases[i].loop,
					 .handed = cases[i].handed };

		woken(&c, now, FULL);
		KUNIT_EXPECT_TRUE_MSG(test, near(util_of(&c), cases[i].util), "row %d: %u/16", i,
				      util_of(&c));
		KUNIT_EXPECT_EQ_MSG(test, c.rest, cases[i].rest, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, c.time, now, "row %d", i);
		KUNIT_EXPECT_FALSE_MSG(test, c.handed, "row %d", i);
	}
}

/*
 * Sleeps that a timer ends, until the loop of a child, say, ends; not if a task of the loop
 * wakes it in between.
 */
static void test_timers(struct kunit *test)
{
	static const struct {
		u32 sleep, number;
		bool handed;
		u8 loop;
	} cases[] = {
		{ CHAIN_REST, 1, false, 2 }, { CHAIN_REST + 1, 1, false, 0 },
		{ MS(80), 1, false, 2 }, { MS(80), 2, false, 0 }, { MS(80), 10, true, 2 },
		{ MS(1), 100, false, 2 }, { MS(1), 150, false, 0 }, { MS(1), 150, true, 2 },
	};
	int i, j;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sched_chain c = { .loop = 2 };

		for (j = 0; j < cases[i].number; j++) {
			woken(&c, c.time + cases[i].sleep, FULL);
			c.issued = true;
			if (cases[i].handed) {
				chain_hand(&c, c.rest, c.clock + 1);
				woken(&c, c.time + MS(500), FULL);
			}
		}
		KUNIT_EXPECT_EQ_MSG(test, c.loop, cases[i].loop, "row %d", i);
	}
}

/* Time on a run queue is work as far as the task could run, or the CPU had to wake. */
static void test_run(struct kunit *test)
{
	static const struct {
		u32 passed, exec, work;
	} cases[] = {
		{ 1000, 1000, 1000 }, { 1000, 744, 1000 }, { 1000, 743, 999 },
		{ 1000, 0, 256 }, { 100, 0, 100 }, { 90000, 10000, 10256 },
		{ 0, 500, 0 }, { CHAIN_GONE - 1, 5 * CHAIN_GONE, CHAIN_GONE - 1 },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sched_chain c = { .time = U32_MAX - 99, .exec = U32_MAX - 49, .rest = 7 };
		u64 now = c.time + cases[i].passed;
		u32 slack = chain_run(&c, now, c.exec + cases[i].exec);

		KUNIT_EXPECT_EQ_MSG(test, c.ran, cases[i].work, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, slack, cases[i].passed - cases[i].work, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, c.rest, 7 + slack, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, c.time, now, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, c.exec, U32_MAX - 49 + cases[i].exec, "row %d", i);
	}
}

/*
 * A chain without news for a second is forgotten, whatever wraps meanwhile: its task slept,
 * could not run, or chains were off. A shorter sleep that the loop ends is work.
 */
static void test_gone(struct kunit *test)
{
	static const struct {
		u64 time;
		bool gone;
	} cases[] = {
		{ MS(900), false }, { CHAIN_GONE - 1, false }, { CHAIN_GONE, true },
		{ MS(2000), true }, { MINUTES(35), true }, { MINUTES(36), true },
		{ MINUTES(50), true }, { MINUTES(73), true }, { 1ULL << 31, true },
		{ 1ULL << 32, true }, { (1ULL << 32) + MS(1), true },
		{ DAYS(20), true }, { DAYS(25), true }, { DAYS(30), true }, { DAYS(50), true },
	};
	int i, how;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		bool gone = cases[i].gone;

		for (how = 0; how < 3; how++) {	/* a task, a timer, or nobody wakes it */
			struct sched_chain c = { .util = UTIL(700), .time = 5000, .exec = 77,
						 .rest = 9, .loop = 2, .issued = true };
			u64 now = c.time + cases[i].time;
			u32 passed = gone ? CHAIN_GONE : cases[i].time;

			if (how == 0)
				chain_hand(&c, 9, 1);
			if (how == 2)
				run(&c, now, 77, FULL);
			else
				woken(&c, now, FULL);
			KUNIT_EXPECT_EQ_MSG(test, c.time, now, "row %d.%d", i, how);
			KUNIT_EXPECT_EQ_MSG(test, c.loop, gone || how == 1 ? 0 : 2,
					    "row %d.%d", i, how);
			KUNIT_EXPECT_EQ_MSG(test, c.issued, !gone && how, "row %d.%d", i, how);
			KUNIT_EXPECT_EQ_MSG(test, c.rest, 9 + (how == 0 ? 0 : how == 1 || gone ?
					    passed : passed - CHAIN_WAKE), "row %d.%d", i, how);
			KUNIT_EXPECT_EQ_MSG(test, c.ran, 0, "row %d.%d", i, how);
			KUNIT_EXPECT_TRUE_MSG(test, near(util_of(&c), gone || how ? 0 : FULL),
					      "row %d.%d: %u/16", i, how, util_of(&c));
			KUNIT_EXPECT_EQ_MSG(test, chain_need(&c, FULL) > 1000, !gone && !how,
					    "row %d.%d", i, how);
		}
	}
}

/* What a child inherits from its parent, which was accounted a while before */
static void test_new(struct kunit *test)
{
	static const struct {
		u64 before;
		u8 had;
		u32 util;
		u8 loop;
	} cases[] = {
		{ 0, 2, 700, 2 }, { MS(3), 2, 700, 2 }, { MS(3), 0, 700, 0 },
		{ CHAIN_GONE - 1, 2, 700, 2 }, { CHAIN_GONE, 2, 0, 0 },
		{ MINUTES(50), 2, 0, 0 }, { DAYS(25), 2, 0, 0 },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sched_chain parent = { .util = UTIL(700), .time = 1000, .exec = 5000,
					      .ran = 50, .rest = 9, .clock = U32_MAX,
					      .lag = CHAIN_LAG, .loop = cases[i].had,
					      .issued = true };
		struct sched_chain c = parent;
		u64 now = parent.time + cases[i].before;

		chain_new(&c, now);
		KUNIT_EXPECT_EQ_MSG(test, c.util, UTIL(cases[i].util), "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, c.loop, cases[i].loop, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, c.lag, !!cases[i].loop * CHAIN_LAG, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, c.time, now, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, c.exec, 0, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, c.ran, 0, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, c.rest, 9, "row %d", i);
		KUNIT_EXPECT_FALSE_MSG(test, c.issued, "row %d", i);
		/* It ends, which wakes the parent. */
		chain_run(&c, now + 400, 400);
		KUNIT_EXPECT_EQ_MSG(test, c.ran, 400, "row %d", i);
		chain_hand(&parent, c.rest, c.clock);
		KUNIT_EXPECT_EQ_MSG(test, parent.loop, 2, "row %d", i);
		KUNIT_EXPECT_FALSE_MSG(test, parent.issued, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, parent.slack, 0, "row %d", i);
	}
}

/* Little work is counted later, and does not count as rest. */
static void test_grain(struct kunit *test)
{
	struct sched_chain c = { .util = UTIL(512), .time = 100 };
	u32 slack = chain_run(&c, 100 + CHAIN_GRAIN - 1, CHAIN_GRAIN - 1);

	KUNIT_EXPECT_FALSE(test, chain_counts(&c, slack));
	slack = chain_woken(&c, 100 + CHAIN_GRAIN - 1 + 500);
	KUNIT_EXPECT_TRUE(test, chain_counts(&c, slack));
	KUNIT_EXPECT_EQ(test, c.ran, CHAIN_GRAIN - 1);
	KUNIT_EXPECT_EQ(test, c.rest, 500);
	chain_count(&c, slack, FULL);
	KUNIT_EXPECT_EQ(test, c.ran, 0);
	KUNIT_EXPECT_EQ(test, c.time, 100 + CHAIN_GRAIN - 1 + 500);
	chain_run(&c, c.time + CHAIN_GRAIN, CHAIN_GRAIN - 1);
	KUNIT_EXPECT_TRUE(test, chain_counts(&c, 0));
	KUNIT_EXPECT_EQ(test, c.ran, CHAIN_GRAIN);
}

/* The clock of another CPU is behind. */
static void test_clock_behind(struct kunit *test)
{
	struct sched_chain c = { .util = UTIL(512), .time = 100 };

	run(&c, 90, 10, FULL);
	woken(&c, 90, FULL);
	KUNIT_EXPECT_EQ(test, c.time, 100);
	KUNIT_EXPECT_EQ(test, c.util, UTIL(512));
	KUNIT_EXPECT_EQ(test, c.rest, 0);
}

/* What a chain requests of a CPU, of which @own does something */
static void test_need(struct kunit *test)
{
	static const struct {
		u8 loop;
		u32 util, lag, own, need;
	} cases[] = {
		{ 2, 1023, 0, 512, 1023 }, { 1, 1023, 0, 128, 1023 }, { 1, 1023, 0, 100, 800 },
		{ 1, 300, 0, 100, 300 }, { 1, 1023, 0, 0, 0 }, { 0, 1023, 0, 512, 0 },
		{ 1, 300, CHAIN_LAG - 1, 512, 300 }, { 2, 300, CHAIN_LAG, 512, 1024 },
		{ 1, 300, CHAIN_LAG, 100, 800 }, { 0, 300, CHAIN_LAG, 512, 0 },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sched_chain c = { .loop = cases[i].loop, .lag = cases[i].lag,
					 .util = UTIL(cases[i].util) };

		KUNIT_EXPECT_EQ_MSG(test, chain_need(&c, cases[i].own), cases[i].need, "row %d", i);
	}
}

/* Jiffies wrap after 50 days at 1000 Hz; half of that is nothing special. */
static void test_lapse(struct kunit *test)
{
	static const u32 stamps[] = { 0, 1000, INT_MAX, U32_MAX - 5 };
	static const u32 days[] = { 20, 25, 30, 50 };
	int i, j;

	for (i = 0; i < ARRAY_SIZE(stamps); i++) {
		KUNIT_EXPECT_FALSE(test, chain_lapsed(stamps[i], stamps[i]));
		KUNIT_EXPECT_FALSE(test, chain_lapsed(stamps[i], stamps[i] + CHAIN_HOLD));
		KUNIT_EXPECT_TRUE(test, chain_lapsed(stamps[i], stamps[i] + CHAIN_HOLD + 1));
		KUNIT_EXPECT_TRUE(test, chain_lapsed(stamps[i], stamps[i] + BIT(31)));
		KUNIT_EXPECT_TRUE(test, chain_lapsed(stamps[i], stamps[i] + BIT(31) + 1));
		KUNIT_EXPECT_TRUE(test, chain_lapsed(stamps[i], stamps[i] - 1));
		for (j = 0; j < ARRAY_SIZE(days); j++) {
			u32 now = stamps[i] + days[j] * 24 * 60 * 60 * (u64)HZ;

			KUNIT_EXPECT_TRUE(test, chain_lapsed(stamps[i], now));
		}
	}
}

/*
 * Scenes: what tasks do in each period, in us. A letter: the task wakes the one of that
 * name; 'p' is another one of @pool tasks in each period. '-': it sleeps, '+': a timer wakes
 * it, '<': it has to wait, '>': it runs again. Then what they ask for after 100 periods and
 * more than 0.5 s; the last one is the pool's.
 */
#define TASKS		10
#define POOL		30

struct scene {
	const char *name;
	u32 period, capacity, pool;
	struct {
		u32 at;
		char who, does;
	} steps[40];
	u32 need[TASKS];
};

static const struct scene scenes[] = {
	{ "two take turns", 20, FULL, 0,
	  { { 10, 'a', 'b' }, { 10, 'a', '-' }, { 20, 'b', 'a' }, { 20, 'b', '-' } },
	  { 1024, 1024 } },
	{ "legs of 5 ms", 10000, FULL, 0,
	  { { 5000, 'a', 'b' }, { 5000, 'a', '-' }, { 10000, 'b', 'a' }, { 10000, 'b', '-' } },
	  { 1024, 1024 } },
	{ "at a third of the capacity", 10000, 341, 0,
	  { { 5000, 'a', 'b' }, { 5000, 'a', '-' }, { 10000, 'b', 'a' }, { 10000, 'b', '-' } },
	  { 1024, 1024 } },
	{ "a ring of four", 4000, FULL, 0,
	  { { 1000, 'a', 'b' }, { 1000, 'a', '-' }, { 2000, 'b', 'c' }, { 2000, 'b', '-' },
	    { 3000, 'c', 'd' }, { 3000, 'c', '-' }, { 4000, 'd', 'a' }, { 4000, 'd', '-' } },
	  { 1024, 1024, 1024, 1024 } },
	{ "0.3 and 0.2 ms in each ms", 1000, FULL, 0,
	  { { 0, 'a', '+' }, { 300, 'a', 'b' }, { 300, 'a', '-' }, { 500, 'b', 'a' },
	    { 500, 'b', '-' }, { 500, 'a', '-' } },
	  { 512, 512 } },
	{ "20 and 20 us in each 100", 100, FULL, 0,
	  { { 0, 'a', '+' }, { 20, 'a', 'b' }, { 20, 'a', '-' }, { 40, 'b', 'a' },
	    { 40, 'b', '-' }, { 40, 'a', '-' } },
	  { 410, 410 } },
	{ "the same at half the clock", 1000, 512, 0,
	  { { 0, 'a', '+' }, { 400, 'a', 'b' }, { 400, 'a', '-' }, { 800, 'b', 'a' },
	    { 800, 'b', '-' }, { 800, 'a', '-' } },
	  { 410, 410 } },
	{ "the second one rests before it answers", 1000, FULL, 0,
	  { { 200, 'a', 'b' }, { 200, 'a', '-' }, { 300, 'b', '-' }, { 800, 'b', '+' },
	    { 1000, 'b', 'a' }, { 1000, 'b', '-' } },
	  { 512, 512 } },
	{ "a wake-up too early", 1000, FULL, 0,
	  { { 500, 'a', 'b' }, { 500, 'a', '-' }, { 510, 'b', 'a' }, { 520, 'a', '-' },
	    { 1000, 'b', 'a' }, { 1000, 'b', '-' } },
	  { 1024, 1024 } },
	{ "a producer and a consumer", 1000, FULL, 0,
	  { { 0, 'a', '+' }, { 400, 'a', 'b' }, { 400, 'a', '-' }, { 800, 'b', '-' } },
	  { 0, 0 } },
	{ "a hog and a daemon", 1000, FULL, 0,
	  { { 500, 'a', 'b' }, { 600, 'b', '-' } },
	  { 0, 0 } },
	{ "a logger of two that take turns", 1000, FULL, 0,
	  { { 400, 'a', 'b' }, { 500, 'a', 'c' }, { 500, 'a', '-' }, { 600, 'c', '-' },
	    { 1000, 'b', 'a' }, { 1000, 'b', '-' } },
	  { 1024, 1024, 0 } },
	{ "two that work at the same time, and tell each other", 1000, FULL, 0,
	  { { 0, 'a', '+' }, { 0, 'b', '+' }, { 400, 'a', 'b' }, { 400, 'a', '-' },
	    { 410, 'b', 'a' }, { 420, 'a', '-' }, { 420, 'b', '-' } },
	  { 0, 0 } },
	{ "two workers are waited for, in 3 of 10 ms; looked at after those", 10000, FULL, 0,
	  { { 0, 'a', '+' }, { 0, 'a', 'b' }, { 0, 'a', 'c' }, { 10, 'a', '-' },
	    { 3000, 'b', 'a' }, { 3000, 'b', '-' }, { 3010, 'a', '-' }, { 3010, 'c', 'a' },
	    { 3010, 'c', '-' }, { 3020, 'a', '-' } },
	  { 16, 329, 329 } },
	{ "one task waits for two", 1000, FULL, 0,
	  { { 100, 'a', 'b' }, { 100, 'a', 'c' }, { 100, 'a', '-' }, { 500, 'b', 'a' },
	    { 500, 'b', '-' }, { 510, 'a', '-' }, { 1000, 'c', 'a' }, { 1000, 'c', '-' } },
	  { 888, 1024, 1024 } },
	{ "an event of a conversation, in each ms, that is logged", 1000, FULL, 0,
	  { { 250, 'a', 'b' }, { 250, 'a', '-' }, { 500, 'b', 'a' }, { 500, 'b', '-' },
	    { 500, 'a', 'c' }, { 510, 'c', 'd' }, { 510, 'c', '-' }, { 520, 'd', '-' },
	    { 750, 'a', 'b' }, { 750, 'a', '-' }, { 1000, 'b', 'a' }, { 1000, 'b', '-' } },
	  { 1024, 1024, 82, 0 } },
	{ "one hands out work to eight, and waits", 1000, FULL, 0,
	  { { 0, 'a', 'b' }, { 1, 'a', 'c' }, { 2, 'a', 'd' }, { 3, 'a', 'e' },
	    { 4, 'a', 'f' }, { 5, 'a', 'g' }, { 6, 'a', 'h' }, { 6, 'a', 'i' }, { 6, 'a', '-' },
	    { 960, 'b', '-' }, { 961, 'c', '-' }, { 962, 'd', '-' }, { 963, 'e', '-' },
	    { 964, 'f', '-' }, { 965, 'g', '-' }, { 966, 'h', '-' },
	    { 999, 'i', 'a' }, { 999, 'i', '-' } },
	  { 55, 0, 0, 0, 0, 0, 0, 0, 1024 } },
	{ "a client and 30 workers by turns", 100, FULL, 30,
	  { { 50, 'a', 'p' }, { 50, 'a', '-' }, { 100, 'p', 'a' }, { 100, 'p', '-' } },
	  { 1024, [TASKS - 1] = 137 } },
	{ "1 us of work, 20 us until it begins", 42, FULL, 0,
	  { { 0, 'a', '<' }, { 20, 'a', '>' }, { 21, 'a', 'b' }, { 21, 'a', '-' },
	    { 21, 'b', '<' }, { 41, 'b', '>' }, { 42, 'b', 'a' }, { 42, 'b', '-' } },
	  { 195, 195 } },
	{ "turns, throttled to 10 of 100 ms", 100000, FULL, 0,
	  { { 2500, 'a', 'b' }, { 2500, 'a', '-' }, { 5000, 'b', 'a' }, { 5000, 'b', '-' },
	    { 7500, 'a', 'b' }, { 7500, 'a', '-' }, { 8000, 'b', '<' }, { 98000, 'b', '>' },
	    { 100000, 'b', 'a' }, { 100000, 'b', '-' } },
	  { 128, 34 } },
	{ "turns, the second one behind a hog", 1000, FULL, 0,
	  { { 25, 'a', 'b' }, { 25, 'a', '-' }, { 25, 'b', '<' }, { 975, 'b', '>' },
	    { 1000, 'b', 'a' }, { 1000, 'b', '-' } },
	  { 205, 205 } },
	{ "a hog, and two that pass on what it makes", 1000, FULL, 0,
	  { { 500, 'a', 'b' }, { 700, 'b', 'c' }, { 700, 'b', '-' }, { 900, 'c', '-' } },
	  { 0, 0, 0 } },
	{ "two conversations tell a task of events, which logs them", 1000, FULL, 0,
	  { { 0, 'e', '+' }, { 250, 'a', 'b' }, { 250, 'a', '-' }, { 500, 'b', 'a' },
	    { 500, 'b', '-' }, { 500, 'a', 'c' }, { 550, 'c', 'd' }, { 550, 'c', '-' },
	    { 560, 'd', '-' }, { 650, 'e', 'f' }, { 650, 'e', '-' }, { 800, 'f', 'e' },
	    { 800, 'f', '-' }, { 800, 'e', 'c' }, { 850, 'c', 'd' }, { 850, 'c', '-' },
	    { 860, 'd', '-' }, { 950, 'e', '-' } },
	  { 1024, 1024, 0, 0, 973, 973 } },
	{ "events of a conversation, of which each fourth is logged", 4000, FULL, 0,
	  { { 250, 'a', 'b' }, { 250, 'a', '-' }, { 500, 'b', 'a' }, { 500, 'b', '-' },
	    { 500, 'a', 'c' }, { 600, 'c', 'd' }, { 600, 'c', '-' }, { 610, 'd', '-' },
	    { 1250, 'a', 'b' }, { 1250, 'a', '-' }, { 1500, 'b', 'a' }, { 1500, 'b', '-' },
	    { 1500, 'a', 'c' }, { 1600, 'c', '-' },
	    { 2250, 'a', 'b' }, { 2250, 'a', '-' }, { 2500, 'b', 'a' }, { 2500, 'b', '-' },
	    { 2500, 'a', 'c' }, { 2600, 'c', '-' },
	    { 3250, 'a', 'b' }, { 3250, 'a', '-' }, { 3500, 'b', 'a' }, { 3500, 'b', '-' },
	    { 3500, 'a', 'c' }, { 3600, 'c', '-' } },
	  { 1024, 1024, 0, 0 } },
	{ "turns for 4 of 20 ms, then what a hog says", 20000, FULL, 0,
	  { { 0, 'a', '+' }, { 1000, 'a', 'b' }, { 1000, 'a', '-' }, { 2000, 'b', 'a' },
	    { 2000, 'b', '-' }, { 3000, 'a', 'b' }, { 3000, 'a', '-' }, { 4000, 'b', 'a' },
	    { 4000, 'b', '-' }, { 4000, 'a', '-' }, { 4000, 'c', '+' }, { 8000, 'c', 'b' },
	    { 9000, 'b', '-' }, { 12000, 'c', 'b' }, { 13000, 'b', '-' }, { 16000, 'c', 'b' },
	    { 17000, 'b', '-' } },
	  { 236, 0, 0 } },
	{ "turns, and a bystander's softirq between", 1000, FULL, 0,
	  { { 250, 'a', 'b' }, { 250, 'a', '-' }, { 500, 'b', '-' }, { 500, 'c', '+' },
	    { 500, 'c', 'b' }, { 500, 'c', '-' }, { 750, 'b', 'a' }, { 750, 'b', '-' } },
	  { 1024, 1024, 0 } },
	{ "turns, and two timers and a bystander's softirq between", 1000, FULL, 0,
	  { { 100, 'a', '-' }, { 150, 'a', '+' }, { 250, 'a', '-' }, { 300, 'a', '+' },
	    { 350, 'a', '-' }, { 400, 'c', '+' }, { 400, 'c', 'a' }, { 400, 'c', '-' },
	    { 500, 'a', 'b' }, { 500, 'a', '-' }, { 1000, 'b', 'a' }, { 1000, 'b', '-' } },
	  { 870, 870, 0 } },
};

/* A task, and the same task if no other ever woke it, whose average is its utilization */
struct actor {
	struct sched_chain c, own;
	u32 exec;
	u64 since;
	bool awake, waits;
};

static void act(struct actor *a, struct actor *other, char does, u64 now, u32 capacity)
{
	struct actor *woken_one = other;

	if (a->awake && !a->waits)
		a->exec += now - a->since;
	a->since = now;
	switch (does) {
	case '-':
		run(&a->c, now, a->exec, capacity);
		a->own.exec += CHAIN_WAKE;
		run(&a->own, now, a->exec, capacity);
		a->awake = false;
		return;
	case '<':
	case '>':
		a->waits = does == '<';
		return;
	case '+':
		woken_one = a;
		break;
	default:
		if (!other->awake && chain_hand(&other->c, a->c.rest, a->c.clock))
			a->c.issued = true;
	}
	if (woken_one->awake)
		return;
	woken(&woken_one->c, now, capacity);
	woken(&woken_one->own, now, capacity);
	woken_one->awake = true;
	woken_one->since = now;
}

static int actor_of(const struct scene *s, char letter, int number)
{
	return letter == 'p' ? TASKS + number % s->pool : letter - 'a';
}

static void play(const struct scene *s, struct actor *actors, u64 begin)
{
	int i, number;

	actors[0].awake = true;
	for (number = 0; number < 100 || number * s->period < 500000; number++) {
		for (i = 0; i < ARRAY_SIZE(s->steps) && s->steps[i].who; i++) {
			u64 us = (u64)number * s->period + s->steps[i].at;
			struct actor *a = &actors[actor_of(s, s->steps[i].who, number)], *b = a;

			if (s->steps[i].does >= 'a')
				b = &actors[actor_of(s, s->steps[i].does, number)];
			act(a, b, s->steps[i].does, begin + us * 1000 / 1024, s->capacity);
		}
	}
}

static void test_scenes(struct kunit *test)
{
	static const u64 begins[] = { MS(200), U32_MAX - MS(300), DAYS(25), DAYS(400) };
	struct actor *actors = kunit_kzalloc(test, (TASKS + POOL) * sizeof(*actors), GFP_KERNEL);
	int i, j, k;

	KUNIT_ASSERT_NOT_NULL(test, actors);
	for (i = 0; i < ARRAY_SIZE(scenes); i++) {
		for (j = 0; j < ARRAY_SIZE(begins); j++) {
			memset(actors, 0, (TASKS + POOL) * sizeof(*actors));
			for (k = 0; k < TASKS + POOL; k++) {	/* strangers that never spoke */
				actors[k].c.clock = 1000000 * k;
				actors[k].c.rest = 5000000 * k;
				actors[k].c.time = begins[j];
				actors[k].own.time = begins[j];
				actors[k].since = begins[j];
			}
			play(&scenes[i], actors, begins[j]);
			for (k = 0; k < TASKS; k++) {
				bool last = scenes[i].pool && k == TASKS - 1;
				struct actor *a = &actors[last ? TASKS : k];
				u32 want = scenes[i].need[k];
				u32 is = chain_need(&a->c, a->own.util >> CHAIN_UTIL_SHIFT);

				KUNIT_EXPECT_TRUE_MSG(test, is + 8 + want / 32 >= want &&
						      is <= want + 8 + want / 32,
						      "%s, %c: %u, not %u", scenes[i].name,
						      'a' + k, is, want);
			}
		}
	}
}

static struct kunit_case chain_cases[] = {
	KUNIT_CASE(test_decay),
	KUNIT_CASE(test_busy),
	KUNIT_CASE(test_rest),
	KUNIT_CASE(test_hand),
	KUNIT_CASE(test_woken),
	KUNIT_CASE(test_timers),
	KUNIT_CASE(test_run),
	KUNIT_CASE(test_gone),
	KUNIT_CASE(test_new),
	KUNIT_CASE(test_grain),
	KUNIT_CASE(test_clock_behind),
	KUNIT_CASE(test_need),
	KUNIT_CASE(test_lapse),
	KUNIT_CASE(test_scenes),
	{ }
};

static struct kunit_suite chain_suite = {
	.name = "schedutil_chain",
	.test_cases = chain_cases,
};

kunit_test_suite(chain_suite);

MODULE_DESCRIPTION("KUnit tests of chains of tasks");
MODULE_LICENSE("GPL");
