// SPDX-License-Identifier: GPL-2.0
/* KUnit tests of chains: the arithmetic table by table, and tasks that take turns or do not. */
#include <kunit/test.h>
#include <linux/module.h>

#include "chain.h"

#define FULL		1024			/* capacity */
#define UTIL(x)		((u32)(x) << CHAIN_UTIL_SHIFT)
#define MS(x)		((u32)((x) * 1000000 / 1024))

static u32 util_of(const struct sched_chain *c)
{
	return c->util >> (CHAIN_UTIL_SHIFT - 4);	/* in 1/16 */
}

/* Is @is, in 1/16, what @want is, to 1/64 and 1? */
static bool near(u32 is, u32 want)
{
	u32 most = 16 + 16 * want / 64;

	return is + most >= 16 * want && is <= 16 * want + most;
}

/* The task had work, or was asleep, until @now. */
static void run(struct sched_chain *c, u32 now, u32 capacity)
{
	if (chain_run(c, now))
		chain_count(c, capacity);
}

static void woken(struct sched_chain *c, u32 now, u32 capacity)
{
	if (chain_woken(c, now))
		chain_count(c, capacity);
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

/* Busy from rest: the share rises with the work; what is lost is made good for by a rest. */
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

			for (part = 0; part < j; part++)
				chain_busy(&c, cases[i].time / j, cases[i].capacity);
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

		chain_rest(&c, cases[i].time);
		KUNIT_EXPECT_TRUE_MSG(test, near(util_of(&c), cases[i].then), "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, c.lag, cases[i].left, "row %d", i);
	}
}

/* Has the wakee's own wake-up come round? Numbers of the waker and of the wakee */
static void test_hand(struct kunit *test)
{
	static const struct {
		u32 hop, own;
		bool issued;
		enum chain_waker waker;
	} cases[] = {
		{ 8, 7, true, CHAIN_LOOP }, { 10, 7, true, CHAIN_LOOP },
		{ 70, 7, true, CHAIN_LOOP }, { 71, 7, true, CHAIN_STRANGER },
		{ 1, U32_MAX, true, CHAIN_LOOP },
		{ 8, 7, false, CHAIN_AGAIN }, { 70, 7, false, CHAIN_AGAIN },
		{ 71, 7, false, CHAIN_STRANGER },
		{ 7, 7, true, CHAIN_AGAIN }, { 6, 7, true, CHAIN_AGAIN },
		{ 5, 7, true, CHAIN_STRANGER }, { U32_MAX, 0, false, CHAIN_AGAIN },
	};
	static const struct {
		u32 rest, own, slack;
	} rests[] = {
		{ 500, 300, 200 }, { 300, 300, 0 }, { 299, 300, 0 }, { 100, U32_MAX - 99, 200 },
	};
	struct sched_chain w;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		w = (struct sched_chain){ .hop = cases[i].own, .issued = cases[i].issued };
		chain_hand(&w, 0, cases[i].hop);
		KUNIT_EXPECT_EQ_MSG(test, w.waker, cases[i].waker, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, w.hop, cases[i].hop + 1, "row %d", i);
	}
	for (i = 0; i < ARRAY_SIZE(rests); i++) {
		w = (struct sched_chain){ .rest = rests[i].own };
		chain_hand(&w, rests[i].rest, 1);
		KUNIT_EXPECT_EQ_MSG(test, w.slack, rests[i].slack, "rest %d", i);
		KUNIT_EXPECT_EQ_MSG(test, w.rest, rests[i].rest, "rest %d", i);
	}
}

/* A task of 512 slept for 8192, of which its chain rested for 4096, says the waker. */
static void test_woken(struct kunit *test)
{
	static const struct {
		enum chain_waker waker;
		u32 closed;		/* so long ago, before */
		u32 slack, util, rest;
		u32 then;		/* closed so long ago */
	} cases[] = {
		{ CHAIN_LOOP, 100000, 4096, 512, 7, 0 },
		{ CHAIN_LOOP, 100000, 0, 593, 7, 0 },
		{ CHAIN_LOOP, 100000, 9000, 431, 7, 0 },
		{ CHAIN_AGAIN, 65535, 4096, 512, 7, 65535 },
		{ CHAIN_AGAIN, 65536, 4096, 431, 7, 65536 },	/* the loop has lapsed */
		{ CHAIN_STRANGER, 10000, 0, 431, 7, 10000 },
		{ CHAIN_NOBODY, 10000, 0, 431, 7 + 8192, 10000 },
	};
	const u32 now = 5000;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sched_chain c = { .util = UTIL(512), .time = now - 8192, .rest = 7,
					 .slack = cases[i].slack, .waker = cases[i].waker,
					 .closed = now - cases[i].closed, .issued = true };

		woken(&c, now, FULL);
		KUNIT_EXPECT_TRUE_MSG(test, near(util_of(&c), cases[i].util), "row %d: %u/16", i,
				      util_of(&c));
		KUNIT_EXPECT_EQ_MSG(test, c.rest, cases[i].rest, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, c.time, now, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, c.waker, CHAIN_NOBODY, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, c.issued, !!cases[i].then, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, c.closed, now - cases[i].then, "row %d", i);
	}
}

/* Little work is counted later, but is no rest. */
static void test_grain(struct kunit *test)
{
	struct sched_chain c = { .util = UTIL(512), .time = 100, .waker = CHAIN_NOBODY };

	KUNIT_EXPECT_FALSE(test, chain_run(&c, 100 + CHAIN_GRAIN - 1));
	KUNIT_EXPECT_EQ(test, c.time, 100);
	KUNIT_EXPECT_TRUE(test, chain_woken(&c, 100 + CHAIN_GRAIN - 1 + 500));
	KUNIT_EXPECT_EQ(test, c.ran, CHAIN_GRAIN - 1);
	KUNIT_EXPECT_EQ(test, c.rest, 500);
	chain_count(&c, FULL);
	KUNIT_EXPECT_EQ(test, c.time, 100 + CHAIN_GRAIN - 1 + 500);
	KUNIT_EXPECT_FALSE(test, chain_run(&c, c.time + 1));
	KUNIT_EXPECT_EQ(test, c.ran, 1);
	KUNIT_EXPECT_TRUE(test, chain_run(&c, c.time + CHAIN_GRAIN));
	KUNIT_EXPECT_EQ(test, c.ran, CHAIN_GRAIN);
}

/* The clock of another CPU is behind. */
static void test_clock_behind(struct kunit *test)
{
	struct sched_chain c = { .util = UTIL(512), .time = 100, .waker = CHAIN_NOBODY };

	run(&c, 90, FULL);
	woken(&c, 90, FULL);
	KUNIT_EXPECT_EQ(test, c.time, 100);
	KUNIT_EXPECT_EQ(test, c.util, UTIL(512));
	KUNIT_EXPECT_EQ(test, c.rest, 0);
}

/*
 * Scenes: what tasks do in each period, in us. A task wakes another by a letter, sleeps
 * by '-', and is woken by a timer by '+'. What they are in the end, after 100 periods and
 * more than 0.5 s, in 1/1024; 0 is not in a loop.
 */
struct scene {
	const char *name;
	u32 period, capacity;
	struct {
		u32 at;
		char who, does;
	} steps[12];
	u32 util[4];
};

static const struct scene scenes[] = {
	{ "two take turns", 20, FULL,
	  { { 10, 'a', 'b' }, { 10, 'a', '-' }, { 20, 'b', 'a' }, { 20, 'b', '-' } },
	  { 1024, 1024 } },
	{ "legs of 5 ms", 10000, FULL,
	  { { 5000, 'a', 'b' }, { 5000, 'a', '-' }, { 10000, 'b', 'a' }, { 10000, 'b', '-' } },
	  { 1024, 1024 } },
	{ "at a third of the capacity", 10000, 341,
	  { { 5000, 'a', 'b' }, { 5000, 'a', '-' }, { 10000, 'b', 'a' }, { 10000, 'b', '-' } },
	  { 1024, 1024 } },
	{ "a ring of four", 4000, FULL,
	  { { 1000, 'a', 'b' }, { 1000, 'a', '-' }, { 2000, 'b', 'c' }, { 2000, 'b', '-' },
	    { 3000, 'c', 'd' }, { 3000, 'c', '-' }, { 4000, 'd', 'a' }, { 4000, 'd', '-' } },
	  { 1024, 1024, 1024, 1024 } },
	{ "0.3 and 0.2 ms in each ms", 1000, FULL,
	  { { 0, 'a', '+' }, { 300, 'a', 'b' }, { 300, 'a', '-' }, { 500, 'b', 'a' },
	    { 500, 'b', '-' }, { 500, 'a', '-' } },
	  { 512, 512 } },
	{ "20 and 20 us in each 100", 100, FULL,
	  { { 0, 'a', '+' }, { 20, 'a', 'b' }, { 20, 'a', '-' }, { 40, 'b', 'a' },
	    { 40, 'b', '-' }, { 40, 'a', '-' } },
	  { 410, 410 } },
	{ "the same at half the clock", 1000, 512,
	  { { 0, 'a', '+' }, { 400, 'a', 'b' }, { 400, 'a', '-' }, { 800, 'b', 'a' },
	    { 800, 'b', '-' }, { 800, 'a', '-' } },
	  { 410, 410 } },
	{ "the second one rests before it answers", 1000, FULL,
	  { { 200, 'a', 'b' }, { 200, 'a', '-' }, { 300, 'b', '-' }, { 800, 'b', '+' },
	    { 1000, 'b', 'a' }, { 1000, 'b', '-' } },
	  { 512, 512 } },
	{ "a wake-up too early", 1000, FULL,
	  { { 500, 'a', 'b' }, { 500, 'a', '-' }, { 510, 'b', 'a' }, { 520, 'a', '-' },
	    { 1000, 'b', 'a' }, { 1000, 'b', '-' } },
	  { 1024, 1024 } },
	{ "a producer and a consumer", 1000, FULL,
	  { { 0, 'a', '+' }, { 400, 'a', 'b' }, { 400, 'a', '-' }, { 800, 'b', '-' } },
	  { 0, 0 } },
	{ "a hog and a daemon", 1000, FULL,
	  { { 500, 'a', 'b' }, { 600, 'b', '-' } },
	  { 0, 0 } },
	{ "a logger of two that take turns", 1000, FULL,
	  { { 400, 'a', 'b' }, { 500, 'a', 'c' }, { 500, 'a', '-' }, { 600, 'c', '-' },
	    { 1000, 'b', 'a' }, { 1000, 'b', '-' } },
	  { 1024, 1024, 0 } },
	{ "two that work at the same time, and tell each other", 1000, FULL,
	  { { 0, 'a', '+' }, { 0, 'b', '+' }, { 400, 'a', 'b' }, { 400, 'a', '-' },
	    { 410, 'b', 'a' }, { 420, 'a', '-' }, { 420, 'b', '-' } },
	  { 0, 0 } },
	{ "two workers are waited for, in 3 of 10 ms; looked at after those", 10000, FULL,
	  { { 0, 'a', '+' }, { 0, 'a', 'b' }, { 0, 'a', 'c' }, { 10, 'a', '-' },
	    { 3000, 'b', 'a' }, { 3000, 'b', '-' }, { 3010, 'a', '-' }, { 3010, 'c', 'a' },
	    { 3010, 'c', '-' }, { 3020, 'a', '-' } },
	  { 329, 329, 329 } },
	{ "one task waits for two", 1000, FULL,
	  { { 100, 'a', 'b' }, { 100, 'a', 'c' }, { 100, 'a', '-' }, { 500, 'b', 'a' },
	    { 500, 'b', '-' }, { 510, 'a', '-' }, { 1000, 'c', 'a' }, { 1000, 'c', '-' } },
	  { 1024, 1024, 1024 } },
};

static void play(const struct scene *s, struct sched_chain *tasks, u32 begin)
{
	bool awake[4] = { true };
	int i, number;

	for (number = 0; number < 100 || number * s->period < 500000; number++) {
		for (i = 0; i < ARRAY_SIZE(s->steps) && s->steps[i].who; i++) {
			u64 us = (u64)number * s->period + s->steps[i].at;
			u32 now = begin + (u32)(us * 1000 / 1024);
			int who = s->steps[i].who - 'a', other = s->steps[i].does - 'a';

			if (s->steps[i].does == '-') {
				run(&tasks[who], now, s->capacity);
				awake[who] = false;
			} else if (s->steps[i].does == '+') {
				if (!awake[who])
					woken(&tasks[who], now, s->capacity);
				awake[who] = true;
			} else if (!awake[other]) {
				chain_hand(&tasks[other], tasks[who].rest, tasks[who].hop);
				tasks[who].issued = true;
				woken(&tasks[other], now, s->capacity);
				awake[other] = true;
			}
		}
	}
	for (i = 0; i < 4; i++)
		if (!chain_in_loop(&tasks[i], begin + (u32)((u64)number * s->period * 1000 / 1024)))
			tasks[i].util = 0;
}

static void test_scenes(struct kunit *test)
{
	static const u32 begins[] = { MS(200), U32_MAX - MS(300) };
	int i, j, k;

	for (i = 0; i < ARRAY_SIZE(scenes); i++) {
		for (j = 0; j < ARRAY_SIZE(begins); j++) {
			struct sched_chain tasks[4] = { };

			for (k = 0; k < 4; k++) {	/* strangers that never spoke */
				tasks[k].hop = 1000000 * k;
				tasks[k].rest = 5000000 * k;
				tasks[k].time = begins[j];
				tasks[k].closed = begins[j] - 2 * CHAIN_LAPSE;
			}
			play(&scenes[i], tasks, begins[j]);
			for (k = 0; k < 4; k++) {
				u32 want = scenes[i].util[k], is = util_of(&tasks[k]);

				KUNIT_EXPECT_TRUE_MSG(test, is + 16 * 8 + want / 2 >= 16 * want &&
						      is <= 16 * want + want / 2,
						      "%s, %c: %u, not %u", scenes[i].name,
						      'a' + k, is / 16, want);
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
	KUNIT_CASE(test_grain),
	KUNIT_CASE(test_clock_behind),
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
