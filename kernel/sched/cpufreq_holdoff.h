/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hold-off: does utilisation need another performance level, and has it for long enough?
 *
 * The range of utilisation that needs the present level begins a little below what the
 * level was chosen for, so that noise does not change it. It grows by requests that
 * needed no change, which spares later ones the look. It is known in one unit only:
 * whatever the capacity of a CPU is, if utilisation is frequency-invariant.
 *
 * Utilisation is in capacity units, with headroom; time is in ns of run queue clocks.
 * The caller serialises calls for one struct holdoff.
 */
#ifndef _KERNEL_SCHED_CPUFREQ_HOLDOFF_H
#define _KERNEL_SCHED_CPUFREQ_HOLDOFF_H

#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/time64.h>

#define HOLDOFF_SMALL(unit)	((unit) / 16)	/* rises by less are small */
#define HOLDOFF_NOISE(unit)	((unit) / 64)
#define HOLDOFF_SETTLE		(10 * NSEC_PER_MSEC)

/**
 * struct holdoff - what is known of the present level
 * @since: time since when a small rise has been wanted; 0 if none is
 * @unit: capacity that the others are in units of; 0 if nothing is known
 * @set: utilisation that the level was chosen for
 * @lo: lowest utilisation that needs no change
 * @hi: highest such
 */
struct holdoff {
	u64	since;
	u32	unit;
	u32	set;
	u32	lo;
	u32	hi;
};

/* Is anything known in units of @unit? */
static inline bool holdoff_knows(const struct holdoff *h, u32 unit)
{
	return unit && h->unit == unit;
}

/* Is @util known to need no change? */
static inline bool holdoff_has(const struct holdoff *h, u32 util)
{
	return util >= h->lo && util <= h->hi;
}

/* The level was chosen for @util. */
static inline void holdoff_set(struct holdoff *h, u32 unit, u32 util)
{
	*h = (struct holdoff){
		.unit = unit, .set = util, .hi = util,
		.lo = util - min(util, HOLDOFF_NOISE(unit)),
	};
}

/* @util needs no change. */
static inline void holdoff_same(struct holdoff *h, u32 unit, u32 util)
{
	if (h->unit != unit)
		holdoff_set(h, unit, util);
	h->lo = min(h->lo, util);
	h->hi = max(h->hi, util);
	h->since = 0;
}

/* A small rise is wanted: has it been for long enough? */
static inline bool holdoff_settled(struct holdoff *h, u64 now)
{
	h->since = h->since ?: now;
	/* Clocks of CPUs differ: the wait may have begun later than now. */
	return (s64)(now - h->since) >= HOLDOFF_SETTLE;
}

#endif /* _KERNEL_SCHED_CPUFREQ_HOLDOFF_H */
