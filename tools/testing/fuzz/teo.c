// SPDX-License-Identifier: GPL-2.0
/* TEO: any idle states, idle times and orders of events */
#include "fuzz.h"
#include "teo_core.h"

static struct cpuidle_driver drv;
static struct cpuidle_device dev;
static struct teo_table table;

/* Of 4096, for idle times of up to 66 ms that a state needs: their reciprocals are rounded */
#define ROUNDED	4

/* As drivers have them: no state pays sooner or is left sooner than a shallower one */
static void states(struct input *in)
{
	s64 residency = 0, latency = 0;

	drv.state_count = 1 + take(in, 1) % CPUIDLE_STATE_MAX;
	for (int i = 0; i < drv.state_count; i++) {
		drv.states[i].target_residency_ns = residency;
		drv.states[i].exit_latency_ns = latency;
		dev.states_usage[i].disable = !(take(in, 1) & 7);
		residency += 1 + take_any(in, 22);
		latency += take_any(in, 20);
	}
	teo_table_init(&table, &drv, 4 + take_below(in, 10000000));
}

/* A score is between its bounds, and no deeper state's is above a shallower one's */
static void row_is_sound(const struct teo_row *row)
{
	for (int i = 1; i <= table.nr_states; i++)
		PROPERTY(row->score[i] >= -TEO_ONE && row->score[i] <= TEO_ONE / 2);
	for (int i = 2; i < table.nr_states; i++)
		PROPERTY(row->score[i] <= row->score[i - 1] + ROUNDED);
}

static void learns(struct teo_row *row, s64 idle, bool timer)
{
	struct teo_row old = *row;

	teo_learn(row, &table, idle, timer);
	row_is_sound(row);
	for (int i = 1; i <= table.nr_states; i++) {
		PROPERTY(!timer || row->score[i] >= old.score[i]);
		if (idle >= TEO_MOST * table.column[i].needed)
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
static int wanted(const struct teo_row *row, int top, s64 limit, s64 sleep, s64 most)
{
	int i;

	for (i = top; i >= 0; i--) {
		if (usable(i, limit) && pays(row, i, sleep, most))
			return i;
	}
	for (i = 0; i <= top; i++) {
		if (usable(i, limit))
			return i;
	}
	for (i = 0; i < drv.state_count; i++) {
		if (!dev.states_usage[i].disable)
			return i;
	}
	return 0;
}

static int choose(const struct teo_row *row, int top, s64 limit, s64 sleep, s64 most)
{
	return teo_choose(&drv, &dev, limit, row, top, sleep, most);
}

static void chooses(struct input *in, const struct teo_row *row)
{
	int top = take(in, 1) % drv.state_count, state;
	s64 limit = take_any(in, 40), sleep = take_any(in, 40), most = take_any(in, 40);

	state = choose(row, top, limit, sleep, most);
	PROPERTY(state == wanted(row, top, limit, sleep, most));
	PROPERTY(choose(row, top, limit, sleep, most + take_any(in, 40)) >= state);
	PROPERTY(choose(row, top, limit, sleep + take_any(in, 40), most) >= state);
	if (usable(state, limit))
		PROPERTY(choose(row, top, limit + take_any(in, 40), sleep, most) >= state);
}

static void times(struct input *in)
{
	s64 measured = take_any(in, 60), sleep = take_any(in, 60), worst = take_any(in, 40);
	s64 latency = worst ? take_any(in, 40) % worst : 0, seen = (s64)take(in, 8) >> 2, next;
	s64 idle = teo_idle_time(measured, latency, sleep);

	PROPERTY(idle >= 0 && idle <= measured && idle <= sleep);
	PROPERTY(teo_class(idle) >= 0 && teo_class(idle) <= teo_class(measured));
	PROPERTY(teo_class(measured) < TEO_CLASSES);
	PROPERTY(measured < sleep || teo_timer_ended(measured, sleep));

	next = teo_track_latency(latency, seen, worst);
	PROPERTY(next >= 0 && next <= worst);
	PROPERTY(next - latency <= worst / 16 + 1 && latency - next <= worst / 16 + 1);
	PROPERTY(seen <= latency || next >= latency);
	PROPERTY(seen >= latency || next <= latency);
}

static void one(struct input *in)
{
	struct teo_row row = {};
	int deep;

	states(in);
	deep = teo_deep_column(&drv);
	PROPERTY(deep >= 1 && deep <= max(drv.state_count, 1));
	times(in);
	while (in->at < in->end) {
		u8 what = take(in, 1);

		learns(&row, take_any(in, 40), what & 1);
		chooses(in, what & 2 ? &row : NULL);
		PROPERTY(teo_wants_tick_stopped(&row, &table, 0, 4000000) == false);
		if (teo_surely_shallow(&row, deep) && deep < drv.state_count)
			PROPERTY(row.score[deep] < 0);
	}
}
