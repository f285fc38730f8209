// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the schedutil governor's hold-off: a row of a table is a case,
 * and a failure names its row.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/prandom.h>
#include <linux/sched.h>

#include "cpufreq_holdoff.h"

#define TICK	(4 * (u64)NSEC_PER_MSEC)
#define WHOLE	1024	/* SCHED_CAPACITY_SCALE */

static const u64 windows[] = {
	0, 1, 999, 20 * NSEC_PER_USEC, 500 * NSEC_PER_USEC, 5 * NSEC_PER_MSEC,
	NSEC_PER_SEC, U32_MAX * (u64)NSEC_PER_USEC,
};

static const u32 urgents[] = { 0, 1, 2, 3, 100, 128, 1000, WHOLE };

static void test_wait(struct kunit *test)
{
	struct holdoff_curve curve;
	u64 wait, last;
	int w, u;
	u32 error;

	for (w = 0; w < ARRAY_SIZE(windows); w++) {
		for (u = 0; u < ARRAY_SIZE(urgents); u++) {
			holdoff_curve_init(&curve, windows[w], urgents[u]);
			KUNIT_EXPECT_EQ_MSG(test, holdoff_wait(&curve, windows[w], 0),
					    windows[w], "urgent %u", urgents[u]);
			last = windows[w];
			for (error = 1; error <= WHOLE; error++) {
				wait = holdoff_wait(&curve, windows[w], error);
				if (wait > last)
					KUNIT_FAIL(test, "window %llu, urgent %u: rises at %u",
						   windows[w], urgents[u], error);
				if (urgents[u] && error >= urgents[u] && wait)
					KUNIT_FAIL(test, "window %llu, urgent %u: %u waits",
						   windows[w], urgents[u], error);
				last = wait;
			}
			if (!urgents[u])
				KUNIT_EXPECT_EQ_MSG(test, last, windows[w], "never urgent");
		}
	}
}

/* In the middle of the curve there is the middle of the window. */
static void test_wait_is_linear(struct kunit *test)
{
	struct holdoff_curve curve;

	holdoff_curve_init(&curve, 1000, 100);
	KUNIT_EXPECT_EQ(test, holdoff_wait(&curve, 1000, 1), 990);
	KUNIT_EXPECT_EQ(test, holdoff_wait(&curve, 1000, 50), 500);
	KUNIT_EXPECT_EQ(test, holdoff_wait(&curve, 1000, 99), 10);
	KUNIT_EXPECT_EQ(test, holdoff_wait(&curve, 1000, 100), 0);
}

static void test_may_act(struct kunit *test)
{
	static const struct {
		const char *name;
		u64 last, time;
		u32 set, util;
		bool act;
	} cases[] = {
		{ "small rise, at once", 5000, 5000, 500, 501, false },
		{ "small rise, a ns early", 5000, 5989, 500, 501, false },
		{ "small rise, in time", 5000, 5990, 500, 501, true },
		{ "half of urgent, a ns early", 5000, 5499, 500, 550, false },
		{ "half of urgent, in time", 5000, 5500, 500, 550, true },
		{ "urgent rise, at once", 5000, 5000, 500, 600, true },
		{ "a unit less than urgent", 5000, 5009, 500, 599, false },
		{ "large fall, a ns early", 5000, 5999, 900, 0, false },
		{ "large fall, in time", 5000, 6000, 900, 0, true },
		{ "no error, in time", 5000, 6000, 500, 500, true },
		{ "another CPU's clock is behind", 5000, 4001, 500, 501, false },
		{ "the same, urgent", 5000, 4900, 500, 900, true },
		{ "the clock was set back", 5000, 3999, 500, 501, true },
		{ "the clock was set back by hours", 1ULL << 62, 7, 500, 501, true },
		{ "before the wrap", U64_MAX - 10, 900, 500, 501, false },
		{ "after the wrap", U64_MAX - 10, 979, 500, 501, true },
		{ "wrap at the boundary", U64_MAX - 988, 0, 500, 501, false },
		{ "wrap at the boundary", U64_MAX - 989, 0, 500, 501, true },
		{ "wrap, another CPU behind", 5, U64_MAX - 5, 500, 501, false },
		{ "the same, urgent", 5, U64_MAX - 5, 500, 600, true },
	};
	struct holdoff h = { };
	int i;

	holdoff_set(&h, 1000, 100, 0);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		holdoff_start(&h);
		holdoff_sent(&h, cases[i].last, cases[i].set);
		KUNIT_EXPECT_EQ_MSG(test, holdoff_may_act(&h, cases[i].time, h.last,
							  cases[i].util),
				    cases[i].act, "%s", cases[i].name);
	}
}

static void test_range(struct kunit *test)
{
	struct holdoff h = { };

	holdoff_set(&h, 1000, 100, 0);
	holdoff_start(&h);
	KUNIT_EXPECT_FALSE_MSG(test, holdoff_same(&h, 0), "known before anything was sent");
	holdoff_sent(&h, 0, 500);
	KUNIT_EXPECT_TRUE(test, holdoff_same(&h, 500));
	KUNIT_EXPECT_FALSE(test, holdoff_same(&h, 499));
	KUNIT_EXPECT_FALSE(test, holdoff_same(&h, 501));
	holdoff_learn(&h, 520);
	holdoff_learn(&h, 480);
	holdoff_learn(&h, 510);
	KUNIT_EXPECT_EQ(test, h.lo, 480);
	KUNIT_EXPECT_EQ(test, h.hi, 520);
	KUNIT_EXPECT_EQ_MSG(test, h.set, 500, "learning is no change");
	holdoff_forget(&h);
	KUNIT_EXPECT_FALSE(test, holdoff_same(&h, 500));
	holdoff_learn(&h, 490);
	KUNIT_EXPECT_TRUE(test, holdoff_same(&h, 490));
	KUNIT_EXPECT_FALSE(test, holdoff_same(&h, 491));
}

/* What has to settle waits from the first request that differs, whatever comes next. */
static void test_settle(struct kunit *test)
{
	static const struct {
		const char *name;
		u64 time;
		u32 util;
		bool settle;
		enum holdoff_verdict verdict;
	} cases[] = {
		{ "first", 9000, 450, true, HOLDOFF_HELD },
		{ "a ns early", 9999, 450, true, HOLDOFF_HELD },
		{ "settled", 10000, 450, true, HOLDOFF_ACT },
		{ "another one, settled too", 10000, 430, true, HOLDOFF_ACT },
		{ "back", 10000, 500, true, HOLDOFF_SAME },
		{ "first again", 10000, 450, true, HOLDOFF_HELD },
		{ "has no need to", 10001, 450, false, HOLDOFF_ACT },
		{ "urgent", 10001, 600, true, HOLDOFF_ACT },
		{ "half of urgent, a ns early", 10499, 550, true, HOLDOFF_HELD },
		{ "half of urgent, settled", 10500, 550, true, HOLDOFF_ACT },
	};
	struct holdoff h = { };
	int i;

	holdoff_set(&h, 1000, 100, 0);
	holdoff_start(&h);
	holdoff_sent(&h, 5000, 500);
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ_MSG(test, holdoff_judge(&h, cases[i].time, cases[i].util,
							cases[i].settle),
				    cases[i].verdict, "%s", cases[i].name);
	holdoff_sent(&h, 10500, 550);
	KUNIT_EXPECT_EQ_MSG(test, holdoff_judge(&h, 20000, 540, true), HOLDOFF_HELD,
			    "a change begins anew");
}

/* Within other limits the same level is another utilisation's; it is no change. */
static void test_confirm(struct kunit *test)
{
	struct holdoff h = { };

	holdoff_set(&h, 1000, 100, 0);
	holdoff_start(&h);
	holdoff_sent(&h, 5000, 900);
	holdoff_forget(&h);
	holdoff_confirm(&h, 600);
	KUNIT_EXPECT_TRUE(test, holdoff_same(&h, 600));
	KUNIT_EXPECT_FALSE(test, holdoff_same(&h, 900));
	KUNIT_EXPECT_EQ_MSG(test, holdoff_judge(&h, 5001, 700, false), HOLDOFF_ACT,
			    "700 is a rise, and an urgent one");
	KUNIT_EXPECT_EQ_MSG(test, holdoff_judge(&h, 5989, 601, false), HOLDOFF_HELD,
			    "the window goes on");
}

static void test_held_request(struct kunit *test)
{
	struct holdoff h = { };

	holdoff_set(&h, 1000, 100, 0);
	holdoff_start(&h);
	holdoff_sent(&h, 0, 500);
	KUNIT_EXPECT_EQ(test, holdoff_judge(&h, 100, 540, false), HOLDOFF_HELD);
	KUNIT_EXPECT_TRUE(test, holdoff_hold(&h, 540));
	KUNIT_EXPECT_FALSE_MSG(test, holdoff_hold(&h, 530), "530 is not the highest");
	KUNIT_EXPECT_EQ(test, holdoff_claim(&h, 510, false), 540);
	KUNIT_EXPECT_EQ(test, holdoff_claim(&h, 560, false), 560);
	KUNIT_EXPECT_EQ_MSG(test, holdoff_claim(&h, 510, true), 510, "gone");
	KUNIT_EXPECT_EQ_MSG(test, holdoff_claim(&h, 510, false), 510, "gone for good");
	holdoff_hold(&h, 540);
	holdoff_sent(&h, 1000, 540);
	KUNIT_EXPECT_EQ_MSG(test, holdoff_claim(&h, 510, false), 510, "was applied");
}

static void test_cost_window(struct kunit *test)
{
	static const struct {
		const char *name;
		u32 cost, permille;
		u64 floor, window;
	} cases[] = {
		{ "MSR write", 250, 10, 0, 25 * NSEC_PER_USEC },
		{ "MSR write of a driver that wants 500 us", 250, 10, 500 * NSEC_PER_USEC,
		  500 * NSEC_PER_USEC },
		{ "mailbox", 50 * NSEC_PER_USEC, 10, 0, 5 * NSEC_PER_MSEC },
		{ "bus", 400 * NSEC_PER_USEC, 10, 0, HOLDOFF_WINDOW_MAX },
		{ "bus of a slow driver", 400 * NSEC_PER_USEC, 10, 20 * NSEC_PER_MSEC,
		  20 * NSEC_PER_MSEC },
		{ "all of the CPU's time", 250, 1000, 0, 250 },
		{ "least", 250, 1, 0, 250 * NSEC_PER_USEC },
		{ "largest cost", U32_MAX, 1, 0, HOLDOFF_WINDOW_MAX },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ_MSG(test, holdoff_cost_window(cases[i].cost, cases[i].permille,
							      cases[i].floor),
				    cases[i].window, "%s", cases[i].name);
}

static void test_cost(struct kunit *test)
{
	struct holdoff_cost cost = { };
	int i, measured = 0;

	for (i = 0; i < HOLDOFF_COST_SAMPLES; i++) {
		KUNIT_EXPECT_FALSE_MSG(test, holdoff_cost_moved(&cost), "after %d changes", i);
		KUNIT_EXPECT_TRUE(test, holdoff_cost_due(&cost));
		holdoff_cost_add(&cost, 800);
	}
	KUNIT_EXPECT_EQ(test, cost.mean, 800);
	KUNIT_EXPECT_TRUE(test, holdoff_cost_moved(&cost));
	cost.used = cost.mean;

	holdoff_cost_add(&cost, -1);
	KUNIT_EXPECT_EQ_MSG(test, cost.mean, 800, "the clock was set back");
	holdoff_cost_add(&cost, NSEC_PER_SEC);
	KUNIT_EXPECT_LE_MSG(test, cost.mean, 1600, "one sample was preempted");
	for (i = 0; i < 100; i++)
		holdoff_cost_add(&cost, 300);
	KUNIT_EXPECT_LE_MSG(test, abs((int)cost.mean - 300), 10, "it converges");
	for (i = 0; i < 100; i++)
		holdoff_cost_add(&cost, S64_MAX);
	KUNIT_EXPECT_LE_MSG(test, cost.mean, NSEC_PER_SEC, "no overflow");

	for (i = 0; i < 100 * HOLDOFF_COST_EVERY; i++)
		measured += holdoff_cost_due(&cost);
	KUNIT_EXPECT_EQ(test, measured, 100);
}

/*
 * Random streams of requests: a governor that does with the limiter what schedutil
 * does, and a driver with equally wide levels.
 */

static unsigned int streams = 1000000;
module_param(streams, uint, 0444);
MODULE_PARM_DESC(streams, "Number of random streams");

#define CALLS		16	/* the last ones with a constant request */
#define CONSTANT	4

struct stream {
	struct rnd_state	rnd;
	struct holdoff		h;
	u64			window;
	u32			urgent_up, urgent_down;
	u32			width;		/* of a level */
	u64			time;
	u64			wrong_since;	/* request and level differ since */
	bool			wrong;
	u32			util;
	u32			level, base_level;
	int			changes, base_changes;
	int			last_change;	/* of the constant part */
	const char		*broken;
};

static u32 below(struct stream *s, u32 limit)
{
	return ((u64)prandom_u32_state(&s->rnd) * limit) >> 32;
}

static void stream_start(struct stream *s)
{
	static const u32 some[] = { 0, 20, 500, 2000, 5000, 10000 };	/* us */

	s->window = some[below(s, ARRAY_SIZE(some))] * (u64)NSEC_PER_USEC;
	s->urgent_up = urgents[below(s, ARRAY_SIZE(urgents))];
	s->urgent_down = urgents[below(s, ARRAY_SIZE(urgents))];
	s->width = 1 + below(s, 128);
	s->time = below(s, 2) ? below(s, U32_MAX) : -(u64)below(s, 20 * NSEC_PER_MSEC);
	s->wrong = false;
	s->util = below(s, WHOLE + 1);
	s->level = s->base_level = s->util / s->width;
	s->changes = s->base_changes = 0;
	s->broken = NULL;
	holdoff_set(&s->h, s->window, s->urgent_up, s->urgent_down);
	holdoff_start(&s->h);
	holdoff_sent(&s->h, s->time, s->util);
}

/* A jump, a wobble, or nothing new */
static void stream_next(struct stream *s)
{
	u32 what = below(s, 8);

	s->time += 1 + below(s, TICK);
	if (what < 2)
		s->util = below(s, WHOLE + 1);
	else if (what < 5)
		s->util = clamp_t(int, s->util + (int)below(s, 65) - 32, 0, WHOLE);
}

static bool stream_urgent(struct stream *s, u32 util)
{
	u32 urgent = util > s->h.set ? s->urgent_up : s->urgent_down;

	return urgent && holdoff_error(&s->h, util) >= urgent;
}

static bool stream_call(struct stream *s, bool gone, bool settle)
{
	u32 util = holdoff_claim(&s->h, s->util, gone);
	bool urgent = stream_urgent(s, util), changed = false;

	switch (holdoff_judge(&s->h, s->time, util, settle)) {
	case HOLDOFF_SAME:
		if (util / s->width != s->level)
			s->broken = "a request that needs another level was taken for the same";
		break;
	case HOLDOFF_HELD:
		if (urgent || !s->window)
			s->broken = "an urgent request was held";
		holdoff_hold(&s->h, util);
		break;
	case HOLDOFF_ACT:
		changed = util / s->width != s->level;
		if (changed)
			holdoff_sent(&s->h, s->time, util);
		else
			holdoff_learn(&s->h, util);
		s->level = util / s->width;
		s->changes += changed;
		break;
	}

	/* The base without a limit */
	s->base_changes += s->util / s->width != s->base_level;
	s->base_level = s->util / s->width;

	if (util / s->width == s->level) {
		s->wrong = false;
	} else if (!s->wrong) {
		s->wrong = true;
		s->wrong_since = s->time;
	} else if (s->time - s->wrong_since > s->window + TICK) {
		s->broken = "the level was wrong for longer than the window and a tick";
	}
	return changed;
}

static void stream_run(struct stream *s)
{
	int i, late_changes = 0;

	stream_start(s);
	for (i = 0; i < CALLS - CONSTANT; i++) {
		stream_next(s);
		stream_call(s, !below(s, 8), below(s, 2));
	}
	for (i = 0; i < CONSTANT; i++) {
		s->time += TICK;
		late_changes += stream_call(s, true, below(s, 2));
	}

	if (late_changes > 1)
		s->broken = "a constant request made the level change twice";
	if (s->level != s->util / s->width)
		s->broken = "a constant request was not met in the end";
	if (s->changes > s->base_changes)
		s->broken = "more changes than the base makes without a limit";
}

static void test_random_streams(struct kunit *test)
{
	struct stream *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	u64 changes = 0, base_changes = 0;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, s);
	prandom_seed_state(&s->rnd, 20170607);
	for (i = 0; i < streams; i++) {
		stream_run(s);
		changes += s->changes;
		base_changes += s->base_changes;
		if (s->broken) {
			KUNIT_FAIL(test, "stream %u: %s (window %llu, urgent %u/%u, width %u)",
				   i, s->broken, s->window, s->urgent_up, s->urgent_down,
				   s->width);
			break;
		}
		if (!(i % 1024))
			cond_resched();
	}
	kunit_info(test, "%u streams: %llu changes, %llu without a limit", i, changes,
		   base_changes);
	KUNIT_EXPECT_LT(test, changes, base_changes);
}

static struct kunit_case holdoff_cases[] = {
	KUNIT_CASE(test_wait),
	KUNIT_CASE(test_wait_is_linear),
	KUNIT_CASE(test_may_act),
	KUNIT_CASE(test_range),
	KUNIT_CASE(test_settle),
	KUNIT_CASE(test_confirm),
	KUNIT_CASE(test_held_request),
	KUNIT_CASE(test_cost_window),
	KUNIT_CASE(test_cost),
	KUNIT_CASE_SLOW(test_random_streams),
	{}
};

static struct kunit_suite holdoff_suite = {
	.name = "schedutil_holdoff",
	.test_cases = holdoff_cases,
};
kunit_test_suite(holdoff_suite);

MODULE_DESCRIPTION("KUnit tests of the schedutil governor's hold-off");
MODULE_LICENSE("GPL");
