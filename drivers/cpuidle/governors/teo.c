// SPDX-License-Identifier: GPL-2.0
/*
 * Timer events oriented CPU idle governor
 */

/**
 * DOC: teo-description
 *
 * A CPU that goes idle knows when its next timer is due, but not whether
 * something else comes first. The governor learns that: for each idle state it
 * keeps a *score*, the decaying mean of what entering the state would have gained.
 *
 * The target residency of a state is where it breaks even with the next shallower
 * one in energy. The exit latency costs more than that: the work that woke the
 * CPU waits, other work waits for that work, and cores and package draw power
 * meanwhile. So a state needs an idle time T, which is its target residency plus
 * 9/4 of its exit latency. An idle time d gains (d - T) / T, a loss if d is below
 * T. It counts as 3 T at most, so that one long idle time does not outweigh many
 * short ones. A score is at most 1/2, so that many long ones are soon forgotten. The
 * governor enters the deepest state whose score is positive, whose target residency
 * and exit latency fit into the time to the next timer, and whose exit latency fits
 * into the latency limit; if there is none, the shallowest.
 *
 * There are scores for each *situation*: the class of the idle time before, and
 * whether its timer ended it, or the scheduler tick (or the time limit of a
 * polling state), or something else. In a new situation only the shallowest state
 * is worth entering. An idle time that the timer ended says only that nothing came
 * until then, so it lowers no score. One that the tick or a time limit ended
 * without a task to run continues: the governor is asked again, and once something
 * else ends it, all decisions since its beginning learn from the whole.
 *
 * *The tick* is stopped if the next timer is at least a period away and stopping
 * gains, like a state that needs a quarter of a period. It ends a stay that turns out
 * too long, so it is kept while a state deeper than the one that is entered could
 * become worth it before the timer. A tick for nothing costs, too: it is stopped once
 * idle times that were as expected, less the longer ones, add up to the time to the
 * timer, or to two seconds. If the state that is entered needs more than a tick period,
 * the time to the timer alone decides instead, as it does after ticks or time limits in
 * a row (at least three, and as many as there are ticks in what the deepest state needs),
 * or if the tick is stopped already and the timer is more than a period away. On
 * nohz_full CPUs that is always so; there what was learned decides, and a stay that is
 * too long lasts until the next interrupt.
 *
 * *The exit latency* of the driver is the worst case, often two or three times
 * what is seen. It is part of the measured idle time, so the governor observes it
 * where a timer woke the CPU: the timer says when. Until then the driver's counts.
 *
 * *The time to the next timer* costs time to look up. It is skipped, and the tick
 * retained, if idle times reach less than half of what the first state beyond the
 * shallow ones needs, or if the latency limit admits polling alone.
 */

#include <linux/cpuidle.h>
#include <linux/jiffies.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/tick.h>

#include "teo_core.h"

/* How an idle time ended, as far as that predicts the next one. */
enum teo_end {
	TEO_END_OTHER,
	TEO_END_TIMER,
	TEO_END_SAFETY_NET,	/* own tick or time limit, no task: it continues */
	TEO_END_NR
};

#define TEO_ROWS		(TEO_CLASSES * TEO_END_NR)

/* Situations of one idle time that are remembered. */
#define TEO_PENDING		5

/**
 * struct teo_pending - a situation whose idle time is not over
 * @start: when the first decision in it was taken
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
 * @delta: time to the next timer event, tick included, at that time
 * @measured: how long the CPU stayed in the last decision's state
 * @deep: first column that is not shallow
 * @nr_pending: number of situations in @pending
 * @safety_nets: wake-ups in a row by the own tick or a time limit
 * @nets: after so many of them only the timer counts
 * @last_class: class of the last idle time, or of the present one after a tick
 * @end: how the last idle time ended
 * @reflected: the last decision was carried out
 * @pending: situations to learn for when the idle time is over
 * @latency: observed exit latency per state, in ns
 * @table: the idle states
 * @row: one per situation
 *
 * Only used by the CPU's idle task, or while its device is disabled.
 */
struct teo_cpu {
	u64 asked;
	s64 sleep;
	s64 delta;
	s64 measured;
	u8 deep;
	u8 nr_pending;
	u8 safety_nets;
	u8 nets;
	u8 last_class;
	u8 end;
	bool reflected;
	struct teo_pending pending[TEO_PENDING];
	s32 latency[CPUIDLE_STATE_MAX];
	struct teo_table table;
	struct teo_row row[TEO_ROWS];
};

static DEFINE_PER_CPU(struct teo_cpu, teo_cpus);

static void teo_note_decision(struct teo_cpu *cpu, u64 now, struct teo_row *row)
{
	struct teo_pending *p = &cpu->pending[cpu->nr_pending];

	cpu->asked = now;
	if (cpu->nr_pending == TEO_PENDING || (cpu->nr_pending && p[-1].row == row))
		return;
	cpu->nr_pending++;
	*p = (struct teo_pending){ now, row };
}

/* The idle time is over: all situations in it learn how long it still was. */
static void teo_learn_all(struct teo_cpu *cpu, u64 end, bool timer)
{
	while (cpu->nr_pending) {
		const struct teo_pending *p = &cpu->pending[--cpu->nr_pending];

		teo_learn(p->row, &cpu->table, end - p->start, timer);
	}
}

/* An exit that a timer event caused, due @due ns after the entry. */
static void teo_observe_latency(struct teo_cpu *cpu, int state, s64 due,
				s64 worst)
{
	cpu->latency[state] = teo_track_latency(cpu->latency[state],
						cpu->measured - due, worst);
}

/* Learn from the result of the last decision. */
static void teo_update(struct teo_cpu *cpu, struct cpuidle_driver *drv,
		       int state)
{
	s64 worst = drv->states[state].exit_latency_ns;
	u64 first = cpu->pending[0].start, last = cpu->asked;
	s64 idle = teo_idle_time(cpu->measured, cpu->latency[state], cpu->sleep);

	if (cpu->end == TEO_END_TIMER) {
		teo_observe_latency(cpu, state, cpu->sleep, worst);
		teo_learn_all(cpu, last + idle, true);
	} else if (cpu->end == TEO_END_OTHER) {
		teo_learn_all(cpu, last + idle, false);
	} else if (cpu->delta < cpu->measured) {
		teo_observe_latency(cpu, state, cpu->delta, worst);
	}
	cpu->last_class = teo_class(idle + last - first);
}

/*
 * A task came before the state was entered, or the driver refused: an idle time of
 * 0. Learn from it, or a CPU that always gets work while it stops the tick would
 * stop it for ever.
 */
static noinline void teo_not_entered(struct teo_cpu *cpu)
{
	u64 first = cpu->pending[0].start, last = cpu->asked;

	cpu->end = TEO_END_OTHER;
	cpu->safety_nets = 0;
	teo_learn_all(cpu, last, false);
	cpu->last_class = teo_class(last - first);
}

static void teo_catch_up(struct teo_cpu *cpu, struct cpuidle_driver *drv,
			 struct cpuidle_device *dev)
{
	if (cpu->reflected) {
		cpu->reflected = false;
		teo_update(cpu, drv, dev->last_state_idx);
	} else if (cpu->nr_pending) {
		teo_not_entered(cpu);
	}
}

/*
 * With the tick stopped, only the next timer is sure to end the stay in a state
 * that is too shallow. If it is far away, let it alone decide. A nohz_full CPU never
 * has a tick and often no timer: it would enter the deepest state always. It is set
 * apart for latency, so there the stay may be too long.
 */
static bool teo_trust_timer(const struct teo_cpu *cpu, bool tick_stopped)
{
	return cpu->safety_nets >= cpu->nets ||
	       (tick_stopped && cpu->sleep > TICK_NSEC &&
		!tick_nohz_full_cpu(smp_processor_id()));
}

/* Polling needs no timer: it ends by itself, and keeps the tick. */
static bool teo_only_polls(const struct cpuidle_driver *drv,
			   const struct cpuidle_device *dev, s64 latency_req)
{
	return latency_req < drv->states[1].exit_latency_ns &&
	       !dev->states_usage[0].disable &&
	       (drv->states[0].flags & CPUIDLE_FLAG_POLLING);
}

/* To look up the next timer costs time: is it needed? */
static bool teo_needs_timer(const struct teo_cpu *cpu,
			    const struct cpuidle_driver *drv,
			    const struct cpuidle_device *dev, s64 latency_req,
			    const struct teo_row *row)
{
	if (tick_nohz_tick_stopped())
		return true;
	if (teo_only_polls(drv, dev, latency_req))
		return false;
	return cpu->safety_nets >= cpu->nets ||
	       !teo_surely_shallow(row, cpu->deep);
}

/* The sleep length is known: decide on the tick, and choose. */
static int teo_select_by_timer(struct teo_cpu *cpu, struct cpuidle_driver *drv,
			       struct cpuidle_device *dev, s64 latency_req,
			       const struct teo_row *row, bool *stop_tick)
{
	bool tick_stopped = tick_nohz_tick_stopped();
	bool stop = tick_stopped;
	ktime_t delta;
	int state;

	cpu->sleep = max_t(s64, tick_nohz_get_sleep_length(&delta), 0);
	cpu->delta = delta;
	if (teo_trust_timer(cpu, tick_stopped))
		row = NULL;

	state = teo_decide(drv, dev, latency_req, row, &cpu->table, cpu->sleep,
			   cpu->delta, TICK_NSEC, &stop);
	if (!stop || (drv->states[state].flags & CPUIDLE_FLAG_POLLING))
		*stop_tick = tick_stopped;
	return state;
}

/* Called by the idle loop on the CPU itself, with interrupts off. Return: the state. */
static int teo_select(struct cpuidle_driver *drv, struct cpuidle_device *dev,
		      bool *stop_tick)
{
	struct teo_cpu *cpu = this_cpu_ptr(&teo_cpus);
	s64 latency_req = cpuidle_governor_latency_req(dev->cpu);
	u64 now = local_clock();
	struct teo_row *row;

	teo_catch_up(cpu, drv, dev);
	row = &cpu->row[cpu->last_class * TEO_END_NR + cpu->end];
	teo_note_decision(cpu, now, row);

	if (teo_needs_timer(cpu, drv, dev, latency_req, row))
		return teo_select_by_timer(cpu, drv, dev, latency_req, row,
					   stop_tick);

	cpu->sleep = KTIME_MAX;
	cpu->delta = KTIME_MAX;
	*stop_tick = false;
	return teo_choose(drv, dev, latency_req, row, cpu->deep - 1, KTIME_MAX,
			  KTIME_MAX);
}

/* This delays the exit from idle: all that can wait is left to the next decision. */
static void teo_reflect(struct cpuidle_device *dev, int state)
{
	struct teo_cpu *cpu = this_cpu_ptr(&teo_cpus);
	bool got_tick = tick_nohz_idle_got_tick();

	dev->last_state_idx = state;
	cpu->reflected = cpu->nr_pending;
	cpu->measured = dev->last_residency_ns;

	if (teo_timer_ended(cpu->measured, cpu->sleep)) {
		cpu->end = TEO_END_TIMER;
		cpu->safety_nets = 0;
	} else if ((got_tick || dev->poll_time_limit) && !need_resched()) {
		cpu->end = TEO_END_SAFETY_NET;
		if (cpu->safety_nets < cpu->nets)
			cpu->safety_nets++;
	} else {
		cpu->end = TEO_END_OTHER;
		cpu->safety_nets = 0;
	}
	dev->poll_time_limit = false;
}

/* Start with nothing learned on a CPU. */
static int teo_enable_device(struct cpuidle_driver *drv,
			     struct cpuidle_device *dev)
{
	struct teo_cpu *cpu = per_cpu_ptr(&teo_cpus, dev->cpu);
	int i;

	memset(cpu, 0, sizeof(*cpu));
	teo_table_init(&cpu->table, drv, TICK_NSEC);
	cpu->deep = teo_deep_column(drv);
	cpu->nets = teo_nets(&cpu->table, TICK_NSEC);
	for (i = 0; i < drv->state_count; i++)
		cpu->latency[i] = drv->states[i].exit_latency_ns;

	return 0;
}

static struct cpuidle_governor teo_governor = {
	.name =		"teo",
	.rating =	21,	/* above menu: the default where it is built */
	.enable =	teo_enable_device,
	.select =	teo_select,
	.reflect =	teo_reflect,
};

static int __init teo_governor_init(void)
{
	return cpuidle_register_governor(&teo_governor);
}

postcore_initcall(teo_governor_init);
