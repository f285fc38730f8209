/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Saturation: what does a CPU need that does not idle?
 *
 * Invariant utilisation is busy time scaled by speed. That of a CPU which is always
 * busy says how fast the CPU has been, not how fast it should be. All that is known
 * is that it needs more than it was given: ask for twice of it, and again at each
 * tick until there is no more to be had, or the CPU idles.
 *
 * A CPU is saturated if it is busy for longer than some ticks, and for half as long
 * again as it was lately: periodic loads are known to their utilisation.
 *
 * Utilisation and capacity are in capacity units, time is in ns of the run queue
 * clock. The caller serialises the calls for one struct saturation.
 */
#ifndef _KERNEL_SCHED_CPUFREQ_SATURATION_H
#define _KERNEL_SCHED_CPUFREQ_SATURATION_H

#include <linux/minmax.h>
#include <linux/types.h>

#define SATURATION_FORGET	4	/* shift: what was usual decays by 1/16 of the time */
#define SATURATION_PATIENCE	4	/* what is usual is waited for no longer, in waits */

/**
 * struct saturation - how long a CPU has been busy, and what that asks for
 * @since: when it was last seen idle
 * @busy: for how long it had been busy at the last tick since then
 * @usual: for how long it was busy lately
 * @floor: utilisation that is asked for at least; 0 for none
 */
struct saturation {
	u64	since;
	u64	busy;
	u64	usual;
	u32	floor;
};

/**
 * saturation_idle - the CPU has been idle
 * @s: the CPU's state
 * @time: when it was idle last
 */
static inline void saturation_idle(struct saturation *s, u64 time)
{
	u64 forget = (time - s->since) >> SATURATION_FORGET;

	s->usual = max(s->busy, s->usual - min(s->usual, forget));
	s->since = time;
	s->busy = 0;
	s->floor = 0;
}

/**
 * saturation_tick - a tick found the CPU busy
 * @s: the CPU's state
 * @time: now
 * @wait: ns that the CPU is busy for, at least, before it counts as saturated
 * @given: capacity that it had since the last tick
 * @max: its capacity at the highest frequency
 *
 * Return: does it ask for more than before?
 */
static inline bool saturation_tick(struct saturation *s, u64 time, u64 wait, u32 given, u32 max)
{
	u64 busy = time - s->since;
	u32 floor = min(2 * given, max);

	s->busy = min(busy, SATURATION_PATIENCE * wait);
	if (floor <= s->floor || (!s->floor && busy < max(wait, s->usual + (s->usual >> 1))))
		return false;

	s->floor = floor;
	return true;
}

#endif /* _KERNEL_SCHED_CPUFREQ_SATURATION_H */
