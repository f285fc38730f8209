/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Timer events oriented CPU idle governor: what it knows, learns and decides
 *
 * Nothing here reads a clock or a CPU, so the governor, its KUnit test and programs
 * in user space share this file. Times are in ns.
 */
#ifndef _CPUIDLE_TEO_CORE_H
#define _CPUIDLE_TEO_CORE_H

#include <linux/bitops.h>
#include <linux/cpuidle.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/types.h>

#include "gov.h"

/*
 * The price of work that waits, in quarters of the exit latency. With recorded idle
 * times it is the largest that took at most 1 % more energy than the best of menu and
 * two other versions of this governor, on each of ten tables of states.
 */
#define TEO_PRICE	9

/* An idle time counts up to so many times T, or a single one outweighs many (recorded). */
#define TEO_MOST	3

/* Means are over some 1 << TEO_MEMORY idle times, fewer at first; 4 forgets too late. */
#define TEO_MEMORY	3

/* A tick is assumed to cost four times what it costs to stop it. */
#define TEO_TICK_SHIFT	2

/* Ticks or time limits in a row after which the timer alone decides; two may be chance. */
#define TEO_NETS	3

/* The tick is kept in vain for at most this long; without it, always if no timer is set. */
#define TEO_VAIN_MOST	(2LL * NSEC_PER_SEC)

/* The states, and one for the tick. */
#define TEO_COLUMNS	(CPUIDLE_STATE_MAX + 1)

/* Classes of idle times: up to 33 us, 0.5 ms, 8 ms, and longer. More gained nothing. */
#define TEO_CLASSES	4

/* Situations of one idle time that are learned from: the first, and one after a tick. */
#define TEO_PENDING	2

/* How an idle time ended, as far as that predicts the next one. */
enum teo_end {
	TEO_OTHER,
	TEO_TIMER,
	TEO_NET,	/* own tick or time limit, no task: it continues */
	TEO_END_NR
};

/**
 * struct teo_table - the idle times that states and tick need
 * @nr_states: number of states
 * @deep: first column for which the time to the next timer is worth a look
 * @needed: T of the states, then of the tick
 */
struct teo_table {
	int nr_states;
	int deep;
	s32 needed[TEO_COLUMNS];
};

/**
 * struct teo_row - what is known of one situation
 * @in_vain: sum of the idle times for which the tick is kept in vain
 * @score: decaying mean of the gains, per column but that of state 0
 * @events: number of idle times seen, as far as their weight depends on it
 *
 * A new row has scores of 0, with which no state is worth entering. Otherwise the
 * first idle time of each row would be spent in the deepest state.
 */
struct teo_row {
	s64 in_vain;
	s32 score[TEO_COLUMNS];
	u8 events;
};

/**
 * struct teo_pending - a situation whose idle time is not over
 * @start: when the decision in it was taken
 * @row: the situation
 */
struct teo_pending {
	u64 start;
	struct teo_row *row;
};

/**
 * struct teo_cpu - what the governor knows about a CPU
 * @asked: when the last decision was taken
 * @sleep: sleep length at the last decision, KTIME_MAX if not asked for
 * @measured: how long the CPU stayed in the last decision's state, exit included
 * @end: how the last stay ended (enum teo_end)
 * @nets: stays in a row that ended with TEO_NET
 * @nr_pending: number of situations in @pending
 * @pending: situations of the present idle time
 * @table: the idle states
 * @row: what was learned, per class of the idle time before and how it ended
 *
 * Only used by the CPU's idle task, or while its device is disabled.
 */
struct teo_cpu {
	u64 asked;
	s64 sleep;
	s64 measured;
	u8 end;
	u8 nets;
	u8 nr_pending;
	struct teo_pending pending[TEO_PENDING];
	struct teo_table table;
	struct teo_row row[TEO_CLASSES][TEO_END_NR];
};

/* C1 of ACPI may need nothing, but no idle time is below 1 us. 3 T is to fit into an s32. */
static inline s32 teo_needed(s64 needed)
{
	return clamp_t(s64, needed, NSEC_PER_USEC, NSEC_PER_SEC / 2);
}

/* Start with nothing learned, and with the states of @drv and the tick's period. */
static inline void teo_init(struct teo_cpu *cpu, const struct cpuidle_driver *drv,
			    s64 tick)
{
	const struct cpuidle_state *s = drv->states;
	struct teo_table *table = &cpu->table;
	int i;

	memset(cpu, 0, sizeof(*cpu));
	for (i = 0; i < drv->state_count; i++)
		table->needed[i] = teo_needed(s[i].target_residency_ns +
					      ((s[i].exit_latency_ns * TEO_PRICE) >> 2));
	table->needed[i] = teo_needed(tick >> TEO_TICK_SHIFT);
	table->nr_states = i;

	for (i = 1; i < drv->state_count; i++)
		if (s[i].target_residency_ns >= RESIDENCY_THRESHOLD_NS)
			break;
	table->deep = i;
}

/*
 * From T on a state is worth its exit, and each further ns gains the same: the gain is
 * d - T, a loss if the idle time d is shorter.
 */
static inline s32 teo_gain(s32 needed, s64 idle)
{
	return min(idle, (s64)TEO_MOST * needed) - needed;
}

/* Count an event. Return: its weight, as a shift; the first ones weigh more. */
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
 * @timer: the timer ended it
 *
 *	score' = min(score + (gain - score) / 2^shift, T / 2)
 *
 * What is learned is when an idle time ends without a timer. If the timer ended
 * it, that would have been at an unknown later time: no score falls. With the limit
 * of T / 2, six idle times of half of T undo a score, however many long ones led to it.
 */
static inline void teo_learn(struct teo_row *row, const struct teo_table *table,
			     s64 idle, bool timer)
{
	int shift = teo_count_event(&row->events), i;

	if (idle >> 1 >= table->needed[table->nr_states - 1])
		row->in_vain = max_t(s64, row->in_vain - idle, 0);
	else if (!timer && idle >= table->needed[table->nr_states])
		row->in_vain += idle;

	for (i = 1; i <= table->nr_states; i++) {
		s32 needed = table->needed[i];
		s32 more = teo_gain(needed, idle) - row->score[i];

		if (!timer || more > 0)
			row->score[i] = min(row->score[i] + (more >> shift), needed / 2);
	}
}

/**
 * teo_choose - choose a state
 * @drv: the driver
 * @dev: the CPU, whose usage says which states are disabled
 * @latency_req: latency limit
 * @row: the situation, or NULL if the times alone decide
 * @sleep: time to the next timer event but the tick
 * @most: time until something ends the stay, which may be the tick
 *
 * Nobody waits for a tick, so a state that the tick ends needs its target residency
 * alone. Other work rarely waits for a task that a timer wakes, so there the exit
 * latency counts once.
 *
 * Return: the deepest state that is enabled, within the limit, fits and is worth it;
 * else the shallowest that is enabled.
 */
static inline int teo_choose(const struct cpuidle_driver *drv,
			     const struct cpuidle_device *dev, s64 latency_req,
			     const struct teo_row *row, s64 sleep, s64 most)
{
	int shallowest = 0, i;

	for (i = drv->state_count - 1; i >= 0; i--) {
		const struct cpuidle_state *s = &drv->states[i];

		if (dev->states_usage[i].disable)
			continue;
		if (s->exit_latency_ns <= latency_req &&
		    s->target_residency_ns + s->exit_latency_ns <= sleep &&
		    s->target_residency_ns <= most && (!row || row->score[i] > 0))
			return i;
		shallowest = i;
	}
	return shallowest;
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
 * ===========================================  =======  ==============================
 * the first that is true                       tick     state
 * ===========================================  =======  ==============================
 * it is stopped                                stopped  worth it, fits before the timer
 * the timer is near, or a stop not worth it    kept     ... and before the tick
 * nothing deeper fits, or in vain for long     stop     worth it, fits before the timer
 * that state needs more than a tick period     stop     the deepest before the timer
 * otherwise                                    kept     worth it, before timer and tick
 * ===========================================  =======  ==============================
 *
 * Return: the state.
 */
static inline int teo_decide(const struct cpuidle_driver *drv,
			     const struct cpuidle_device *dev, s64 latency_req,
			     const struct teo_row *row, const struct teo_table *table,
			     s64 sleep, s64 delta, s64 tick, bool *stop)
{
	int state = teo_choose(drv, dev, latency_req, row, sleep, sleep), deepest;

	if (*stop)
		return state;
	if (sleep < tick || (row && row->score[table->nr_states] <= 0))
		return teo_choose(drv, dev, latency_req, row, sleep, delta);

	deepest = teo_choose(drv, dev, latency_req, NULL, sleep, sleep);
	if (state == deepest || row->in_vain >= min(sleep, TEO_VAIN_MOST)) {
		*stop = !(drv->states[state].flags & CPUIDLE_FLAG_POLLING);
		return state;
	}
	if (drv->states[state].target_residency_ns > tick) {
		*stop = true;
		return deepest;
	}
	return teo_choose(drv, dev, latency_req, row, sleep, delta);
}

/* Idle times reach less than half of what a deep state needs: the timer cannot matter. */
static inline bool teo_surely_shallow(const struct teo_row *row, const struct teo_table *table)
{
	return row->score[table->deep] < -table->needed[table->deep] / 2;
}

static inline int teo_class(s64 idle)
{
	return min(fls64(idle >> 12) / 4, TEO_CLASSES - 1);
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
 * How long there was nothing to do, at most @sleep. The exit is part of @measured, but
 * the wake-up came before it. The driver's latency is the worst case, so half of it.
 */
static inline s64 teo_idle_time(s64 measured, s64 latency, s64 sleep)
{
	return min(max(measured - (latency >> 1), measured >> 1), sleep);
}

/**
 * teo_begin - learn from the last stay, and begin the next
 * @cpu: the CPU
 * @latency: exit latency of the state that the CPU was in
 * @now: the time
 *
 * Return: the situation.
 */
static inline struct teo_row *teo_begin(struct teo_cpu *cpu, s64 latency, u64 now)
{
	u64 end = cpu->asked + teo_idle_time(cpu->measured, latency, cpu->sleep);
	struct teo_row *row = &cpu->row[teo_class(end - cpu->pending[0].start)][cpu->end];

	if (cpu->end == TEO_NET) {
		cpu->nets = min(cpu->nets + 1, TEO_NETS);
	} else {
		cpu->nets = 0;
		while (cpu->nr_pending) {
			struct teo_pending *p = &cpu->pending[--cpu->nr_pending];

			teo_learn(p->row, &cpu->table, end - p->start, cpu->end == TEO_TIMER);
		}
	}

	if (cpu->nr_pending < TEO_PENDING)
		cpu->pending[cpu->nr_pending++] = (struct teo_pending){ now, row };
	/* So it stays if a task comes before the state is entered. */
	cpu->asked = now;
	cpu->measured = 0;
	cpu->end = TEO_OTHER;
	return row;
}

/**
 * teo_ended - note how a stay ended
 * @cpu: the CPU
 * @measured: how long it was, exit included
 * @net: by the tick or a time limit, and no task is to run
 */
static inline void teo_ended(struct teo_cpu *cpu, s64 measured, bool net)
{
	cpu->measured = measured;
	if (teo_timer_ended(measured, cpu->sleep))
		cpu->end = TEO_TIMER;
	else if (net)
		cpu->end = TEO_NET;
}

#endif /* _CPUIDLE_TEO_CORE_H */
