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
 * 9/4 of its exit latency. An idle time d gains d - T, a loss if d is below T. It
 * counts as 3 T at most, and a score is at most T / 2, so that long idle times do not
 * outweigh short ones and are soon forgotten. The governor enters the deepest state
 * whose score is positive, whose target residency and exit latency fit into the time
 * to the next timer, and whose exit latency fits into the latency limit; if there is
 * none, the shallowest.
 *
 * Counting how many idle times reach a state, and letting the majority decide, is not
 * enough: one far too short for a state then counts like one just too short, and the
 * majority may gain less than the minority loses. With the same T such bins took 11 %
 * more energy on recorded idle times.
 *
 * There are scores for each *situation*: the class of the idle time before (of four),
 * and whether its timer ended it, or the scheduler tick (or the time limit of a
 * polling state), or something else. In a new situation only the shallowest state
 * is worth entering. An idle time that the timer ended says only that nothing came
 * until then, so it lowers no score. One that the tick or a time limit ended
 * without a task to run continues: the governor is asked again, and once something
 * else ends it, its first two situations learn from the whole. After three such ends
 * in a row, or if the tick is stopped already and the timer is more than a period away,
 * the time to the timer alone decides.
 *
 * *The tick* is stopped if the next timer is at least a period away and stopping
 * gains, like a state that needs a quarter of a period. But without it a stay that
 * turns out too long lasts until the timer. So if the timer alone would choose a
 * deeper state, that one is entered if the chosen one needs more than a period, and
 * otherwise the tick is kept, until the idle times for which it was kept in vain add up
 * to the time to the timer, or to two seconds. On nohz_full CPUs, which come without a
 * tick, it is started instead of kept, but for polling.
 *
 * *The time to the next timer* costs time to look up. It is skipped, and the tick
 * kept, if idle times reach less than half of what the first state beyond the
 * shallow ones needs.
 */

#include <linux/cpuidle.h>
#include <linux/jiffies.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/tick.h>

#include "teo_core.h"

static DEFINE_PER_CPU(struct teo_cpu, teo_cpus);

/* Called by the idle loop on the CPU itself, with interrupts off. Return: the state. */
static int teo_select(struct cpuidle_driver *drv, struct cpuidle_device *dev,
		      bool *stop_tick)
{
	struct teo_cpu *cpu = this_cpu_ptr(&teo_cpus);
	s64 latency_req = cpuidle_governor_latency_req(dev->cpu);
	s64 latency = drv->states[dev->last_state_idx].exit_latency_ns;
	struct teo_row *row = teo_begin(cpu, latency, local_clock());
	bool stopped = tick_nohz_tick_stopped();
	ktime_t delta;
	int state;

	*stop_tick = stopped && !tick_nohz_full_cpu(smp_processor_id());
	cpu->sleep = KTIME_MAX;
	if (!stopped && cpu->nets < TEO_NETS && teo_surely_shallow(row, &cpu->table))
		return teo_choose(drv, dev, latency_req, row, KTIME_MAX, KTIME_MAX);

	cpu->sleep = max_t(s64, tick_nohz_get_sleep_length(&delta), 0);
	if (cpu->nets >= TEO_NETS || (*stop_tick && cpu->sleep > TICK_NSEC))
		row = NULL;

	state = teo_decide(drv, dev, latency_req, row, &cpu->table, cpu->sleep, delta,
			   TICK_NSEC, stop_tick);
	/* A nohz_full CPU has no tick: one is to end a stay that turns out too long. */
	if (stopped && !*stop_tick && !(drv->states[state].flags & CPUIDLE_FLAG_POLLING))
		tick_nohz_idle_restart_tick();
	return state;
}

/* This delays the exit from idle: all that can wait is left to the next decision. */
static void teo_reflect(struct cpuidle_device *dev, int state)
{
	bool got_tick = tick_nohz_idle_got_tick();

	dev->last_state_idx = state;
	teo_ended(this_cpu_ptr(&teo_cpus), dev->last_residency_ns,
		  (got_tick || dev->poll_time_limit) && !need_resched());
	dev->poll_time_limit = false;
}

/* Also called after the states have changed. */
static int teo_enable_device(struct cpuidle_driver *drv,
			     struct cpuidle_device *dev)
{
	teo_init(per_cpu_ptr(&teo_cpus, dev->cpu), drv, TICK_NSEC);
	dev->last_state_idx = 0;	/* the last governor may have left -1 */

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
