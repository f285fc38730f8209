// SPDX-License-Identifier: GPL-2.0
/* KUnit tests of pairs: the arithmetic, and tasks that take turns or do not. */
#include <kunit/test.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/sched.h>

#include "pairs.h"

#define FULL		1024			/* capacity */
#define HOLD		(HZ / 30 + 1)
#define UTIL_SHIFT	20
#define HALF_SHIFT	15			/* of the average, in us: PELT's is 32.8 ms */
#define HALF		((u32)BIT(HALF_SHIFT))

static void test_need(struct kunit *test)
{
	static const struct {
		u32 waker, own, cpu, capacity, need;
	} cases[] = {
		{ 200, 200, 0, 1024, 400 }, { 495, 400, 0, 1024, 895 }, { 496, 400, 0, 1024, 1024 },
		{ 200, 200, 0, 400, 1024 }, { 150, 200, 0, 400, 1024 }, { 149, 200, 0, 400, 349 },
		{ 900, 10, 0, 1024, 80 }, { 390, 10, 0, 1024, 80 }, { 350, 50, 0, 1024, 400 },
		{ 800, 700, 0, 1024, 1024 }, { 600, 700, 0, 1600, 1300 }, { 0, 0, 0, 1024, 0 },
		{ 500, 20, 120, 1024, 240 }, { 500, 5, 800, 1024, 160 },
		{ 600, 40, 800, 1024, 640 },
		{ 500, 0, 800, 1024, 0 }, { 500, 20, 79, 1024, 160 },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ_MSG(test, pair_need(cases[i].waker, cases[i].own, cases[i].cpu,
						    cases[i].capacity), cases[i].need, "row %d", i);
}

/* A request counts for HOLD jiffies, wherever jiffies stand. */
static void test_util(struct kunit *test)
{
	static const u32 starts[] = { 0, 1, 300 * HZ, BIT(21) - 1, BIT(21), U32_MAX - 2, U32_MAX };
	static const u32 needs[] = { 1, 320, 1023, 1024 };
	int i, j;

	for (i = 0; i < ARRAY_SIZE(starts); i++) {
		for (j = 0; j < ARRAY_SIZE(needs); j++) {
			u32 at = starts[i], request = at * 2048 + needs[j];

			KUNIT_EXPECT_EQ(test, pair_util(request, at), needs[j]);
			KUNIT_EXPECT_EQ(test, pair_util(request, at + HOLD), needs[j]);
			KUNIT_EXPECT_EQ(test, pair_util(request, at + HOLD + 1), 0);
			KUNIT_EXPECT_EQ(test, pair_util(request, at + 60 * HZ), 0);
		}
	}
}

#define TASKS		9

/*
 * What happens in each period of so many us, after so many: a letter's task wakes that of
 * the other letter, is woken by nobody (+), sleeps (-), waits for its CPU (<) and goes on (>).
 * Then what each task asked for in the last one.
 */
struct scene {
	const char *name;
	u32 period, capacity;
	struct {
		u32 at;
		char who, does;
	} steps[32];
	u32 need[TASKS];
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
	{ "two that work at the same time, and tell each other", 1000, FULL,
	  { { 0, 'a', '+' }, { 0, 'b', '+' }, { 400, 'a', 'b' }, { 400, 'a', '-' },
	    { 410, 'b', 'a' }, { 420, 'a', '-' }, { 420, 'b', '-' } },
	  { 0, 0 } },
	{ "two workers are waited for, in 3 of 10 ms", 10000, FULL,
	  { { 0, 'a', '+' }, { 0, 'a', 'b' }, { 0, 'a', 'c' }, { 10, 'a', '-' },
	    { 3000, 'b', 'a' }, { 3000, 'b', '-' }, { 3010, 'a', '-' }, { 3010, 'c', 'a' },
	    { 3010, 'c', '-' }, { 3020, 'a', '-' } },
	  { 0, 285, 285 } },
	{ "an event of a conversation, in each ms, that is logged", 1000, FULL,
	  { { 250, 'a', 'b' }, { 250, 'a', '-' }, { 500, 'b', 'a' }, { 500, 'b', '-' },
	    { 500, 'a', 'c' }, { 510, 'c', 'd' }, { 510, 'c', '-' }, { 520, 'd', '-' },
	    { 750, 'a', 'b' }, { 750, 'a', '-' }, { 1000, 'b', 'a' }, { 1000, 'b', '-' } },
	  { 1024, 1024, 0, 0 } },
	{ "1 us of work, 20 us until it begins", 42, FULL,
	  { { 0, 'a', '<' }, { 20, 'a', '>' }, { 21, 'a', 'b' }, { 21, 'a', '-' },
	    { 21, 'b', '<' }, { 41, 'b', '>' }, { 42, 'b', 'a' }, { 42, 'b', '-' } },
	  { 49, 49 } },
	{ "turns, throttled to 10 of 100 ms", 100000, FULL,
	  { { 2500, 'a', 'b' }, { 2500, 'a', '-' }, { 5000, 'b', 'a' }, { 5000, 'b', '-' },
	    { 7500, 'a', 'b' }, { 7500, 'a', '-' }, { 8000, 'b', '<' }, { 98000, 'b', '>' },
	    { 100000, 'b', 'a' }, { 100000, 'b', '-' } },
	  { 168, 212 } },
	{ "turns, the second one behind a hog", 1000, FULL,
	  { { 25, 'a', 'b' }, { 25, 'a', '-' }, { 25, 'b', '<' }, { 975, 'b', '>' },
	    { 1000, 'b', 'a' }, { 1000, 'b', '-' } },
	  { 51, 51 } },
	{ "a hog, and two that pass on what it makes", 1000, FULL,
	  { { 500, 'a', 'b' }, { 700, 'b', 'c' }, { 700, 'b', '-' }, { 900, 'c', '-' } },
	  { 0, 0, 0 } },
	{ "turns for 4 of 20 ms, then what a hog says", 20000, FULL,
	  { { 0, 'a', '+' }, { 1000, 'a', 'b' }, { 1000, 'a', '-' }, { 2000, 'b', 'a' },
	    { 2000, 'b', '-' }, { 3000, 'a', 'b' }, { 3000, 'a', '-' }, { 4000, 'b', 'a' },
	    { 4000, 'b', '-' }, { 4000, 'a', '-' }, { 4000, 'c', '+' }, { 8000, 'c', 'b' },
	    { 9000, 'b', '-' }, { 12000, 'c', 'b' }, { 13000, 'b', '-' }, { 16000, 'c', 'b' },
	    { 17000, 'b', '-' } },
	  { 389, 375, 0 } },
	{ "turns, and a bystander's softirq between", 1000, FULL,
	  { { 250, 'a', 'b' }, { 250, 'a', '-' }, { 500, 'b', '-' }, { 500, 'c', '+' },
	    { 500, 'c', 'b' }, { 500, 'c', '-' }, { 750, 'b', 'a' }, { 750, 'b', '-' } },
	  { 1024, 1024, 0 } },
	{ "turns, and two timers and a bystander's softirq between", 1000, FULL,
	  { { 100, 'a', '-' }, { 150, 'a', '+' }, { 250, 'a', '-' }, { 300, 'a', '+' },
	    { 350, 'a', '-' }, { 400, 'c', '+' }, { 400, 'c', 'a' }, { 400, 'c', '-' },
	    { 500, 'a', 'b' }, { 500, 'a', '-' }, { 1000, 'b', 'a' }, { 1000, 'b', '-' } },
	  { 870, 870, 0 } },
};

struct actor {
	u64 util, lag, since, slept, began;
	struct actor *woke;
	bool awake, waits;
	u32 need;
};

/* @util after @us: 2^-f is 1 - f * (11 - 3 * f) / 16, to 0.005 */
static u64 decay(u64 util, u64 us)
{
	u32 f = us & (HALF - 1);

	util >>= min(us >> HALF_SHIFT, 40);
	return util - (util * f >> HALF_SHIFT) * (11 * HALF - 3 * f) / (16 * HALF);
}

/* As PELT does: work at a low clock counts for less, and idling makes up for it. */
static u32 util_at(struct actor *a, u64 now, u32 capacity)
{
	u64 full = (u64)FULL << UTIL_SHIFT, passed = now - a->since, done;

	a->since = now;
	if (a->awake && !a->waits) {
		done = passed * capacity / FULL;
		a->lag += passed - done;
		a->util = full - decay(full - a->util, done);
	} else {
		a->util = decay(a->util, passed + a->lag);
		a->lag = 0;
	}
	return a->util >> UTIL_SHIFT;
}

static void act(struct actor *a, struct actor *w, char does, u64 now, u32 capacity)
{
	u32 util = util_at(a, now, capacity), own;

	switch (does) {
	case '-':
		a->awake = false;
		a->slept = now;
		return;
	case '<':
	case '>':
		a->waits = does == '<';
		a->began = now;
		return;
	case '+':
		w = a;
	}
	if (w->awake)
		return;
	own = util_at(w, now, capacity);
	if (w != a) {
		if (w->woke == a && 2 * (now - w->slept) >= now - a->began)
			w->need = max(w->need, pair_need(util, own, own, capacity));
		a->woke = w;
	}
	w->awake = true;
	w->began = now;
}

static void test_scenes(struct kunit *test)
{
	struct actor *actors = kunit_kzalloc(test, TASKS * sizeof(*actors), GFP_KERNEL);
	int i, k, step;

	KUNIT_ASSERT_NOT_NULL(test, actors);
	for (i = 0; i < ARRAY_SIZE(scenes); i++) {
		const struct scene *s = &scenes[i];
		u64 start;

		memset(actors, 0, TASKS * sizeof(*actors));
		actors[0].awake = true;
		for (start = 0; start < 1000000; start += s->period) {
			for (k = 0; k < TASKS; k++)
				actors[k].need = 0;
			for (step = 0; step < ARRAY_SIZE(s->steps) && s->steps[step].who; step++) {
				char does = s->steps[step].does;

				act(&actors[s->steps[step].who - 'a'],
				    does >= 'a' ? &actors[does - 'a'] : NULL, does,
				    start + s->steps[step].at, s->capacity);
			}
		}
		for (k = 0; k < TASKS; k++) {
			u32 is = actors[k].need, want = s->need[k];

			KUNIT_EXPECT_TRUE_MSG(test, is + 8 + want / 32 >= want &&
					      is <= want + 8 + want / 32,
					      "%s, %c: %u, not %u", s->name, 'a' + k, is, want);
		}
	}
}

static struct kunit_case pair_cases[] = {
	KUNIT_CASE(test_need),
	KUNIT_CASE(test_util),
	KUNIT_CASE(test_scenes),
	{ }
};

static struct kunit_suite pair_suite = {
	.name = "schedutil_pairs",
	.test_cases = pair_cases,
};
kunit_test_suite(pair_suite);

MODULE_DESCRIPTION("KUnit tests of tasks that take turns");
MODULE_LICENSE("GPL");
