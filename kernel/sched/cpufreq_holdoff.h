/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hold-off: does utilization need another performance level, and has it for long enough?
 *
 * The range of utilization that needs the present level begins a little below what the
 * level was chosen for, so that noise does not change it, and grows by requests that
 * needed no change. It is valid in one unit only: the capacity of the CPU, if utilization
 * is frequency-invariant.
 *
 * Utilization is in capacity units, with headroom; time is in ns of run queue clocks.
 * The caller serialises calls for one struct holdoff.
 */
#ifndef _KERNEL_SCHED_CPUFREQ_HOLDOFF_H
#define _KERNEL_SCHED_CPUFREQ_HOLDOFF_H

#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/time64.h>

#define HOLDOFF_SMALL(unit)	((unit) / 16)	/* smaller rises are delayed */
#define HOLDOFF_LAST(unit)	((unit) / 32)	/* a CPU that needs all but this gets all */
#define HOLDOFF_NOISE(unit)	((unit) / 64)
#define HOLDOFF_SETTLE		(10 * NSEC_PER_MSEC)

/**
 * struct holdoff - what is known of the present level
 * @since: time since when a small rise has been needed; 0 if none
 * @unit: capacity that is the unit of @lo and @end; 0 if utilization is not invariant
 * @lo: lowest utilization that needs no change
 * @end: lowest utilization above @lo that needs a change
 */
struct holdoff {
	u64	since;
	u32	unit;
	u32	lo;
	u32	end;
};

/* Start with an unknown level, or a new one; from now on the unit is @unit. */
static inline void holdoff_forget(struct holdoff *h, u32 unit)
{
	h->since = 0;
	h->unit = unit;
	h->lo = U32_MAX;
	h->end = 0;
}

/* Is @util known to need no change? */
static inline bool holdoff_has(const struct holdoff *h, u32 util)
{
	return util >= h->lo && util < h->end;
}

/*
 * The level is right for what needs @first to @last. So it is for less by noise, if it was
 * chosen for that or a limit gives no more than @first.
 */
static inline void holdoff_add(struct holdoff *h, u32 first, u32 last)
{
	if (!h->end || first < last)
		first -= min(first, HOLDOFF_NOISE(h->unit));
	h->lo = min(h->lo, first);
	h->end = last < h->unit ? max(h->end, last + 1) : U32_MAX;
}

/* A small rise is needed: has it been needed for long enough? */
static inline bool holdoff_settled(struct holdoff *h, u64 now)
{
	h->since = h->since ?: now;
	/* Clocks of CPUs differ: the delay may have begun later than now. */
	return (s64)(now - h->since) >= HOLDOFF_SETTLE;
}

#endif /* _KERNEL_SCHED_CPUFREQ_HOLDOFF_H */
