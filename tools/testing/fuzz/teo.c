// SPDX-License-Identifier: GPL-2.0
/* TEO: any idle states, idle times and orders of events */
#include "fuzz.h"
#include "teo_core.h"

static struct cpuidle_driver drv;
static struct cpuidle_device dev;
static struct teo_cpu cpu;
static const struct teo_table *const table = &cpu.table;

/* Each score is rounded down by less than 1 ns at each step, that is, by less than this. */
#define ROUNDED	(1 << TEO_MEMORY)

/* As drivers have them: no state pays sooner or is left sooner than a shallower one */
static void states(struct input *in)
{
	s64 residency = 0, latency = 0;

	drv.state_count = 1 + take(in, 1) % CPUIDLE_STATE_MAX;
	for (int i = 0; i < drv.state_count; i++) {
		drv.states[i].target_residency_ns = residency;
		drv.states[i].exit_latency_ns = latency;
		dev.states_usage[i].disable = !(take(in, 1) & 7);
		residency += 1 + take_any(in, 32);
		latency += take_any(in, 20);
	}
	teo_init(&cpu, &drv, 4 + take_below(in, 10000000));
}

/* A score is between its bounds, and no deeper state's is above a shallower one's, in units of T */
static void row_is_sound(const struct teo_row *row)
{
	for (int i = 1; i <= table->nr_states; i++)
		PROPERTY(row->score[i] >= -table->needed[i] && row->score[i] <= table->needed[i] / 2);
	for (int i = 2; i < table->nr_states; i++) {
		s64 shallow = table->needed[i - 1], deep = table->needed[i];

		PROPERTY(row->score[i] * shallow <= row->score[i - 1] * deep + ROUNDED * deep);
	}
	PROPERTY(row->in_vain >= 0);
}

static void learns(struct teo_row *row, s64 idle, bool timer)
{
	struct teo_row old = *row;

	teo_learn(row, table, idle, timer);
	row_is_sound(row);
	for (int i = 1; i <= table->nr_states; i++) {
		PROPERTY(!timer || row->score[i] >= old.score[i]);
		if (idle >= TEO_MOST * (s64)table->needed[i])
			PROPERTY(row->score[i] >= old.score[i]);
		if (!idle && !timer)
			PROPERTY(row->score[i] <= old.score[i]);
	}
}

static bool usable(int i, s64 limit)
{
	return !dev.states_usage[i].disable && drv.states[i].exit_latency_ns <= limit;
}

static bool pays(const struct teo_row *row, int i, s64 sleep, s64 most)
{
	const struct cpuidle_state *s = &drv.states[i];

	return s->target_residency_ns + s->exit_latency_ns <= sleep &&
	       s->target_residency_ns <= most && (!row || row->score[i] > 0);
}

/* By the definition: the deepest that pays, else the shallowest usable, else enabled */
static int wanted(const struct teo_row *row, s64 limit, s64 sleep, s64 most)
{
	int i;

	for (i = drv.state_count - 1; i >= 0; i--) {
		if (usable(i, limit) && pays(row, i, sleep, most))
			return i;
	}
	for (i = 0; i < drv.state_count; i++) {
		if (usable(i, limit))
			return i;
	}
	for (i = 0; i < drv.state_count; i++) {
		if (!dev.states_usage[i].disable)
			return i;
	}
	return 0;
}

static int choose(const struct teo_row *row, s64 limit, s64 sleep, s64 most)
{
	return teo_choose(&drv, &dev, limit, row, sleep, most);
}

static void chooses(struct input *in, const struct teo_row *row)
{
	s64 limit = take_any(in, 40), sleep = take_any(in, 40), most = take_any(in, 40);
	int state = choose(row, limit, sleep, most);

	PROPERTY(state == wanted(row, limit, sleep, most));
	PROPERTY(choose(row, limit, sleep, most + take_any(in, 40)) >= state);
	PROPERTY(choose(row, limit, sleep + take_any(in, 40), most) >= state);
	if (usable(state, limit))
		PROPERTY(choose(row, limit + take_any(in, 40), sleep, most) >= state);
}

/* The tick is stopped for a timer beyond it alone, and a state that it would cut short fits */
static void decides(struct input *in, const struct teo_row *row)
{
	s64 limit = take_any(in, 40), sleep = take_any(in, 40), tick = 4 + take_below(in, 10000000);
	s64 delta = min(sleep, (s64)take_below(in, tick));
	bool stopped = take(in, 1) & 1, stop = stopped;
	int state = teo_decide(&drv, &dev, limit, row, table, sleep, delta, tick, &stop);
	s64 most = stop ? sleep : delta;

	PROPERTY(stop >= stopped && (stop == stopped || sleep >= tick));
	PROPERTY(state <= wanted(NULL, limit, sleep, most));
	PROPERTY(row || stop || sleep < tick || state == wanted(NULL, limit, sleep, delta) ||
		 (drv.states[state].flags & CPUIDLE_FLAG_POLLING));
}

static void times(struct input *in)
{
	s64 measured = take_any(in, 60), sleep = take_any(in, 60), latency = take_any(in, 40);
	s64 idle = teo_idle_time(measured, latency, sleep);

	PROPERTY(idle >= 0 && idle <= measured && idle <= sleep);
	PROPERTY(teo_class(idle) >= 0 && teo_class(idle) <= teo_class(measured));
	PROPERTY(teo_class(measured) < TEO_CLASSES);
	PROPERTY(measured < sleep || teo_timer_ended(measured, sleep));
}

/* Stays of any length, end and order: none is longer than the time since it began */
static void stays(struct input *in)
{
	u64 now = take_any(in, 40);

	while (in->at < in->end && take(in, 1) & 7) {
		s64 measured = take_any(in, 30);

		teo_begin(&cpu, take_any(in, 20), now);
		PROPERTY(cpu.nr_pending >= 1 && cpu.nr_pending <= TEO_PENDING);
		PROPERTY(cpu.nets <= TEO_NETS && cpu.pending[0].start <= now);
		for (int i = 0; i < cpu.nr_pending; i++)
			row_is_sound(cpu.pending[i].row);
		cpu.sleep = take_any(in, 40);
		if (take(in, 1) & 3)
			teo_ended(&cpu, measured, take(in, 1) & 1);
		now += measured + take_any(in, 30);
	}
}

static void one(struct input *in)
{
	struct teo_row row = {};

	states(in);
	PROPERTY(table->deep >= 1 && table->deep <= max(drv.state_count, 1));
	times(in);
	stays(in);
	while (in->at < in->end) {
		u8 what = take(in, 1);

		learns(&row, take_any(in, 40), what & 1);
		chooses(in, what & 2 ? &row : NULL);
		decides(in, what & 4 ? &row : NULL);
		if (teo_surely_shallow(&row, table) && table->deep < drv.state_count)
			PROPERTY(row.score[table->deep] < 0);
	}
}
