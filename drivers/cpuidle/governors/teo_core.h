/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Timer events oriented CPU idle governor: the arithmetic
 *
 * Pure functions: nothing here reads a clock or a CPU, so the governor, its KUnit
 * test and programs in user space share this file. Times are in ns.
 */
#ifndef _CPUIDLE_TEO_CORE_H
#define _CPUIDLE_TEO_CORE_H

#include <linux/bitops.h>
#include <linux/cpuidle.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "gov.h"

/* A gain of 1: an idle time of twice what the state needs. */
#define TEO_ONE			4096

/* An idle time counts up to this many times what the state needs. */
#define TEO_MOST		3

/* The highest score: a dozen idle times of half of what the state needs undo it. */
#define TEO_SCORE_MOST		(TEO_ONE / 2)

/* The cost of work that waits for the exit, in quarters of the exit latency. */
#define TEO_PRICE		9

/* Means are over about 1 << TEO_MEMORY events, fewer at first. */
#define TEO_MEMORY		4

/* A tick costs an exit and an entry: assumed to be four times a stop of the tick. */
#define TEO_TICK_SHIFT		2

/* It is kept in vain for at most this time, however far the timer is. */
#define TEO_VAIN_MOST		(2LL * NSEC_PER_SEC)

/* The states, and one for the tick. */
#define TEO_COLUMNS		(CPUIDLE_STATE_MAX + 1)

/* Classes of idle times, each four times as long as the one before. */
#define TEO_CLASSES		7

#define TEO_RECIPROCAL_SHIFT	26
#define TEO_SUM_SHIFT		10	/* of sums of idle times, about 1 us */

/**
 * struct teo_column - the idle time T that a state needs
 * @needed: T
 * @reciprocal: TEO_ONE << TEO_RECIPROCAL_SHIFT over T
 */
struct teo_column {
	s64 needed;
	u64 reciprocal;
};

/**
 * struct teo_table - the idle states and the tick
 * @nr_states: number of idle states
 * @column: the states, then the tick
 */
struct teo_table {
	int nr_states;
	struct teo_column column[TEO_COLUMNS];
};

/**
 * struct teo_row - what is known of one kind of situation
 * @score: decaying mean of the gains, up to TEO_SCORE_MOST, per column but that of state 0
 * @events: number of events seen, up to what TEO_MEMORY can tell apart
 * @in_vain: sum of idle times worth a stop of the tick, less the long ones
 *
 * A new row has scores of 0, with which no state is worth entering. Otherwise the
 * first event of each of many rows would enter the deepest state.
 */
struct teo_row {
	s16 score[TEO_COLUMNS];
	u8 events;
	u32 in_vain;
};

/* C1 of ACPI may have a latency and a residency of 0. It is always worth it. */
static inline void teo_column_init(struct teo_column *col, s64 needed)
{
	col->needed = max_t(s64, needed, 1);
	col->reciprocal = div64_u64((u64)TEO_ONE << TEO_RECIPROCAL_SHIFT,
				    col->needed);
}

/* Take over the states of @drv, and the tick's period. */
static inline void teo_table_init(struct teo_table *table,
				  const struct cpuidle_driver *drv, s64 tick)
{
	const struct cpuidle_state *s = drv->states;
	int i;

	for (i = 0; i < drv->state_count; i++, s++)
		teo_column_init(&table->column[i], s->target_residency_ns +
				((s->exit_latency_ns * TEO_PRICE) >> 2));
	teo_column_init(&table->column[drv->state_count], tick >> TEO_TICK_SHIFT);
	table->nr_states = drv->state_count;
}

/**
 * teo_gain - what is gained by entering a state
 * @col: the idle time T that the state needs
 * @idle: the idle time d
 *
 * From the target residency on, a state takes less energy than the next shallower
 * one. Both energies grow linearly with d, and the cost of the exit latency is
 * constant, so the gain (below T, the loss) is proportional to d - T. In units of
 * T, and with d counted up to 3 T:
 *
 *	gain = (d - T) / T
 *
 * Return: the gain, where TEO_ONE is 1
 */
static inline int teo_gain(const struct teo_column *col, s64 idle)
{
	u64 times = min(idle, TEO_MOST * col->needed) * col->reciprocal;

	return (int)(times >> TEO_RECIPROCAL_SHIFT) - TEO_ONE;
}

/* Count an event. Return: its weight, as a shift; the first ones weigh more. */
static inline int teo_count_event(u8 *events)
{
	if (*events >= (1 << TEO_MEMORY) - 2)
		return TEO_MEMORY;
	return ilog2(++*events + 1);
}

/* Twice as long as the deepest state needs, or one that its score does not want entered? */
static inline bool teo_long(const struct teo_row *row, const struct teo_table *table, s64 idle)
{
	int i = table->nr_states - 1;
	bool is_long = idle >> 1 >= table->column[i].needed;

	while (!is_long && --i > 0)
		is_long = row->score[i] <= 0 && idle >> 1 >= table->column[i].needed;
	return is_long;
}

/**
 * teo_learn - let an idle time count
 * @row: the situation in which it was
 * @table: the states
 * @idle: the idle time
 * @timer: the timer ended it
 *
 *	score' = min(score + (gain - score) / 2^shift, TEO_SCORE_MOST)
 *
 * What is learned is when an idle time ends without a timer. If the timer ended
 * it, that would have been at an unknown later time: no score falls.
 */
static inline void teo_learn(struct teo_row *row, const struct teo_table *table,
			     s64 idle, bool timer)
{
	bool worth_stop = idle >= table->column[table->nr_states].needed;
	int shift = teo_count_event(&row->events), i;

	if (worth_stop && teo_long(row, table, idle))
		row->in_vain -= min_t(s64, row->in_vain, idle >> TEO_SUM_SHIFT);
	else if (worth_stop && !timer)
		row->in_vain = min_t(s64, row->in_vain + (idle >> TEO_SUM_SHIFT), U32_MAX);

	for (i = 1; i <= table->nr_states; i++) {
		int more = teo_gain(&table->column[i], idle) - row->score[i];

		if (!timer || more > 0)
			row->score[i] = min(row->score[i] + (more >> shift), TEO_SCORE_MOST);
	}
}

static inline bool teo_state_usable(const struct cpuidle_driver *drv,
				    const struct cpuidle_device *dev,
				    s64 latency_req, int i)
{
	return !dev->states_usage[i].disable &&
	       drv->states[i].exit_latency_ns <= latency_req;
}

/* No state meets the limits: the shallowest that is enabled is nearest to them. */
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
 * teo_choose - choose a state
 * @drv: the driver
 * @dev: the CPU, whose usage says which states are disabled
 * @latency_req: latency limit
 * @row: the situation, or NULL if the times alone decide
 * @top: the deepest state to choose
 * @sleep: time to the next timer event but the tick
 * @most: time until something ends the stay, which may be the tick
 *
 * Nobody waits for a tick, so a state that the tick ends needs its target residency
 * alone. Other work rarely waits for a task that a timer wakes, so there the exit
 * latency counts once.
 *
 * Return: the deepest usable state that fits and is worth it; else the shallowest.
 */
static inline int teo_choose(const struct cpuidle_driver *drv,
			     const struct cpuidle_device *dev, s64 latency_req,
			     const struct teo_row *row, int top, s64 sleep,
			     s64 most)
{
	int state = -1, i;

	for (i = top; i >= 0; i--) {
		const struct cpuidle_state *s = &drv->states[i];

		if (!teo_state_usable(drv, dev, latency_req, i))
			continue;
		state = i;
		if (s->target_residency_ns + s->exit_latency_ns <= sleep &&
		    s->target_residency_ns <= most &&
		    (!row || row->score[i] > 0))
			break;
	}
	return state < 0 ? teo_shallowest(drv, dev) : state;
}

/* Is it worth stopping the tick? Without @row, @sleep alone decides. */
static inline bool teo_wants_tick_stopped(const struct teo_row *row,
					  const struct teo_table *table,
					  s64 sleep, s64 tick)
{
	return sleep >= tick &&
	       (!row || row->score[table->nr_states] > 0);
}

/* Could a usable state deeper than @state become worth it before the timer? */
static inline bool teo_deeper_fits(const struct cpuidle_driver *drv,
				   const struct cpuidle_device *dev,
				   s64 latency_req, const struct teo_table *table,
				   int state, s64 sleep)
{
	int i;

	for (i = state + 1; i < drv->state_count; i++)
		if (teo_state_usable(drv, dev, latency_req, i) &&
		    table->column[i].needed <= sleep)
			return true;
	return false;
}

/**
 * teo_decide - choose a state, and decide on the tick
 * @drv: the driver
 * @dev: the CPU
 * @latency_req: latency limit
 * @row: the situation, or NULL if the timer alone decides
 * @table: the states
 * @sleep: time to the next timer event but the tick
 * @delta: time to the next timer event, which may be the tick
 * @tick: tick period
 * @stop: whether the tick is stopped; set if it is to be
 *
 * Without the tick, a stay that is too long for its state lasts until the timer. So
 * the tick is kept if a deeper state could become worth it until then and the row's
 * in_vain is less than that time and than TEO_VAIN_MOST. If the tick comes too soon for
 * the state, the timer alone decides.
 *
 * Return: the state.
 */
static inline int teo_decide(const struct cpuidle_driver *drv,
			     const struct cpuidle_device *dev, s64 latency_req,
			     const struct teo_row *row,
			     const struct teo_table *table, s64 sleep, s64 delta,
			     s64 tick, bool *stop)
{
	int top = drv->state_count - 1;
	int state = teo_choose(drv, dev, latency_req, row, top, sleep, sleep);

	if (*stop)
		return state;
	if (teo_wants_tick_stopped(row, table, sleep, tick)) {
		*stop = true;
		if (!row || row->in_vain >= min(sleep, TEO_VAIN_MOST) >> TEO_SUM_SHIFT ||
		    !teo_deeper_fits(drv, dev, latency_req, table, state, sleep))
			return state;
		if (drv->states[state].target_residency_ns > tick)
			return teo_choose(drv, dev, latency_req, NULL, top, sleep,
					  sleep);
		*stop = false;
	}
	return teo_choose(drv, dev, latency_req, row, state, sleep, delta);
}

/* First state for which it is worth looking up the next timer; if none, the tick's column */
static inline int teo_deep_column(const struct cpuidle_driver *drv)
{
	int i;

	for (i = 1; i < drv->state_count; i++)
		if (drv->states[i].target_residency_ns >= RESIDENCY_THRESHOLD_NS)
			break;
	return i;
}

/* Ticks in a row after which the deepest state would have been right; one may be chance. */
static inline int teo_nets(const struct teo_table *table, s64 tick)
{
	s64 needed = table->column[table->nr_states - 1].needed;

	return clamp_t(s64, div64_u64(needed, tick) + 1, 3, 255);
}

/* Idle times reach less than half of what it needs: skip looking up the timer. */
static inline bool teo_surely_shallow(const struct teo_row *row, int deep)
{
	return row->score[deep] < -TEO_ONE / 2;
}

/* Class of an idle time: up to 8 us, up to 33 us, and so on; 8 ms and more. */
static inline int teo_class(s64 idle)
{
	return min(fls64(idle >> 12) / 2, TEO_CLASSES - 1);
}

/*
 * Did the timer end it, which was due @sleep after the governor was asked? Until the
 * entry some time passes, more on a slow CPU. Whatever else comes in the last eighth
 * makes no difference.
 */
static inline bool teo_timer_ended(s64 measured, s64 sleep)
{
	return measured >= sleep - (sleep >> 3);
}

/*
 * How long there was nothing to do, at most @sleep. The exit latency is part of
 * @measured, but the wake-up came before it.
 */
static inline s64 teo_idle_time(s64 measured, s64 latency, s64 sleep)
{
	s64 idle = max_t(s64, measured - latency, measured >> 1);

	return min_t(s64, idle, sleep);
}

/*
 * The exit latency, from one more observation, at most the driver's figure @worst.
 * Some are wrong: something else may have caused the exit shortly before the timer,
 * or delayed it. Steps of limited size towards each lead to the median, which depends
 * on outliers less than the mean does.
 */
static inline s64 teo_track_latency(s64 latency, s64 seen, s64 worst)
{
	s64 step = (worst >> 4) + 1;

	seen = clamp_t(s64, seen, 0, worst);
	return latency + clamp_t(s64, seen - latency, -step, step);
}

#endif /* _CPUIDLE_TEO_CORE_H */
