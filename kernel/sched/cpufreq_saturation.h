/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a CPU needs that is never idle.
 *
 * Invariant utilisation is time scaled by the CPU's speed, so that of a CPU which
 * is always busy says no more than how fast the CPU has been, and climbs the
 * slower the slower the CPU is. All that is known is that more is needed than was
 * given. So twice of it is asked for, and again at each tick until there is no
 * more to be had or the CPU idles.
 *
 * Utilisation and capacity are in capacity units, time is in ns of the CPU's run
 * queue clock. Calls for one CPU are serialised by the caller.
 */
#ifndef _KERNEL_SCHED_CPUFREQ_SATURATION_H
#define _KERNEL_SCHED_CPUFREQ_SATURATION_H

#include <linux/minmax.h>
#include <linux/types.h>

/* A task that runs no longer than it used to is waited for so much longer */
#define SATURATION_PATIENCE	8

/**
 * struct saturation - how long a CPU has been busy, and what that asks for
 * @since: no later than this it was seen idle, or asked for more
 * @floor: utilisation that is asked for at least; 0 for none
 */
struct saturation {
	u64	since;
	u32	floor;
};

/**
 * saturation_idle - the CPU is idle, or was since the last call
 * @s: the CPU's state
 * @time: now
 */
static inline void saturation_idle(struct saturation *s, u64 time)
{
	s->since = time;
	s->floor = 0;
}

/**
 * saturation_tick - a tick found the CPU busy
 * @s: the CPU's state
 * @time: now
 * @wait: ns that a CPU is busy for before it counts as saturated
 * @longer: its task has been running for longer than it used to
 * @given: capacity that it had since the last tick
 * @max: its capacity at the highest frequency
 */
static inline void saturation_tick(struct saturation *s, u64 time, u64 wait, bool longer,
				   u32 given, u32 max)
{
	if (!longer)
		wait *= SATURATION_PATIENCE;
	if (s->floor || (s64)(time - s->since) >= (s64)wait)
		s->floor = max(s->floor, min(2 * given, max));
}

#endif /* _KERNEL_SCHED_CPUFREQ_SATURATION_H */
