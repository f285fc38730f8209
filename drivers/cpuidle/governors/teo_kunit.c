// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit test of what the TEO governor learns and decides: a row is a case, and a
 * failure names its row.
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
/* As many as the kernel allows; the last needs longer than 64 ticks of 1 ms. */
static const struct test_table ten = { "ten", CPUIDLE_STATE_MAX, {
	{ 0, 0 }, { 1, 1 }, { 2, 4 }, { 10, 20 }, { 33, 100 }, { 70, 300 }, { 133, 600 },
	{ 480, 5000 }, { 890, 20000 }, { 2000, 65000 } } };
static const struct test_table skl = { "skl", 9, {
	{ 0, 0 }, { 2, 2 }, { 10, 20 }, { 70, 100 }, { 85, 200 }, { 124, 800 },
	{ 200, 800 }, { 480, 5000 }, { 890, 5000 } } };

static const struct test_table *const tables[] = {
	&poll_only, &c1_only, &spr, &skx, &hsx, &adl, &skl, &ten,
};

struct fixture {
	struct cpuidle_driver drv;
	struct cpuidle_device dev;
	struct teo_cpu cpu;
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
		teo_learn(&f->row, &f->cpu.table, idle, false);
}

/* Other states: those of the driver, and what depends on them */
static void set_states(struct fixture *f, const struct test_table *t, s64 tick)
{
	int i;

	f->drv.state_count = t->nr;
	for (i = 0; i < t->nr; i++) {
		f->drv.states[i].exit_latency_ns = t->states[i].latency * US;
		f->drv.states[i].target_residency_ns = t->states[i].residency * US;
		f->drv.states[i].flags = i ? 0 : CPUIDLE_FLAG_POLLING;
	}
	teo_init(&f->cpu, &f->drv, tick);
}

/* Start anew, with nothing learned. */
static void set_up(struct fixture *f, const struct test_table *t, s64 tick)
{
	memset(f, 0, sizeof(*f));
	set_states(f, t, tick);
}

static int choose(struct fixture *f, const struct teo_row *row, s64 limit, s64 sleep,
		  s64 most)
{
	return teo_choose(&f->drv, &f->dev, limit, row, sleep, most);
}

/* As the governor decides, with what was learned */
static int decide(struct fixture *f, s64 limit, s64 sleep, s64 until_tick,
		  s64 tick, bool *stop)
{
	*stop = false;
	return teo_decide(&f->drv, &f->dev, limit, &f->row, &f->cpu.table, sleep,
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
		s64 needed, idle;
		int gain;
	} cases[] = {
		{ 200 * US, 0, -200 * US },
		{ 200 * US, 150 * US, -50 * US },
		{ 200 * US, 200 * US, 0 },
		{ 200 * US, 500 * US, 300 * US },
		{ 200 * US, 600 * US, 400 * US },
		{ 200 * US, 601 * US, 400 * US },
		{ 200 * US, KTIME_MAX, 400 * US },
		/* A state that needs nothing, and one that needs more than an s32 has room for */
		{ 0, 0, -US },
		{ 0, US + 1, 1 },
		{ 400 * MS, KTIME_MAX, 800 * MS },
		{ 10 * SEC, 0, -500 * MS },
		{ 10 * SEC, KTIME_MAX, SEC },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ_MSG(test, teo_gain(teo_needed(cases[i].needed), cases[i].idle),
				    cases[i].gain, "T %lld, idle %lld", cases[i].needed,
				    cases[i].idle);
}

/* The same idle time over and over: every score goes to its gain, or half of T, and stays. */
static void test_learn(struct kunit *test)
{
	static const s64 idles[] = { 0, 3 * US, 15 * US, 500 * US, 900 * US, 4 * MS, KTIME_MAX };
	struct fixture *f = new_fixture(test);
	int i, col;

	for (i = 0; i < ARRAY_SIZE(idles); i++) {
		set_up(f, &ten, 4 * MS);
		learn(f, 1000, idles[i]);
		for (col = 1; col <= ten.nr; col++) {
			s32 needed = f->cpu.table.needed[col];

			KUNIT_EXPECT_LE_MSG(test, abs(f->row.score[col] -
						      min(teo_gain(needed, idles[i]), needed / 2)),
					    1 << TEO_MEMORY, "idle %lld, column %d",
					    idles[i], col);
		}
	}
}

/* However long idle times were: six of half of what C6 needs, and it is not entered. */
static void test_learn_short(struct kunit *test)
{
	struct fixture *f = new_fixture(test);

	set_up(f, &spr, 4 * MS);
	learn(f, 300, KTIME_MAX);
	learn(f, 5, 726 * US);
	KUNIT_EXPECT_GT(test, f->row.score[3], 0);
	learn(f, 1, 726 * US);
	KUNIT_EXPECT_LE(test, f->row.score[3], 0);
}

/* The first event counts for half, and later ones for an eighth. */
static void test_learn_weights(struct kunit *test)
{
	struct fixture *f = new_fixture(test);
	s32 needed, before;

	set_up(f, &spr, 4 * MS);
	needed = f->cpu.table.needed[3];
	learn(f, 1, 0);
	KUNIT_EXPECT_EQ(test, f->row.score[3], -needed / 2);

	learn(f, 300, 0);
	before = f->row.score[3];
	learn(f, 1, KTIME_MAX);
	KUNIT_EXPECT_LE(test, abs(f->row.score[3] - before - 3 * needed / 8), 1);
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
	teo_learn(&f->row, &f->cpu.table, 3 * US, true);
	for (col = 1; col <= spr.nr; col++)
		KUNIT_EXPECT_GE_MSG(test, f->row.score[col], before.score[col],
				    "column %d", col);
	KUNIT_EXPECT_EQ(test, f->row.score[3], before.score[3]);

	/* A late one speaks for it, and many do so up to the limit. */
	teo_learn(&f->row, &f->cpu.table, 3 * MS, true);
	KUNIT_EXPECT_LT(test, before.score[3], f->row.score[3]);
	for (n = 0; n < 100; n++)
		teo_learn(&f->row, &f->cpu.table, 15 * MS, true);
	KUNIT_EXPECT_EQ(test, f->row.score[3], f->cpu.table.needed[3] / 2);
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
		KUNIT_EXPECT_EQ_MSG(test, choose(f, &f->row, c->limit, c->sleep,
						 c->tick ?: c->sleep),
				    c->state, "%s", c->name);
	}
	/* Without a situation the timer alone decides. */
	set_up(f, &spr, 4 * MS);
	KUNIT_EXPECT_EQ(test, choose(f, NULL, NO_LIMIT, KTIME_MAX, KTIME_MAX), 3);
	KUNIT_EXPECT_EQ(test, choose(f, NULL, NO_LIMIT, 1089 * US, 1089 * US), 2);
}

static void test_tick(struct kunit *test)
{
	static const struct {
		const char *name;
		const struct test_table *states;
		s64 sleep;
		int score, state;	/* of the tick's column; C6 is worth it */
		bool stop;
	} cases[] = {
		{ "nothing to come", &spr, KTIME_MAX, 1, 3, true },
		{ "nothing known", &spr, KTIME_MAX, 0, 2, false },
		{ "idle times are hardly long enough", &spr, KTIME_MAX, -1, 2, false },
		{ "a timer before the tick", &spr, 4 * MS - 1, MS, 2, false },
		{ "a timer with it", &spr, 4 * MS, MS, 3, true },
		{ "no state but C1", &c1_only, KTIME_MAX, 1, 1, true },
		{ "no state but C1, and short idle times", &c1_only, KTIME_MAX, -1, 1, false },
		{ "polling ends by itself", &poll_only, KTIME_MAX, 1, 0, false },
	};
	struct fixture *f = new_fixture(test);
	int i, k, state;
	bool stop;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		set_up(f, cases[i].states, 4 * MS);
		for (k = 0; k < cases[i].states->nr; k++)
			f->row.score[k] = 1;
		f->row.score[k] = cases[i].score;
		/* The tick comes too soon for C6. */
		state = decide(f, NO_LIMIT, cases[i].sleep, 700 * US, 4 * MS, &stop);
		KUNIT_EXPECT_EQ_MSG(test, state, cases[i].state, "%s", cases[i].name);
		KUNIT_EXPECT_EQ_MSG(test, stop, cases[i].stop, "%s", cases[i].name);
	}
	/* Where the only state is one that halts, the tick is stopped for it. */
	set_up(f, &poll_only, 4 * MS);
	f->drv.states[0].flags = 0;
	f->row.score[1] = 1;
	KUNIT_EXPECT_EQ(test, decide(f, NO_LIMIT, SEC, MS, 4 * MS, &stop), 0);
	KUNIT_EXPECT_TRUE(test, stop);
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
	  &adl, MS, NO_LIMIT, 10, 25 * MS, 1400 * US, 1600 * US, 4, false },
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
		learn(f, 1, idle);
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

		teo_learn(&f->row, &f->cpu.table, idle, next_random(seed) % 4 == 0);
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

/* When the time to the next timer cannot matter */
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
		KUNIT_EXPECT_FALSE(test, teo_surely_shallow(&f->row, &f->cpu.table));
		learn(f, 500, cases[i].idle);
		KUNIT_EXPECT_EQ_MSG(test, f->cpu.table.deep, cases[i].deep, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, teo_surely_shallow(&f->row, &f->cpu.table),
				    cases[i].sure, "row %d", i);
	}
}

/* For which states the tick is kept, as a deeper one could be right */
static void test_deeper(struct kunit *test)
{
	static const struct {
		const char *name;
		s64 limit, sleep;
		bool disabled, stop;
	} cases[] = {
		{ "C6 may be right", NO_LIMIT, SEC, false, false },
		{ "C6 is disabled", NO_LIMIT, SEC, true, true },
		{ "C6 is above the limit", 10 * US, SEC, false, true },
		{ "the timer is too near for C6", NO_LIMIT, MS, false, true },
		{ "the timer is just far enough", NO_LIMIT, 1090 * US, false, false },
	};
	struct fixture *f = new_fixture(test);
	int i, state;
	bool stop;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		set_up(f, &spr, MS);
		f->dev.states_usage[3].disable = cases[i].disabled;
		learn(f, 100, 700 * US);
		f->row.in_vain = 0;
		state = decide(f, cases[i].limit, cases[i].sleep, MS, MS, &stop);
		KUNIT_EXPECT_EQ_MSG(test, state, 2, "%s", cases[i].name);
		KUNIT_EXPECT_EQ_MSG(test, stop, cases[i].stop, "%s", cases[i].name);
	}
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
	{ "C8, after less than a second", &adl, 4 * MS, 2 * MS, 0, 499, 4, false },
	{ "C8, after a second", &adl, 4 * MS, 2 * MS, 0, 500, 4, true },
	{ "C8, and 8 ms for C10 do not make up for a second", &adl, 4 * MS, 2 * MS, 8 * MS, 600, 4,
	  true },
	{ "C8, and 6 ms are hardly worth C10", &adl, 4 * MS, 2 * MS, 6 * MS, 499, 4, true },
	{ "C8, and one for C10", &adl, 4 * MS, 2 * MS, 400 * MS, 600, 4, false },
	{ "C1E, after a second", &adl, MS, 500 * US, 0, 2100, 2, true },
	{ "C1E, and one for C10", &adl, MS, 500 * US, 8 * MS, 1999, 2, false },
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
		teo_learn(&f->row, &f->cpu.table, c->idle, true);
		if (c->other) {
			teo_learn(&f->row, &f->cpu.table, c->other, false);
			teo_learn(&f->row, &f->cpu.table, c->idle, false);
		}
		state = decide(f, NO_LIMIT, SEC, c->tick, c->tick, &stop);
		KUNIT_EXPECT_EQ_MSG(test, state, c->state, "%s", c->name);
		KUNIT_EXPECT_EQ_MSG(test, stop, c->stop, "%s", c->name);
	}
}

/* However far the timer is, two seconds in vain are enough. */
static void test_in_vain(struct kunit *test)
{
	struct fixture *f = new_fixture(test);
	bool stop;

	set_up(f, &adl, 4 * MS);
	learn(f, 50, 2 * MS);
	KUNIT_EXPECT_EQ(test, f->row.in_vain, 100 * MS);
	f->row.in_vain = 2 * SEC;
	decide(f, NO_LIMIT, KTIME_MAX, 4 * MS, 4 * MS, &stop);
	KUNIT_EXPECT_TRUE(test, stop);
	f->row.in_vain--;
	decide(f, NO_LIMIT, KTIME_MAX, 4 * MS, 4 * MS, &stop);
	KUNIT_EXPECT_FALSE(test, stop);

	/* Long ones are taken off, be they expected or not. */
	f->row.in_vain = 40 * 8 * MS - 100;
	learn(f, 40, 8 * MS);
	KUNIT_EXPECT_EQ(test, f->row.in_vain, 0);
	f->row.in_vain = 2 * SEC;
	learn(f, 1, 8 * MS);
	KUNIT_EXPECT_EQ(test, f->row.in_vain, 2 * SEC - 8 * MS);

	/* Those not worth a stop are not in vain. */
	learn(f, 50, 900 * US);
	KUNIT_EXPECT_EQ(test, f->row.in_vain, 2 * SEC - 8 * MS);
}

/* Once the tick is stopped it stays so, whatever it would have led to. */
static void test_stopped(struct kunit *test)
{
	static const struct {
		const struct test_table *states;
		s64 idle;
		int state;
	} cases[] = {
		{ &adl, 2 * MS, 4 },		/* kept for C10 */
		{ &skl, 6500 * US, 7 },		/* too soon for C9: C10 */
		{ &poll_only, 2 * MS, 0 },
	};
	struct fixture *f = new_fixture(test);
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		bool stop = true;

		set_up(f, cases[i].states, 4 * MS);
		learn(f, 50, cases[i].idle);
		KUNIT_EXPECT_EQ_MSG(test, teo_decide(&f->drv, &f->dev, NO_LIMIT, &f->row,
						     &f->cpu.table, SEC, SEC, 4 * MS, &stop),
				    cases[i].state, "%s", cases[i].states->name);
		KUNIT_EXPECT_TRUE(test, stop);
	}
}

/* A stay in C6, from @now on. Return: the situation in which it begins. */
static struct teo_row *stay(struct fixture *f, u64 now, s64 sleep, s64 measured, bool net)
{
	struct teo_row *row = teo_begin(&f->cpu, 290 * US, now);

	f->cpu.sleep = sleep;
	teo_ended(&f->cpu, measured, net);
	return row;
}

/* A tick does not end an idle time: the first two situations learn from the whole. */
static void test_continues(struct kunit *test)
{
	struct fixture *f = new_fixture(test);
	struct teo_row *first, *second, *third;

	set_up(f, &spr, 4 * MS);
	first = stay(f, SEC, KTIME_MAX, 1000 * US, true);
	second = stay(f, SEC + MS, KTIME_MAX, 4 * MS, true);
	third = stay(f, SEC + 5 * MS, KTIME_MAX, 4 * MS, true);
	KUNIT_EXPECT_EQ(test, f->cpu.nets, 2);
	KUNIT_EXPECT_EQ(test, first->events, 0);
	stay(f, SEC + 9 * MS, KTIME_MAX, 145 * US + 500 * US, false);
	KUNIT_EXPECT_EQ(test, f->cpu.nets, 3);
	KUNIT_EXPECT_EQ(test, f->cpu.nr_pending, 2);
	teo_begin(&f->cpu, 290 * US, SEC + 10 * MS);
	KUNIT_EXPECT_EQ(test, f->cpu.nets, 0);

	KUNIT_EXPECT_TRUE(test, first == &f->cpu.row[0][TEO_OTHER]);
	KUNIT_EXPECT_TRUE(test, second == &f->cpu.row[2][TEO_NET]);
	KUNIT_EXPECT_TRUE(test, third == second);
	/* 9.5 ms and 8.5 ms: a half of the gain, but no more than a half of T */
	KUNIT_EXPECT_EQ(test, first->in_vain, 0);
	KUNIT_EXPECT_EQ(test, first->events, 1);
	KUNIT_EXPECT_EQ(test, second->events, 1);
	KUNIT_EXPECT_EQ(test, first->score[3], f->cpu.table.needed[3] / 2);
	/* The class of the next one is that of the whole. */
	KUNIT_EXPECT_TRUE(test, f->cpu.pending[0].row == &f->cpu.row[3][TEO_OTHER]);
}

/* Each situation learns from its own beginning, half of the exit latency less. */
static void test_own_beginning(struct kunit *test)
{
	struct fixture *f = new_fixture(test);
	struct teo_row *first, *second;
	s32 needed;

	set_up(f, &spr, 4 * MS);
	needed = f->cpu.table.needed[3];
	first = stay(f, SEC, KTIME_MAX, 400 * US, true);
	second = stay(f, SEC + 400 * US, KTIME_MAX, 145 * US + 600 * US, false);
	teo_begin(&f->cpu, 290 * US, SEC + 2 * MS);
	KUNIT_EXPECT_LE(test, abs(2 * first->score[3] - (1000 * (s32)US - needed)), 1);
	KUNIT_EXPECT_LE(test, abs(2 * second->score[3] - (600 * (s32)US - needed)), 1);
}

/* Ends of each kind, and which situation they lead to */
static void test_ends(struct kunit *test)
{
	struct fixture *f = new_fixture(test);
	struct teo_row *row;

	set_up(f, &spr, 4 * MS);
	/* A tick with the timer is the timer. */
	stay(f, SEC, 4 * MS, 4 * MS, true);
	row = stay(f, SEC + 5 * MS, KTIME_MAX, 100 * US, false);
	KUNIT_EXPECT_TRUE(test, row == &f->cpu.row[2][TEO_TIMER]);
	row = teo_begin(&f->cpu, 2 * US, SEC + 6 * MS);
	KUNIT_EXPECT_TRUE(test, row == &f->cpu.row[1][TEO_OTHER]);

	/* A task came before the state was entered: an idle time of 0. */
	f->cpu.sleep = SEC;
	KUNIT_EXPECT_EQ(test, row->events, 0);
	teo_begin(&f->cpu, 290 * US, SEC + 7 * MS);
	KUNIT_EXPECT_EQ(test, row->score[3], -f->cpu.table.needed[3] / 2);

	/* So it is if the tick was the end before. */
	f->cpu.sleep = SEC;
	teo_ended(&f->cpu, MS, true);
	teo_begin(&f->cpu, 290 * US, SEC + 8 * MS);
	KUNIT_EXPECT_EQ(test, f->cpu.nets, 1);
	row = teo_begin(&f->cpu, 290 * US, SEC + 9 * MS);
	KUNIT_EXPECT_EQ(test, f->cpu.nets, 0);
	KUNIT_EXPECT_TRUE(test, row == &f->cpu.row[2][TEO_OTHER]);
}

/* A day of ticks or ends of polling in a row */
static void test_many_nets(struct kunit *test)
{
	struct fixture *f = new_fixture(test);
	u64 now = SEC;
	int n;

	set_up(f, &poll_only, MS);
	for (n = 0; n < 1000; n++, now += 20 * US) {
		stay(f, now, KTIME_MAX, 20 * US, true);
		KUNIT_EXPECT_EQ(test, f->cpu.nets, min(n, TEO_NETS));
	}
}

/* s2idle asks no governor: a day in it is no idle time, or a single one if a tick was last. */
static void test_s2idle(struct kunit *test)
{
	struct fixture *f = new_fixture(test);
	struct teo_row *row;
	s32 before;

	set_up(f, &spr, 4 * MS);
	row = stay(f, SEC, KTIME_MAX, 300 * US, false);
	teo_begin(&f->cpu, 290 * US, 86400 * SEC);
	KUNIT_EXPECT_LT(test, row->score[3], 0);

	row = stay(f, 86401 * SEC, KTIME_MAX, 300 * US, true);
	before = row->score[3];
	stay(f, 2 * 86400 * SEC, KTIME_MAX, 300 * US, false);
	teo_begin(&f->cpu, 290 * US, 2 * 86400 * SEC + MS);
	KUNIT_EXPECT_LE(test, row->score[3] - before, f->cpu.table.needed[3] * 3 / 2);
	learn(f, 300, KTIME_MAX);
	KUNIT_EXPECT_EQ(test, f->row.in_vain, 0);
}

/* Other units, or another number of states: what was learned of the old ones is gone. */
static void test_other_states(struct kunit *test)
{
	struct fixture *f = new_fixture(test);
	struct teo_row *row;
	int col;

	set_up(f, &ten, 4 * MS);
	stay(f, SEC, KTIME_MAX, 900 * MS, true);
	stay(f, 2 * SEC, KTIME_MAX, 900 * MS, false);
	teo_begin(&f->cpu, 0, 3 * SEC);

	set_states(f, &spr, MS);
	KUNIT_EXPECT_EQ(test, f->cpu.table.nr_states, spr.nr);
	KUNIT_EXPECT_EQ(test, f->cpu.table.needed[3], 800 * US + 290 * US * 9 / 4);
	KUNIT_EXPECT_EQ(test, f->cpu.table.needed[4], MS / 4);
	row = teo_begin(&f->cpu, 290 * US, 4 * SEC);
	KUNIT_EXPECT_EQ(test, f->cpu.nr_pending, 1);
	for (col = 0; col < TEO_COLUMNS; col++)
		KUNIT_EXPECT_EQ_MSG(test, row->score[col], 0, "column %d", col);
}

/* A state that is disabled at run time is left at once, and entered again at once. */
static void test_disabled_later(struct kunit *test)
{
	struct fixture *f = new_fixture(test);
	bool stop;

	set_up(f, &spr, 4 * MS);
	learn(f, 100, 50 * MS);
	KUNIT_EXPECT_EQ(test, decide(f, NO_LIMIT, SEC, MS, 4 * MS, &stop), 3);
	f->dev.states_usage[3].disable = CPUIDLE_STATE_DISABLED_BY_USER;
	KUNIT_EXPECT_EQ(test, decide(f, NO_LIMIT, SEC, MS, 4 * MS, &stop), 2);
	KUNIT_EXPECT_TRUE(test, stop);
	learn(f, 100, 50 * MS);
	f->dev.states_usage[3].disable = 0;
	KUNIT_EXPECT_EQ(test, decide(f, NO_LIMIT, SEC, MS, 4 * MS, &stop), 3);
}

/* C1 of ACPI says that it needs nothing. */
static void test_no_latency(struct kunit *test)
{
	static const struct test_table acpi = { "acpi", 3, { { 0, 0 }, { 0, 0 }, { 133, 600 } } };
	struct fixture *f = new_fixture(test);
	bool stop;

	set_up(f, &acpi, 4 * MS);
	learn(f, 30, 2 * US);
	KUNIT_EXPECT_EQ(test, decide(f, 0, SEC, MS, 4 * MS, &stop), 1);
	learn(f, 30, 500);
	KUNIT_EXPECT_EQ(test, decide(f, 0, SEC, MS, 4 * MS, &stop), 0);
}

/* The last of ten states, which needs 65 ms: as its idle times are. */
static void test_far_beyond_ticks(struct kunit *test)
{
	struct fixture *f = new_fixture(test);
	bool stop;

	set_up(f, &ten, MS);
	learn(f, 100, 80 * MS);
	KUNIT_EXPECT_EQ(test, decide(f, NO_LIMIT, SEC, MS, MS, &stop), 9);
	KUNIT_EXPECT_TRUE(test, stop);
	/* Where they are shorter, the one before it, though the tick comes too soon for it. */
	learn(f, 100, 60 * MS);
	f->row.in_vain = 2 * SEC;
	KUNIT_EXPECT_EQ(test, decide(f, NO_LIMIT, SEC, MS, MS, &stop), 8);
	KUNIT_EXPECT_TRUE(test, stop);
	/* Until enough were in vain, the timer alone decides. */
	f->row.in_vain = 0;
	KUNIT_EXPECT_EQ(test, decide(f, NO_LIMIT, SEC, MS, MS, &stop), 9);
	KUNIT_EXPECT_EQ(test, decide(f, NO_LIMIT, 66 * MS, MS, MS, &stop), 8);
}

/* Per CPU; a situation takes one or two cache lines. */
static void test_size(struct kunit *test)
{
	KUNIT_EXPECT_LE(test, sizeof(struct teo_row), 64);
	KUNIT_EXPECT_LE(test, sizeof(struct teo_cpu), 832);
}

static void test_class(struct kunit *test)
{
	static const struct {
		s64 idle;
		int class;
	} cases[] = {
		{ 0, 0 }, { 32767, 0 }, { 32768, 1 }, { 524287, 1 }, { 524288, 2 },
		{ 8388607, 2 }, { 8388608, 3 }, { NSEC_PER_SEC, 3 }, { KTIME_MAX, 3 },
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
		{ 10000, 1000, KTIME_MAX, 9500 },
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
	KUNIT_CASE(test_deeper),
	KUNIT_CASE(test_rest),
	KUNIT_CASE(test_in_vain),
	KUNIT_CASE(test_stopped),
	KUNIT_CASE(test_continues),
	KUNIT_CASE(test_own_beginning),
	KUNIT_CASE(test_ends),
	KUNIT_CASE(test_many_nets),
	KUNIT_CASE(test_s2idle),
	KUNIT_CASE(test_other_states),
	KUNIT_CASE(test_disabled_later),
	KUNIT_CASE(test_no_latency),
	KUNIT_CASE(test_far_beyond_ticks),
	KUNIT_CASE(test_size),
	KUNIT_CASE(test_class),
	KUNIT_CASE(test_timer_ended),
	KUNIT_CASE(test_idle_time),
	{}
};

static struct kunit_suite teo_suite = {
	.name = "cpuidle-teo",
	.test_cases = teo_cases,
};

kunit_test_suite(teo_suite);

MODULE_DESCRIPTION("KUnit test of the TEO cpuidle governor");
MODULE_LICENSE("GPL");
