/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Timer events oriented CPU idle governor: the arithmetic
 *
 * Values in, values out: nothing here reads a clock, a driver or a CPU, so the
 * governor, its KUnit test and programs in user space share it as it is.
 * Times are in ns throughout.
 */
#ifndef _CPUIDLE_TEO_CORE_H
#define _CPUIDLE_TEO_CORE_H

#include <linux/cpuidle.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

/*
 * A gain, score or share of 1. The gain of a deep state is 1 if the CPU is idle
 * for twice the target residency, and never more: one long idle time among many
 * short ones must not outweigh them all.
 */
#define TEO_ONE_SHIFT		13
#define TEO_ONE			(1 << TEO_ONE_SHIFT)

/*
 * Target residencies below are those of shallow states. There is little to gain
 * or to lose in them, so it counts how often they are right, rather than by how
 * much: their gain is steeper and reaches 1 sooner.
 */
#define TEO_SHALLOW_NS		(50 * NSEC_PER_USEC)
#define TEO_SHALLOW_SLOPE	3

/*
 * Where two CPUs converse, the idle time of each contains the exit latency of
 * the other, so that a deeper state can seem right to both for no other reason
 * than that both enter it. Target residencies below are short enough for that,
 * and states gain from 1.5 times of it on.
 */
#define TEO_CONVERSE_NS		(10 * NSEC_PER_USEC)

/* A state is worth entering from this score on: too deep costs wake-ups time. */
#define TEO_ENTER		(TEO_ONE / 8)

/*
 * With a shallow state, the tick is stopped if the idle times come to 0.1 tick
 * periods in the mean, so that the tick would hit every tenth. For a deep one
 * that the tick is too near for, while a timer comes within a tick period, the
 * state has to be known to pay off.
 */
#define TEO_STOP_TICK		(-TEO_ONE * 9 / 10)
#define TEO_STOP_TICK_SHORT	(TEO_ONE * 6 / 10)

/* Means are over about 1 << TEO_MEMORY events, fewer at first. */
#define TEO_MEMORY		5

/* The pseudo state after the deepest one whose residency is the tick period. */
#define TEO_COLUMNS		(CPUIDLE_STATE_MAX + 1)

/* Residencies fall into at most so many classes. */
#define TEO_CLASSES		6

#define TEO_RECIPROCAL_SHIFT	26

/**
 * struct teo_column - a target residency, prepared for teo_gain()
 * @residency: target residency of a state, or the tick period
 * @even: idle time from which on there is a gain
 * @most: idle time from which on it does not grow
 * @reciprocal: slope * TEO_ONE << TEO_RECIPROCAL_SHIFT over @even
 */
struct teo_column {
	s64 residency;
	s64 even;
	s64 most;
	u64 reciprocal;
};

/**
 * struct teo_table - what the arithmetic needs to know of the idle states
 * @nr_states: number of idle states
 * @nr_bins: bins of idle times, which start at the columns' residencies; the
 *	tick period is the last one's start unless a state's is above it
 * @column: the states, then the tick period
 * @class: class of each bin, below TEO_CLASSES
 */
struct teo_table {
	int nr_states;
	int nr_bins;
	struct teo_column column[TEO_COLUMNS];
	u8 class[TEO_COLUMNS];
};

/**
 * struct teo_row - what happened in one kind of situation
 * @score: decaying mean of the gains, per state and for the tick period, of
 *	idle times that ended before the next timer was due
 * @timer: decaying share of those that it ended
 * @events: number of events seen, up to what TEO_MEMORY can tell apart
 */
struct teo_row {
	s16 score[TEO_COLUMNS];
	s16 timer;
	u8 events;
};

/*
 * A residency of 0 is a polling state's, of which nobody asks the gain, but it
 * must not be divided by.
 */
static inline void teo_column_init(struct teo_column *col, s64 residency)
{
	u64 slope = residency < TEO_SHALLOW_NS ? TEO_SHALLOW_SLOPE : 1;
	s64 even = residency;

	if (residency < TEO_CONVERSE_NS)
		even += residency / 2;

	col->residency = residency;
	col->even = even;
	col->most = even + div64_u64(even, slope);
	col->reciprocal = div64_u64(slope * TEO_ONE << TEO_RECIPROCAL_SHIFT,
				    max_t(s64, even, 1));
}

/**
 * teo_table_init - take over the target residencies
 * @table: to be filled
 * @residency: target residency of each state, not falling
 * @nr_states: number of states, up to CPUIDLE_STATE_MAX
 * @tick: tick period
 */
static inline void teo_table_init(struct teo_table *table, const s64 *residency,
				  int nr_states, s64 tick)
{
	int i, nr_classes;

	for (i = 0; i < nr_states; i++)
		teo_column_init(&table->column[i], residency[i]);
	teo_column_init(&table->column[nr_states], tick);

	table->nr_states = nr_states;
	table->nr_bins = nr_states;
	if (nr_states && residency[nr_states - 1] < tick)
		table->nr_bins++;

	nr_classes = min(table->nr_bins, TEO_CLASSES);
	for (i = 0; i < table->nr_bins; i++)
		table->class[i] = i * nr_classes / table->nr_bins;
}

/* Before anything was seen, the timer is trusted. */
static inline void teo_row_init(struct teo_row *row)
{
	unsigned int i;

	row->events = 0;
	row->timer = TEO_ONE;
	for (i = 0; i < TEO_COLUMNS; i++)
		row->score[i] = TEO_ONE;
}

/*
 * A situation that is new is taken to be like the one before it, which counts as
 * much as one event. Were the timer trusted in each, a run of short idle times
 * would be interrupted by a deep state and a stopped tick every now and then.
 */
static inline void teo_row_inherit(struct teo_row *row, const struct teo_row *last)
{
	*row = *last;
	row->events = min(last->events, 1);
}

/* The last bin that starts no later than @idle. */
static inline int teo_bin(const struct teo_table *table, s64 idle)
{
	int bin = table->nr_bins - 1;

	while (bin > 0 && table->column[bin].residency > idle)
		bin--;
	return bin;
}

/*
 * The driver states with the target residency T where a state starts to take
 * less energy than the next shallower one. Both energies grow linearly with the
 * idle time d, so what is gained (or, below T, lost) by entering the state is
 * proportional to d - T. In units of T:
 *
 *	gain = slope * (d - T) / T,	cut off at 1
 *
 * with 1.5 T for T where that is below TEO_CONVERSE_NS.
 */
static inline int teo_gain(const struct teo_column *col, s64 idle)
{
	s64 over = min(idle, col->most) - col->even;

	return (over * (s64)col->reciprocal) >> TEO_RECIPROCAL_SHIFT;
}

/* Count an event: how much it weighs, as a shift. The first ones weigh more. */
static inline int teo_count_event(u8 *events)
{
	if (*events >= (1 << TEO_MEMORY) - 2)
		return TEO_MEMORY;
	return ilog2(++*events + 1);
}

/**
 * teo_learn - let an idle time count
 * @row: the situation in which it was
 * @table: the states
 * @idle: the idle time
 * @bin: bin of the sleep length; what is beyond could not be entered
 * @timer: the timer ended it, of which the sleep length told
 *
 *	mean' = mean + (event - mean) / 2^shift
 *
 * What the timer ended tells nothing of the other idle times, so the scores
 * stay.
 */
static inline void teo_learn(struct teo_row *row, const struct teo_table *table,
			     s64 idle, int bin, bool timer)
{
	int shift = teo_count_event(&row->events), i;

	if (timer) {
		row->timer += (TEO_ONE - row->timer) >> shift;
		return;
	}
	row->timer -= row->timer >> shift;

	for (i = 1; i <= bin; i++)
		row->score[i] += (teo_gain(&table->column[i], idle) -
				  row->score[i]) >> shift;
}

/* The gain to expect of a column, where the sleep length is @sleep. */
static inline int teo_expect(const struct teo_row *row,
			     const struct teo_table *table, int i, s64 sleep)
{
	int early = row->score[i];
	int more = teo_gain(&table->column[i], sleep) - early;

	return early + (more * row->timer >> TEO_ONE_SHIFT);
}

/**
 * teo_worth_it - is a state worth entering?
 * @row: the situation
 * @i: index of the state
 * @enter: score from which on it is
 *
 * States that the next timer does not allow are not asked for. So if that ends
 * the idle time, the state is right, whether by little or by much.
 */
static inline bool teo_worth_it(const struct teo_row *row, int i, int enter)
{
	int margin = row->score[i] - enter;

	return margin >= 0 ||
	       margin * (TEO_ONE - row->timer) + TEO_ONE * row->timer >= 0;
}

static inline bool teo_state_usable(const struct cpuidle_driver *drv,
				    const struct cpuidle_device *dev,
				    s64 latency_req, int i)
{
	return !dev->states_usage[i].disable &&
	       drv->states[i].exit_latency_ns <= latency_req;
}

/**
 * teo_choose - choose a state
 * @drv: the driver
 * @dev: the CPU, which tells what is disabled
 * @latency_req: latency limit
 * @row: the situation
 * @enter: score from which on a state is worth it
 * @top: index of the deepest state that is not too deep anyway
 * @deepest: set to what could be entered at most
 *
 * Return: the deepest usable state that is worth it, else the shallowest; -1
 * if there is none.
 */
static inline int teo_choose(const struct cpuidle_driver *drv,
			     const struct cpuidle_device *dev, s64 latency_req,
			     const struct teo_row *row, int enter, int top,
			     int *deepest)
{
	int state, i;

	for (i = top; i >= 0; i--)
		if (teo_state_usable(drv, dev, latency_req, i))
			break;

	*deepest = i;
	for (state = i; i >= 0 && !teo_worth_it(row, i, enter); ) {
		if (--i >= 0 && teo_state_usable(drv, dev, latency_req, i))
			state = i;
	}
	return state;
}

/* Nothing meets the limits: as near to them as the enabled states allow. */
static inline int teo_shallowest(const struct cpuidle_driver *drv,
				 const struct cpuidle_device *dev)
{
	int i;

	for (i = 0; i < drv->state_count; i++)
		if (!dev->states_usage[i].disable)
			return i;
	return 0;
}

/**
 * teo_wants_tick_stopped - is the tick to be stopped for this state?
 * @row: the situation
 * @table: the states
 * @state: what was chosen, the deepest that the next timer allows
 * @sleep: time to the next timer event but the tick
 * @delta: time to the next timer event, the tick included
 * @tick: tick period
 *
 * In a deep state the tick does nothing but end it early, to no purpose but to
 * enter it once more.
 */
static inline bool teo_wants_tick_stopped(const struct teo_row *row,
					  const struct teo_table *table,
					  int state, s64 sleep, s64 delta,
					  s64 tick)
{
	s64 residency = table->column[state].residency;

	if (residency > delta)
		return sleep >= tick || teo_expect(row, table, state, sleep) >=
					TEO_STOP_TICK_SHORT;
	if (residency >= TEO_SHALLOW_NS)
		return sleep > delta;

	return sleep >= tick && teo_expect(row, table, table->nr_states, sleep) >=
				TEO_STOP_TICK;
}

/**
 * teo_idle_time - how long nothing was to be done
 * @measured: from entry to exit
 * @latency: what leaving the state takes, as far as is known
 * @sleep: time to the next timer event at entry
 *
 * The exit latency is part of @measured, but the wake-up came before it.
 */
static inline s64 teo_idle_time(s64 measured, s64 latency, s64 sleep)
{
	s64 idle = max_t(s64, measured - latency, measured >> 1);

	return min_t(s64, idle, sleep);
}

/**
 * teo_track_latency - what leaving a state takes, from one more observation
 * @latency: what was known so far
 * @seen: from a timer event to the exit that it caused
 * @worst: the driver's figure
 *
 * Some observations are wrong: something else may have caused the exit shortly
 * before the timer, or delayed it. A step of limited size towards each leads to
 * the median, which these do not move as they would the mean.
 *
 * Return: what is known now.
 */
static inline s64 teo_track_latency(s64 latency, s64 seen, s64 worst)
{
	s64 step = (worst >> 4) + 1;

	seen = clamp_t(s64, seen, 0, worst);
	return latency + clamp_t(s64, seen - latency, -step, step);
}

#endif /* _CPUIDLE_TEO_CORE_H */
