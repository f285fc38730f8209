// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit test of the TEO governor's arithmetic: a row is a case, and a failure
 * names its row.
 */
#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/time64.h>

#include "teo_core.h"

#define US	NSEC_PER_USEC
#define MS	NSEC_PER_MSEC
#define SEC	((s64)NSEC_PER_SEC)
#define NO_LIMIT ((s64)INT_MAX * NSEC_PER_USEC)

/* Idle states as drivers have them, in us; the first polls. */
struct test_state {
	u16 latency, residency;
};

struct test_table {
	const char *name;
	int nr;
	struct test_state states[CPUIDLE_STATE_MAX];
};

static const struct test_table poll_only = { "poll", 1, { { 0, 0 } } };
static const struct test_table c1_only = { "c1", 2, { { 0, 0 }, { 1, 1 } } };
static const struct test_table spr = { "spr", 4, {
	{ 0, 0 }, { 1, 1 }, { 2, 4 }, { 290, 800 } } };
static const struct test_table skx = { "skx", 4, {
	{ 0, 0 }, { 2, 2 }, { 10, 20 }, { 133, 600 } } };
static const struct test_table hsx = { "hsx", 5, {
	{ 0, 0 }, { 2, 2 }, { 10, 20 }, { 33, 100 }, { 133, 400 } } };
static const struct test_table adl = { "adl", 6, {
	{ 0, 0 }, { 1, 1 }, { 2, 4 }, { 220, 600 }, { 280, 800 }, { 680, 2000 } } };
static const struct test_table skl = { "skl", 9, {
	{ 0, 0 }, { 2, 2 }, { 10, 20 }, { 70, 100 }, { 85, 200 }, { 124, 800 },
	{ 200, 800 }, { 480, 5000 }, { 890, 5000 } } };

static const struct test_table *const tables[] = {
	&poll_only, &c1_only, &spr, &skx, &hsx, &adl, &skl,
};

struct fixture {
	struct cpuidle_driver drv;
	struct cpuidle_device dev;
	struct teo_table table;
	struct teo_row row;
};

static struct fixture *new_fixture(struct kunit *test)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	return f;
}

/* Idle times of one length, ended by something else than the timer */
static void learn(struct fixture *f, int times, s64 idle)
{
	while (times--)
		teo_learn(&f->row, &f->table, idle, false);
}

/* Start anew, with nothing learned. */
static void set_up(struct fixture *f, const struct test_table *t, s64 tick)
{
	int i;

	memset(f, 0, sizeof(*f));
	f->drv.state_count = t->nr;
	for (i = 0; i < t->nr; i++) {
		f->drv.states[i].exit_latency_ns = t->states[i].latency * US;
		f->drv.states[i].target_residency_ns = t->states[i].residency * US;
	}
	teo_table_init(&f->table, &f->drv, tick);
}

/* As the governor decides, with what was learned */
static int decide(struct fixture *f, s64 limit, s64 sleep, s64 until_tick,
		  s64 tick, bool *stop)
{
	*stop = false;
	return teo_decide(&f->drv, &f->dev, limit, &f->row, &f->table, sleep,
			  min(sleep, until_tick), tick, stop);
}

/* A cheap source of numbers that are the same in every run. */
static u32 next_random(u32 *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static void test_gain(struct kunit *test)
{
	static const struct {
		s64 residency, idle;
		int gain;
	} cases[] = {
		{ 200, 0, -TEO_ONE },
		{ 200, 150, -TEO_ONE / 4 },
		{ 200, 200, 0 },
		{ 200, 500, TEO_ONE * 3 / 2 },
		{ 200, 600, 2 * TEO_ONE },
		{ 200, 601, 2 * TEO_ONE },
		{ 800000, 0, -TEO_ONE },
		{ 800000, 1600000, TEO_ONE },
		{ 800000, KTIME_MAX, 2 * TEO_ONE },
		{ NSEC_PER_SEC, 0, -TEO_ONE },
		{ NSEC_PER_SEC, KTIME_MAX, 2 * TEO_ONE },
		{ 1, KTIME_MAX, 2 * TEO_ONE },
		{ 0, 0, -TEO_ONE },
		{ 0, 1, 0 },
		{ 0, KTIME_MAX, 2 * TEO_ONE },
	};
	struct teo_column col;
	int i, gain;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		teo_column_init(&col, cases[i].residency);
		gain = teo_gain(&col, cases[i].idle);
		/* For a second the reciprocal is 0.3 % off. */
		KUNIT_EXPECT_LE_MSG(test, abs(gain - cases[i].gain), TEO_ONE / 64,
				    "T %lld, idle %lld: %d, must be %d",
				    cases[i].residency, cases[i].idle, gain,
				    cases[i].gain);
	}
}

/* The same idle time over and over: every score goes to its gain, or half of 1, and stays. */
static void test_learn(struct kunit *test)
{
	static const s64 idles[] = { 0, 3 * US, 15 * US, 500 * US, 900 * US, 4 * MS, KTIME_MAX };
	struct fixture *f = new_fixture(test);
	int i, col, gain;

	for (i = 0; i < ARRAY_SIZE(idles); i++) {
		set_up(f, &hsx, 4 * MS);
		learn(f, 1000, idles[i]);
		for (col = 1; col <= f->table.nr_states; col++) {
			gain = min(teo_gain(&f->table.column[col], idles[i]), TEO_ONE / 2);
			KUNIT_EXPECT_LE_MSG(test, abs(f->row.score[col] - gain),
					    1 << TEO_MEMORY, "idle %lld, column %d",
					    idles[i], col);
		}
	}
}

/* However long idle times were: eleven of half of what C6 needs, and it is not entered. */
static void test_learn_short(struct kunit *test)
{
	struct fixture *f = new_fixture(test);

	set_up(f, &spr, 4 * MS);
	learn(f, 300, KTIME_MAX);
	learn(f, 10, 726 * US);
	KUNIT_EXPECT_GT(test, f->row.score[3], 0);
	teo_learn(&f->row, &f->table, 726 * US, false);
	KUNIT_EXPECT_LE(test, f->row.score[3], 0);
}

/* The first event counts for half, and later ones for a 16th. */
static void test_learn_weights(struct kunit *test)
{
	struct fixture *f = new_fixture(test);
	int before;

	set_up(f, &spr, 4 * MS);
	teo_learn(&f->row, &f->table, 0, false);
	KUNIT_EXPECT_EQ(test, f->row.score[3], -TEO_ONE / 2);

	learn(f, 300, 0);
	before = f->row.score[3];
	teo_learn(&f->row, &f->table, KTIME_MAX, false);
	KUNIT_EXPECT_LE(test, abs(f->row.score[3] - before - 3 * TEO_ONE / 16), 1);
}

/* A timer that comes early says nothing against a state. */
static void test_learn_timer(struct kunit *test)
{
	struct fixture *f = new_fixture(test);
	struct teo_row before;
	int n, col;

	set_up(f, &spr, 4 * MS);
	learn(f, 100, 1400 * US);
	before = f->row;
	teo_learn(&f->row, &f->table, 3 * US, true);
	for (col = 1; col <= f->table.nr_states; col++)
		KUNIT_EXPECT_GE_MSG(test, f->row.score[col], before.score[col],
				    "column %d", col);
	KUNIT_EXPECT_EQ(test, f->row.score[3], before.score[3]);

	/* A late one speaks for it, and many do so up to the limit. */
	teo_learn(&f->row, &f->table, 3 * MS, true);
	KUNIT_EXPECT_LT(test, before.score[3], f->row.score[3]);
	for (n = 0; n < 100; n++)
		teo_learn(&f->row, &f->table, 15 * MS, true);
	KUNIT_EXPECT_EQ(test, f->row.score[3], TEO_ONE / 2);
}

struct choose_case {
	const char *name;
	unsigned int worth;	/* mask of states with a score of 1, of others 0 */
	unsigned int disabled;	/* mask */
	s64 limit, sleep;
	int state;
	s64 tick;		/* 0: stopped */
};

/* POLL, C1, C1E, C6 of Sapphire Rapids; C6 needs 800 us, and 290 if a timer ends it. */
static const struct choose_case choose_cases[] = {
	{ "all worth it", 0xf, 0, NO_LIMIT, KTIME_MAX, 3 },
	{ "timer just far enough for C6", 0xf, 0, NO_LIMIT, 1090 * US, 3 },
	{ "timer too near for C6", 0xf, 0, NO_LIMIT, 1090 * US - 1, 2 },
	{ "tick just far enough for C6", 0xf, 0, NO_LIMIT, KTIME_MAX, 3, 800 * US },
	{ "tick too near for C6", 0xf, 0, NO_LIMIT, KTIME_MAX, 2, 800 * US - 1 },
	{ "timer at once", 0xf, 0, NO_LIMIT, 0, 0 },
	{ "C6 not worth it", 0x7, 0, NO_LIMIT, KTIME_MAX, 2 },
	{ "nothing worth it", 0, 0, NO_LIMIT, KTIME_MAX, 0 },
	{ "C6 disabled", 0xf, 0x8, NO_LIMIT, KTIME_MAX, 2 },
	{ "state 0 disabled", 0, 0x1, NO_LIMIT, KTIME_MAX, 1 },
	{ "0 and 1 disabled", 0, 0x3, NO_LIMIT, KTIME_MAX, 2 },
	{ "gap", 0x3, 0x4, NO_LIMIT, KTIME_MAX, 1 },
	{ "limit 0 leaves POLL", 0xf, 0, 0, KTIME_MAX, 0 },
	{ "limit just below C1", 0xf, 0, US - 1, KTIME_MAX, 0 },
	{ "limit of C1", 0xf, 0, US, KTIME_MAX, 1 },
	{ "limit 0, state 0 disabled", 0xf, 0x1, 0, KTIME_MAX, 1 },
	{ "all disabled", 0xf, 0xf, NO_LIMIT, KTIME_MAX, 0 },
};

static void test_choose(struct kunit *test)
{
	struct fixture *f = new_fixture(test);
	int i, k;

	for (i = 0; i < ARRAY_SIZE(choose_cases); i++) {
		const struct choose_case *c = &choose_cases[i];

		set_up(f, &spr, 4 * MS);
		for (k = 0; k < spr.nr; k++) {
			f->dev.states_usage[k].disable = !!(c->disabled & BIT(k));
			f->row.score[k] = !!(c->worth & BIT(k));
		}
		KUNIT_EXPECT_EQ_MSG(test, teo_choose(&f->drv, &f->dev, c->limit,
						     &f->row, spr.nr - 1, c->sleep,
						     c->tick ?: c->sleep),
				    c->state, "%s", c->name);
	}
	/* Without a situation the timer alone decides; never deeper than the top. */
	set_up(f, &spr, 4 * MS);
	for (i = 0; i < spr.nr; i++)
		KUNIT_EXPECT_EQ(test, teo_choose(&f->drv, &f->dev, NO_LIMIT,
						 NULL, i, KTIME_MAX, KTIME_MAX), i);
}

static void test_tick(struct kunit *test)
{
	static const struct {
		const char *name;
		s64 sleep;
		int score;
		bool stop;
	} cases[] = {
		{ "nothing to come", KTIME_MAX, 1, true },
		{ "nothing known", KTIME_MAX, 0, false },
		{ "idle times are hardly long enough", KTIME_MAX, -1, false },
		{ "a timer before the tick", 4 * MS - 1, TEO_ONE, false },
		{ "a timer with it", 4 * MS, TEO_ONE, true },
	};
	struct fixture *f = new_fixture(test);
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		set_up(f, &spr, 4 * MS);
		f->row.score[spr.nr] = cases[i].score;
		KUNIT_EXPECT_EQ_MSG(test, teo_wants_tick_stopped(&f->row, &f->table,
								 cases[i].sleep, 4 * MS),
				    cases[i].stop, "%s", cases[i].name);
	}
	KUNIT_EXPECT_TRUE(test, teo_wants_tick_stopped(NULL, &f->table, KTIME_MAX, 4 * MS));
	KUNIT_EXPECT_FALSE(test, teo_wants_tick_stopped(NULL, &f->table, 4 * MS - 1, 4 * MS));
}

/* The result of a history: a share of idle times is short, the others are long. */
struct history_case {
	const char *name;
	const struct test_table *states;
	s64 tick, limit;
	int percent_short;
	s64 brief, longer, longest;	/* long ones are spread evenly */
	int state;
	bool stop;
};

static const struct history_case history_cases[] = {
	{ "skl, limit of 20 us, short idle times: the tick stays",
	  &skl, 4 * MS, 20 * US, 0, 0, 50 * US, 60 * US, 2, false },
	{ "adl, HZ 1000: so it does where the deepest state takes two ticks",
	  &adl, MS, NO_LIMIT, 0, 0, 26 * US, 30 * US, 2, false },
	{ "adl, HZ 1000: not where no idle time is worth the deepest state",
	  &adl, MS, NO_LIMIT, 0, 0, 1400 * US, 1600 * US, 4, true },
	{ "adl, HZ 1000: but where one of ten is",
	  &adl, MS, NO_LIMIT, 10, 9 * MS, 1400 * US, 1600 * US, 4, false },
	{ "skx: 40 % short ones do not make it poll",
	  &skx, 4 * MS, NO_LIMIT, 40, US / 2, 60 * US, 150 * US, 2, false },
	{ "spr: neither do 30 % beside 3 ms",
	  &spr, 4 * MS, NO_LIMIT, 30, 100, 3 * MS, 3 * MS, 3, true },
	{ "hsx: idle times of 0.7 ms do not stop the tick",
	  &hsx, 4 * MS, NO_LIMIT, 0, 0, 100 * US, 1300 * US, 4, false },
	{ "hsx, HZ 1000: but they do there",
	  &hsx, MS, NO_LIMIT, 0, 0, 100 * US, 1300 * US, 4, true },
	{ "skx: evenly up to 2.4 ms is C6, not C1E",
	  &skx, 10 * MS, NO_LIMIT, 0, 0, 0, 2400 * US, 3, false },
	{ "skx: evenly up to 1.3 ms breaks even, and tasks wait for C6",
	  &skx, 10 * MS, NO_LIMIT, 0, 0, 0, 1300 * US, 2, false },
	{ "spr: one long one of ten does not make C6 right",
	  &spr, 4 * MS, NO_LIMIT, 90, 20 * US, 100 * MS, 100 * MS, 2, false },
	{ "spr: idle times of 15 s are not too long to count",
	  &spr, 4 * MS, NO_LIMIT, 0, 0, 15000LL * MS, 15000LL * MS, 3, true },
};

static void live_through(struct fixture *f, const struct history_case *c)
{
	u32 seed = 1;
	int n, owed = 0;

	for (n = 0; n < 2000; n++) {
		u64 part = next_random(&seed) & 0xffff;
		s64 idle = c->longer + (((c->longest - c->longer) * part) >> 16);

		owed += c->percent_short;
		if (owed >= 100) {
			owed -= 100;
			idle = c->brief;
		}
		teo_learn(&f->row, &f->table, idle, false);
	}
}

static void test_history(struct kunit *test)
{
	struct fixture *f = new_fixture(test);
	int i, state;
	bool stop;

	for (i = 0; i < ARRAY_SIZE(history_cases); i++) {
		const struct history_case *c = &history_cases[i];

		set_up(f, c->states, c->tick);
		live_through(f, c);
		state = decide(f, c->limit, SEC, c->tick, c->tick, &stop);
		KUNIT_EXPECT_EQ_MSG(test, state, c->state, "%s", c->name);
		KUNIT_EXPECT_EQ_MSG(test, stop, c->stop, "%s", c->name);
	}
}

/* Random idle times of all lengths; timers end some of them. */
static void learn_at_random(struct fixture *f, u32 *seed)
{
	int events = next_random(seed) % 60;

	while (events--) {
		int bits = next_random(seed) % 27;
		s64 idle = next_random(seed) & ((1 << bits) - 1);

		teo_learn(&f->row, &f->table, idle, next_random(seed) % 4 == 0);
	}
}

/*
 * A longer sleep length or a higher latency limit never leads to a shallower state,
 * unless the tick is retained now, whatever happened before.
 */
static void test_monotone(struct kunit *test)
{
	struct fixture *f = new_fixture(test);
	u32 seed = 7;
	int round, i;

	for (round = 0; round < 2000; round++) {
		const struct test_table *t = tables[round % ARRAY_SIZE(tables)];
		s64 tick = round % 2 ? MS : 4 * MS, until_tick;
		s64 limit, sleep;
		bool stop, stopped;
		int state, last;

		set_up(f, t, tick);
		learn_at_random(f, &seed);
		until_tick = next_random(&seed) % (u32)tick;

		sleep = next_random(&seed) % (10 * MS);
		stopped = false;
		for (i = 0, last = 0; i < t->nr; i++, last = state, stopped = stop) {
			limit = t->states[i].latency * US;
			state = decide(f, limit, sleep, until_tick, tick, &stop);
			KUNIT_EXPECT_TRUE_MSG(test, state >= last || stopped > stop,
					      "%s, round %d, limit %lld", t->name,
					      round, limit);
		}
		stopped = false;
		for (sleep = 500, last = 0; sleep < 40 * MS;
		     sleep += sleep / 3, last = state, stopped = stop) {
			state = decide(f, NO_LIMIT, sleep, until_tick, tick, &stop);
			KUNIT_EXPECT_TRUE_MSG(test, state >= last || stopped > stop,
					      "%s, round %d, sleep %lld", t->name,
					      round, sleep);
		}
	}
}

/* Without the timer, the choice is one that the timer could lead to. */
static void test_surely_shallow(struct kunit *test)
{
	static const struct {
		const struct test_table *states;
		s64 idle;
		int deep;
		bool sure;
	} cases[] = {
		{ &skx, 4 * US, 2, true },
		{ &skx, 20 * US, 2, true },
		{ &skx, 23 * US, 2, false },
		{ &spr, 700 * US, 3, true },
		{ &spr, 750 * US, 3, false },
		{ &c1_only, 450 * US, 2, true },
		{ &c1_only, 550 * US, 2, false },
		{ &poll_only, 450 * US, 1, true },
	};
	struct fixture *f = new_fixture(test);
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		set_up(f, cases[i].states, 4 * MS);
		KUNIT_EXPECT_FALSE(test, teo_surely_shallow(&f->row, cases[i].deep));
		learn(f, 500, cases[i].idle);
		KUNIT_EXPECT_EQ_MSG(test, teo_deep_column(&f->drv), cases[i].deep,
				    "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, teo_surely_shallow(&f->row, cases[i].deep),
				    cases[i].sure, "row %d", i);
	}
}

static bool deeper_fits(struct fixture *f, s64 limit, int state, s64 sleep)
{
	return teo_deeper_fits(&f->drv, &f->dev, limit, &f->table, state, sleep);
}

/* For which states a deeper one could become worth it before the timer */
static void test_deeper_fits(struct kunit *test)
{
	struct fixture *f = new_fixture(test);
	s64 last;

	set_up(f, &spr, 4 * MS);
	last = f->table.column[3].needed;
	KUNIT_EXPECT_TRUE(test, deeper_fits(f, NO_LIMIT, 2, last));
	KUNIT_EXPECT_FALSE(test, deeper_fits(f, NO_LIMIT, 2, last - 1));
	KUNIT_EXPECT_FALSE(test, deeper_fits(f, NO_LIMIT, 3, KTIME_MAX));
	KUNIT_EXPECT_FALSE(test, deeper_fits(f, 2 * US, 2, KTIME_MAX));
	f->dev.states_usage[3].disable = 1;
	KUNIT_EXPECT_FALSE(test, deeper_fits(f, NO_LIMIT, 2, KTIME_MAX));
	set_up(f, &c1_only, 4 * MS);
	KUNIT_EXPECT_FALSE(test, deeper_fits(f, NO_LIMIT, 1, KTIME_MAX));
}

/* The last of the idle times: so many of @idle, then the other one if there is one */
struct rest_case {
	const char *name;
	const struct test_table *states;
	s64 tick, idle, other;
	int events, state;
	bool stop;
};

/*
 * How a CPU comes to rest for a second that had work at regular times. C8 of Alder Lake
 * needs less than 2 ms, C10 3.5 ms; C9 of Skylake needs 5 ms, more than a tick period.
 * The first idle time is longer than expected, as nothing is.
 */
static const struct rest_case rest_cases[] = {
	{ "C8, after less than a second", &adl, 4 * MS, 2 * MS, 0, 501, 4, false },
	{ "C8, after a second", &adl, 4 * MS, 2 * MS, 0, 502, 4, true },
	{ "C8, and 8 ms for C10 do not make up for a second", &adl, 4 * MS, 2 * MS, 8 * MS, 600, 4,
	  true },
	{ "C8, and one for C10", &adl, 4 * MS, 2 * MS, 400 * MS, 600, 4, false },
	{ "C1E, after a second", &adl, MS, 500 * US, 0, 2100, 2, true },
	{ "C1E, and one hardly for C8", &adl, MS, 500 * US, 2 * MS, 1999, 2, true },
	{ "C1E, and one for C8", &adl, MS, 500 * US, 3 * MS, 1999, 2, false },
	{ "C10 is worth it", &adl, 4 * MS, 5 * MS, 0, 300, 5, true },
	{ "C9 outlasts the tick: the timer decides", &skl, 4 * MS, 6500 * US, 0, 150, 8, true },
	{ "C9, after a second", &skl, 4 * MS, 6500 * US, 0, 156, 7, true },
	{ "C9, and one for C10", &skl, 4 * MS, 6500 * US, 1200 * MS, 300, 8, true },
	{ "C9 does not outlast the tick", &skl, 10 * MS, 6500 * US, 0, 100, 7, false },
};

static void test_rest(struct kunit *test)
{
	struct fixture *f = new_fixture(test);
	int i, state;
	bool stop;

	for (i = 0; i < ARRAY_SIZE(rest_cases); i++) {
		const struct rest_case *c = &rest_cases[i];

		set_up(f, c->states, c->tick);
		learn(f, c->events, c->idle);
		/* What a timer ends says nothing about long ones. */
		teo_learn(&f->row, &f->table, c->idle, true);
		if (c->other) {
			teo_learn(&f->row, &f->table, c->other, false);
			teo_learn(&f->row, &f->table, c->idle, false);
		}
		state = decide(f, NO_LIMIT, SEC, c->tick, c->tick, &stop);
		KUNIT_EXPECT_EQ_MSG(test, state, c->state, "%s", c->name);
		KUNIT_EXPECT_EQ_MSG(test, stop, c->stop, "%s", c->name);
	}
}

/* The sum of idle times does not wrap, and is never as long as a timer that is not there. */
static void test_sum(struct kunit *test)
{
	struct fixture *f = new_fixture(test);
	bool stop;

	set_up(f, &adl, 4 * MS);
	learn(f, 50, 2 * MS);
	f->row.in_vain = U32_MAX - 1;
	teo_learn(&f->row, &f->table, 2 * MS, false);
	decide(f, NO_LIMIT, 4000LL * SEC, 4 * MS, 4 * MS, &stop);
	KUNIT_EXPECT_TRUE(test, stop);

	/* However far the timer is, two seconds are enough. */
	f->row.in_vain = 2 * SEC >> TEO_SUM_SHIFT;
	decide(f, NO_LIMIT, KTIME_MAX, 4 * MS, 4 * MS, &stop);
	KUNIT_EXPECT_TRUE(test, stop);
	f->row.in_vain--;
	decide(f, NO_LIMIT, KTIME_MAX, 4 * MS, 4 * MS, &stop);
	KUNIT_EXPECT_FALSE(test, stop);

	/* Long ones are taken off, be they expected or not. */
	f->row.in_vain = 40 * 7812 - 100;
	learn(f, 40, 8 * MS);
	KUNIT_EXPECT_EQ(test, f->row.in_vain, 0);
}

/* Once the tick is stopped it stays so, where it would have been kept. */
static void test_stopped(struct kunit *test)
{
	struct fixture *f = new_fixture(test);
	bool stop;

	set_up(f, &adl, 4 * MS);
	learn(f, 50, 2 * MS);
	decide(f, NO_LIMIT, SEC, 4 * MS, 4 * MS, &stop);
	KUNIT_EXPECT_FALSE(test, stop);
	stop = true;
	teo_decide(&f->drv, &f->dev, NO_LIMIT, &f->row, &f->table, SEC, SEC, 4 * MS, &stop);
	KUNIT_EXPECT_TRUE(test, stop);
}

/* Ticks until the timer alone decides: three, and as long as the deepest state needs. */
static void test_nets(struct kunit *test)
{
	struct fixture *f = new_fixture(test);

	set_up(f, &spr, 4 * MS);
	KUNIT_EXPECT_EQ(test, teo_nets(&f->table, 4 * MS), 3);
	set_up(f, &skl, MS);
	KUNIT_EXPECT_EQ(test, teo_nets(&f->table, MS), 8);
	KUNIT_EXPECT_EQ(test, teo_nets(&f->table, 10 * US), 255);
}

/* All rows of one of the three ends */
static void test_size(struct kunit *test)
{
	KUNIT_EXPECT_LE(test, TEO_CLASSES * sizeof(struct teo_row), 256);
}

static void test_class(struct kunit *test)
{
	static const struct {
		s64 idle;
		int class;
	} cases[] = {
		{ 0, 0 }, { 8191, 0 }, { 8192, 1 }, { 32767, 1 }, { 32768, 2 },
		{ 131072, 3 }, { 524288, 4 }, { 2097152, 5 }, { 8388608, 6 },
		{ NSEC_PER_SEC, 6 }, { KTIME_MAX, 6 },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ_MSG(test, teo_class(cases[i].idle), cases[i].class,
				    "idle %lld", cases[i].idle);
}

static void test_timer_ended(struct kunit *test)
{
	static const struct {
		const char *name;
		s64 measured, sleep;
		bool timer;
	} cases[] = {
		{ "on time", 100 * US, 100 * US, true },
		{ "late by the exit latency", 390 * US, 100 * US, true },
		{ "6 us from the question to the entry, no latency",
		  94 * US, 100 * US, true },
		{ "the same on a slow CPU", 940 * US, MS, true },
		{ "something else", 87 * US, 100 * US, false },
		{ "something else, much sooner", US, 100 * US, false },
		{ "due already", 0, 0, true },
		{ "no timer", NSEC_PER_SEC, KTIME_MAX, false },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ_MSG(test, teo_timer_ended(cases[i].measured,
							  cases[i].sleep),
				    cases[i].timer, "%s", cases[i].name);
}

static void test_idle_time(struct kunit *test)
{
	static const struct {
		s64 measured, latency, sleep, idle;
	} cases[] = {
		{ 10000, 1000, KTIME_MAX, 9000 },
		{ 10000, 1000, 8000, 8000 },
		/* Woken before the state was reached. */
		{ 1000, 290000, KTIME_MAX, 500 },
		{ 0, 290000, KTIME_MAX, 0 },
		{ 1000, 0, 0, 0 },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ_MSG(test,
				    teo_idle_time(cases[i].measured,
						  cases[i].latency,
						  cases[i].sleep),
				    cases[i].idle, "row %d", i);
}

/* Whatever it starts from, it gets to what is seen, within the worst case. */
static void test_track_latency(struct kunit *test)
{
	static const struct {
		s64 start, seen, worst, end;
	} cases[] = {
		{ 290000, 145000, 290000, 145000 },
		{ 0, 145000, 290000, 145000 },
		{ 100, 1000000, 290000, 290000 },
		{ 290000, -5, 290000, 0 },
		{ 0, 0, 0, 0 },
	};
	int i, n;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		s64 latency = cases[i].start;

		for (n = 0; n < 300; n++)
			latency = teo_track_latency(latency, cases[i].seen,
						    cases[i].worst);
		KUNIT_EXPECT_LE_MSG(test, abs(latency - cases[i].end), 16,
				    "row %d: %lld", i, latency);
	}
}

/* Two of five observations are wrong: the others' value is found all the same. */
static void test_track_latency_outliers(struct kunit *test)
{
	static const s64 seen[] = { 10000, 0, 10000, 10000, 200 };
	const s64 worst = 16000;
	s64 latency = worst;
	int n;

	for (n = 0; n < 500; n++)
		latency = teo_track_latency(latency, seen[n % ARRAY_SIZE(seen)],
					    worst);
	KUNIT_EXPECT_GE(test, latency, 10000 - 2 * (worst >> 4) - 2);
	KUNIT_EXPECT_LE(test, latency, 10000);
}

static struct kunit_case teo_cases[] = {
	KUNIT_CASE(test_gain),
	KUNIT_CASE(test_learn),
	KUNIT_CASE(test_learn_short),
	KUNIT_CASE(test_learn_weights),
	KUNIT_CASE(test_learn_timer),
	KUNIT_CASE(test_choose),
	KUNIT_CASE(test_tick),
	KUNIT_CASE(test_history),
	KUNIT_CASE(test_monotone),
	KUNIT_CASE(test_surely_shallow),
	KUNIT_CASE(test_deeper_fits),
	KUNIT_CASE(test_rest),
	KUNIT_CASE(test_sum),
	KUNIT_CASE(test_stopped),
	KUNIT_CASE(test_nets),
	KUNIT_CASE(test_size),
	KUNIT_CASE(test_class),
	KUNIT_CASE(test_timer_ended),
	KUNIT_CASE(test_idle_time),
	KUNIT_CASE(test_track_latency),
	KUNIT_CASE(test_track_latency_outliers),
	{}
};

static struct kunit_suite teo_suite = {
	.name = "cpuidle-teo",
	.test_cases = teo_cases,
};

kunit_test_suite(teo_suite);

MODULE_DESCRIPTION("KUnit test of the TEO cpuidle governor");
MODULE_LICENSE("GPL");
