// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit test of the TEO governor's arithmetic: a row is a case, and a failure
 * names its row.
 */
#include <kunit/test.h>
#include <linux/time64.h>

#include "teo_core.h"

#define TICK	(4 * NSEC_PER_MSEC)
#define NO_LIMIT ((s64)INT_MAX * NSEC_PER_USEC)

/* POLL, C0.2, C1, C1E, C6 of a server, and the same with less. */
static const s64 five[] = { 0, 200, 1000, 4000, 800000 };
static const s64 two[] = { 0, 1000 };
static const s64 one[] = { 0 };
static const s64 beyond_tick[] = { 0, 2000, 400000, 7700000 };
static const s64 ten[] = { 0, 200, 2000, 20000, 100000, 400000, 500000, 900000,
			   1800000, 7700000 };

struct table_case {
	const char *name;
	const s64 *residency;
	int nr;
};

static void init_table(struct teo_table *table, const struct table_case *c)
{
	teo_table_init(table, c->residency, c->nr, TICK);
}

static void test_bin(struct kunit *test)
{
	static const struct {
		struct table_case table;
		s64 idle;
		int bin;
	} cases[] = {
		{ { "five, at once", five, ARRAY_SIZE(five) }, 0, 0 },
		{ { "five, before C0.2", five, ARRAY_SIZE(five) }, 199, 0 },
		{ { "five, C0.2", five, ARRAY_SIZE(five) }, 200, 1 },
		{ { "five, last ns of C1E", five, ARRAY_SIZE(five) }, 799999, 3 },
		{ { "five, C6", five, ARRAY_SIZE(five) }, 800000, 4 },
		{ { "five, a tick", five, ARRAY_SIZE(five) }, TICK, 5 },
		{ { "five, for ever", five, ARRAY_SIZE(five) }, KTIME_MAX, 5 },
		{ { "two, a tick", two, ARRAY_SIZE(two) }, TICK, 2 },
		{ { "one, less than a tick", one, ARRAY_SIZE(one) }, TICK - 1, 0 },
		{ { "deepest beyond the tick", beyond_tick, ARRAY_SIZE(beyond_tick) }, TICK, 2 },
		{ { "deepest beyond the tick", beyond_tick, ARRAY_SIZE(beyond_tick) }, 7700000, 3 },
		{ { "ten, for ever", ten, ARRAY_SIZE(ten) }, KTIME_MAX, 9 },
	};
	struct teo_table table;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		init_table(&table, &cases[i].table);
		KUNIT_EXPECT_EQ_MSG(test, teo_bin(&table, cases[i].idle),
				    cases[i].bin, "%s, idle %lld",
				    cases[i].table.name, cases[i].idle);
	}
}

/* Rows are indexed by class: out of range would be out of the array. */
static void test_class(struct kunit *test)
{
	static const struct table_case cases[] = {
		{ "one", one, ARRAY_SIZE(one) }, { "two", two, ARRAY_SIZE(two) },
		{ "five", five, ARRAY_SIZE(five) }, { "ten", ten, ARRAY_SIZE(ten) },
		{ "beyond", beyond_tick, ARRAY_SIZE(beyond_tick) },
	};
	struct teo_table table;
	int i, bin;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		init_table(&table, &cases[i]);
		KUNIT_EXPECT_LE(test, table.nr_bins, TEO_COLUMNS);
		for (bin = 0; bin < table.nr_bins; bin++) {
			KUNIT_EXPECT_LT_MSG(test, table.class[bin], TEO_CLASSES,
					    "%s, bin %d", cases[i].name, bin);
			if (bin)
				KUNIT_EXPECT_GE(test, table.class[bin],
						table.class[bin - 1]);
		}
	}
}

static void test_gain(struct kunit *test)
{
	static const struct {
		s64 residency, idle;
		int gain;
	} cases[] = {
		/* Two CPUs that converse: from 1.5 T on, and three times as steep. */
		{ 200, 0, -3 * TEO_ONE },
		{ 200, 150, -3 * TEO_ONE / 2 },
		{ 200, 300, 0 },
		{ 200, 390, TEO_ONE * 9 / 10 },
		{ 4000, 5900, -TEO_ONE / 20 },
		{ TEO_CONVERSE_NS - 1, KTIME_MAX, TEO_ONE },
		/* Shallow: three times as steep. */
		{ TEO_CONVERSE_NS, TEO_CONVERSE_NS, 0 },
		{ 20000, 26667, TEO_ONE },
		{ 20000, KTIME_MAX, TEO_ONE },
		{ TEO_SHALLOW_NS - 1, 0, -3 * TEO_ONE },
		{ TEO_SHALLOW_NS, 0, -TEO_ONE },
		{ TEO_SHALLOW_NS, TEO_SHALLOW_NS * 2, TEO_ONE },
		{ 800000, 0, -TEO_ONE },
		{ 800000, 800000, 0 },
		{ 800000, 1600000, TEO_ONE },
		{ 800000, KTIME_MAX, TEO_ONE },
		{ NSEC_PER_SEC, 0, -TEO_ONE },
		{ NSEC_PER_SEC, KTIME_MAX, TEO_ONE },
		{ 1, 0, -3 * TEO_ONE },
		/* A polling state's is never asked for, but must do no harm. */
		{ 0, 0, 0 },
		{ 0, KTIME_MAX, 0 },
	};
	struct teo_column col;
	int i, gain;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		teo_column_init(&col, cases[i].residency);
		gain = teo_gain(&col, cases[i].idle);
		/* For a second the reciprocal is 0.13 % off. */
		KUNIT_EXPECT_LE_MSG(test, abs(gain - cases[i].gain),
				    TEO_ONE / 500,
				    "T %lld, idle %lld: %d, must be %d",
				    cases[i].residency, cases[i].idle, gain,
				    cases[i].gain);
	}
}

/* The same idle time over and over: every score goes to its gain and stays. */
static void test_learn(struct kunit *test)
{
	static const s64 idles[] = { 0, 150, 3000, 500000, 900000, TICK, KTIME_MAX };
	const struct table_case c = { "five", five, ARRAY_SIZE(five) };
	struct teo_table table;
	struct teo_row row;
	int i, n, col, bin;

	init_table(&table, &c);
	bin = table.nr_bins - 1;

	for (i = 0; i < ARRAY_SIZE(idles); i++) {
		teo_row_init(&row);
		for (n = 0; n < 1000; n++)
			teo_learn(&row, &table, idles[i], bin, false);
		for (col = 1; col <= bin; col++) {
			int gain = teo_gain(&table.column[col], idles[i]);

			KUNIT_EXPECT_LE_MSG(test, abs(row.score[col] - gain),
					    1 << TEO_MEMORY, "idle %lld, column %d",
					    idles[i], col);
		}
	}
}

/* What could not be entered is left alone, and two events change the mind. */
static void test_learn_few(struct kunit *test)
{
	const struct table_case c = { "five", five, ARRAY_SIZE(five) };
	struct teo_table table;
	struct teo_row row;

	init_table(&table, &c);
	teo_row_init(&row);
	teo_learn(&row, &table, 0, 3, false);
	teo_learn(&row, &table, 0, 3, false);

	KUNIT_EXPECT_LT(test, row.score[3], TEO_ENTER);
	KUNIT_EXPECT_EQ(test, row.score[4], TEO_ONE);
	KUNIT_EXPECT_EQ(test, row.score[0], TEO_ONE);
}

/* One of @every idle times is the timer's: the share goes there, scores stay. */
static void test_learn_timer(struct kunit *test)
{
	static const int every[] = { 1, 2, 4, 10 };
	const struct table_case c = { "five", five, ARRAY_SIZE(five) };
	struct teo_table table;
	struct teo_row row;
	int i, n, sum;

	init_table(&table, &c);
	for (i = 0; i < ARRAY_SIZE(every); i++) {
		teo_row_init(&row);
		for (n = 0, sum = 0; n < 1000; n++) {
			teo_learn(&row, &table, 900000, 4, n % every[i] == 0);
			if (n >= 1000 - 10 * every[i])
				sum += row.timer;
		}
		/* Steps are rounded, which is worth up to 1 << TEO_MEMORY. */
		sum /= 10 * every[i];
		KUNIT_EXPECT_LE_MSG(test, abs(sum - TEO_ONE / every[i]),
				    1 << TEO_MEMORY, "one of %d", every[i]);
		if (every[i] == 1)
			KUNIT_EXPECT_EQ(test, row.score[4], TEO_ONE);
		else
			KUNIT_EXPECT_LT(test, row.score[4], TEO_ONE / 4);
	}
}

static void test_worth_it(struct kunit *test)
{
	static const struct {
		const char *name;
		int score, timer;
		bool worth;
	} cases[] = {
		{ "just", TEO_ENTER, 0, true },
		{ "just not", TEO_ENTER - 1, 0, false },
		{ "always the timer", -3 * TEO_ONE, TEO_ONE, true },
		{ "in vain every other time, else the timer", TEO_ENTER - TEO_ONE,
		  TEO_ONE / 2, true },
		{ "a little more often in vain", TEO_ENTER - TEO_ONE,
		  TEO_ONE / 2 - 1, false },
		{ "too far off", -3 * TEO_ONE, TEO_ONE * 3 / 4, false },
	};
	struct teo_row row;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		teo_row_init(&row);
		row.score[2] = cases[i].score;
		row.timer = cases[i].timer;
		KUNIT_EXPECT_EQ_MSG(test, teo_worth_it(&row, 2, TEO_ENTER),
				    cases[i].worth, "%s", cases[i].name);
	}
}

/* The scores of the situation before, which a single event outweighs half. */
static void test_inherit(struct kunit *test)
{
	const struct table_case c = { "five", five, ARRAY_SIZE(five) };
	struct teo_row known, fresh;
	struct teo_table table;
	int n, before;

	init_table(&table, &c);
	teo_row_init(&known);
	teo_row_init(&fresh);
	teo_row_inherit(&fresh, &known);
	KUNIT_EXPECT_EQ(test, fresh.events, 0);

	for (n = 0; n < 100; n++)
		teo_learn(&known, &table, 3000, 4, false);
	teo_row_inherit(&fresh, &known);
	KUNIT_EXPECT_EQ(test, fresh.events, 1);
	KUNIT_EXPECT_EQ(test, fresh.timer, known.timer);
	KUNIT_EXPECT_MEMEQ(test, fresh.score, known.score, sizeof(fresh.score));

	before = fresh.score[4];
	teo_learn(&fresh, &table, KTIME_MAX, 4, false);
	KUNIT_EXPECT_LE(test, abs(fresh.score[4] - (before + TEO_ONE) / 2), 1);
}

struct choose_case {
	const char *name;
	int nr;			/* states, the first POLL */
	unsigned int worth;	/* mask of states with a score above TEO_ENTER */
	unsigned int disabled;	/* mask */
	s64 latency_req;
	int top;
	int state, deepest;
};

static const struct choose_case choose_cases[] = {
	{ "all worth it", 5, 0x1f, 0, NO_LIMIT, 4, 4, 4 },
	{ "timer too near for C6", 5, 0x1f, 0, NO_LIMIT, 3, 3, 3 },
	{ "C6 not worth it", 5, 0x0f, 0, NO_LIMIT, 4, 3, 4 },
	{ "nothing worth it", 5, 0x00, 0, NO_LIMIT, 4, 0, 4 },
	{ "only the deepest worth it", 5, 0x10, 0, NO_LIMIT, 4, 4, 4 },
	{ "C6 disabled", 5, 0x1f, 0x10, NO_LIMIT, 4, 3, 3 },
	{ "state 0 disabled", 5, 0x00, 0x01, NO_LIMIT, 4, 1, 4 },
	{ "0 and 1 disabled", 5, 0x00, 0x03, NO_LIMIT, 4, 2, 4 },
	{ "gap", 5, 0x03, 0x0c, NO_LIMIT, 4, 1, 4 },
	{ "limit 0 leaves POLL", 5, 0x1f, 0, 0, 4, 0, 0 },
	{ "limit below C1", 5, 0x1f, 0, 999, 4, 1, 1 },
	{ "limit of C1", 5, 0x1f, 0, 1000, 4, 2, 2 },
	{ "limit 0, state 0 disabled", 5, 0x1f, 0x01, 0, 4, -1, -1 },
	{ "all disabled", 5, 0x1f, 0x1f, NO_LIMIT, 4, -1, -1 },
	{ "two states", 2, 0x03, 0, NO_LIMIT, 1, 1, 1 },
	{ "two states, not worth it", 2, 0x00, 0, NO_LIMIT, 1, 0, 1 },
	{ "one state", 1, 0x01, 0, NO_LIMIT, 0, 0, 0 },
};

static void test_choose(struct kunit *test)
{
	static const s64 latency[] = { 0, 200, 1000, 2000, 290000 };
	struct cpuidle_driver *drv = kunit_kzalloc(test, sizeof(*drv), GFP_KERNEL);
	struct cpuidle_device *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	struct teo_row row;
	int i, k, deepest, state;

	KUNIT_ASSERT_NOT_NULL(test, drv);
	KUNIT_ASSERT_NOT_NULL(test, dev);

	for (i = 0; i < ARRAY_SIZE(choose_cases); i++) {
		const struct choose_case *c = &choose_cases[i];

		teo_row_init(&row);
		row.timer = 0;
		drv->state_count = c->nr;
		for (k = 0; k < c->nr; k++) {
			drv->states[k].exit_latency_ns = latency[k];
			dev->states_usage[k].disable = !!(c->disabled & BIT(k));
			if (!(c->worth & BIT(k)))
				row.score[k] = TEO_ENTER - 1;
		}

		state = teo_choose(drv, dev, c->latency_req, &row, TEO_ENTER,
				   c->top, &deepest);
		KUNIT_EXPECT_EQ_MSG(test, state, c->state, "%s", c->name);
		KUNIT_EXPECT_EQ_MSG(test, deepest, c->deepest, "%s", c->name);
	}
}

static void test_shallowest(struct kunit *test)
{
	struct cpuidle_driver *drv = kunit_kzalloc(test, sizeof(*drv), GFP_KERNEL);
	struct cpuidle_device *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, drv);
	KUNIT_ASSERT_NOT_NULL(test, dev);

	drv->state_count = 3;
	KUNIT_EXPECT_EQ(test, teo_shallowest(drv, dev), 0);
	dev->states_usage[0].disable = 1;
	KUNIT_EXPECT_EQ(test, teo_shallowest(drv, dev), 1);
	dev->states_usage[1].disable = 1;
	dev->states_usage[2].disable = 1;
	KUNIT_EXPECT_EQ(test, teo_shallowest(drv, dev), 0);
}

static void test_tick(struct kunit *test)
{
	static const struct {
		const char *name;
		int state;
		s64 sleep, delta;
		int score, tick_score;
		bool stop;
	} cases[] = {
		{ "C6, nothing to come", 4, KTIME_MAX, TICK, TEO_ONE, TEO_ONE, true },
		{ "C6, long idle times are rare", 4, KTIME_MAX, TICK, TEO_ENTER,
		  TEO_STOP_TICK - 1, true },
		{ "the tick is too near for C6", 4, KTIME_MAX, 700000, TEO_ONE,
		  -TEO_ONE, true },
		{ "a timer before the tick", 4, TICK - 1, TICK - 1, TEO_ONE,
		  TEO_ONE, false },
		{ "a timer after the tick, which is late enough for C6", 4, TICK - 1,
		  TICK - 2, TEO_ENTER, TEO_ONE, true },
		{ "a timer soon, the tick sooner", 4, TICK - 1, 700000, TEO_ONE,
		  TEO_ONE, true },
		{ "the same, C6 often in vain", 4, TICK - 1, 700000, TEO_ENTER,
		  TEO_ONE, false },
		{ "C1, nothing to come", 2, KTIME_MAX, TICK, TEO_ONE, TEO_ONE, true },
		{ "C1, long idle times are rare", 2, KTIME_MAX, TICK, TEO_ONE,
		  TEO_STOP_TICK - 1, false },
		{ "C1 before a timer", 2, TICK - 1, 1000, TEO_ONE, TEO_ONE, false },
	};
	const struct table_case c = { "five", five, ARRAY_SIZE(five) };
	struct teo_table table;
	struct teo_row row;
	int i;

	init_table(&table, &c);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		teo_row_init(&row);
		row.timer = 0;
		row.score[cases[i].state] = cases[i].score;
		row.score[table.nr_states] = cases[i].tick_score;
		KUNIT_EXPECT_EQ_MSG(test,
				    teo_wants_tick_stopped(&row, &table,
							   cases[i].state,
							   cases[i].sleep,
							   cases[i].delta, TICK),
				    cases[i].stop, "%s", cases[i].name);
	}
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
	KUNIT_CASE(test_bin),
	KUNIT_CASE(test_class),
	KUNIT_CASE(test_gain),
	KUNIT_CASE(test_learn),
	KUNIT_CASE(test_learn_few),
	KUNIT_CASE(test_learn_timer),
	KUNIT_CASE(test_worth_it),
	KUNIT_CASE(test_inherit),
	KUNIT_CASE(test_choose),
	KUNIT_CASE(test_shallowest),
	KUNIT_CASE(test_tick),
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
