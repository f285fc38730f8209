/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hold-off: when may the performance level of a policy be changed?
 *
 * A rise by an eighth of the capacity is due at once. Any other change waits for a
 * window after the last one, and one that nobody waits for may have to settle first.
 *
 * Levels rise with utilisation. The range known to need the present one is learned from
 * requests that did; it begins a little below, so that noise does not change the level.
 *
 * Utilisation is in capacity units, with headroom; time is in ns of run queue clocks.
 * The caller serialises calls for one struct holdoff.
 */
#ifndef _KERNEL_SCHED_CPUFREQ_HOLDOFF_H
#define _KERNEL_SCHED_CPUFREQ_HOLDOFF_H

#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/time64.h>

#define HOLDOFF_URGENT	(SCHED_CAPACITY_SCALE / 8)
#define HOLDOFF_SMALL	(SCHED_CAPACITY_SCALE / 16)	/* falls by less are small */
#define HOLDOFF_NOISE	(SCHED_CAPACITY_SCALE / 128)
#define HOLDOFF_SETTLE	(20 * NSEC_PER_MSEC)

/**
 * struct holdoff - what is known of the present level
 * @since: time since when a change has been wanted; 0 if none is
 * @set: utilisation that the level was chosen for
 * @lo: lowest utilisation that needs no change
 * @hi: highest such; below @lo if none is known
 */
struct holdoff {
	u64	since;
	u32	set;
	u32	lo;
	u32	hi;
};

/* The level was chosen for @util. */
static inline void holdoff_set(struct holdoff *h, u32 util)
{
	*h = (struct holdoff){ .set = util, .hi = util, .lo = util - min(util, HOLDOFF_NOISE) };
}

/* @util needs no change. */
static inline void holdoff_same(struct holdoff *h, u32 util)
{
	h->lo = min(h->lo, util);
	h->hi = max(h->hi, util);
	h->since = 0;
}

/* Is a fall to @util small? */
static inline bool holdoff_small(const struct holdoff *h, u32 util)
{
	return util < h->set && util + HOLDOFF_SMALL > h->set;
}

/* May the level be changed for @util, which has to be wanted for @settle ns? */
static inline bool holdoff_due(struct holdoff *h, u64 now, bool window_over, u32 util, s64 settle)
{
	if (util >= h->set + HOLDOFF_URGENT)
		return true;
	if (!window_over)
		return false;
	h->since = h->since ?: now;
	/* Clocks of CPUs differ: the wait may have begun later than now. */
	return !settle || (s64)(now - h->since) >= settle;
}

#endif /* _KERNEL_SCHED_CPUFREQ_HOLDOFF_H */
