/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hold-off: how long a change of the performance level may have to wait, by how
 * wrong the present one is.
 *
 * After a change, another one has to wait for
 *
 *	wait(error) = window * (1 - error / urgent),	0 from error = urgent on
 *
 * where the error is the distance between the utilisation that the present level
 * was chosen for and the one that is needed now. So a small correction waits for
 * the whole window, a radical change does not wait at all, and there is nothing
 * in between that a request could gain by being smaller. Rises and falls have a
 * curve each.
 *
 * A request that nobody is kept waiting by has to settle: its wait begins when
 * requests began to differ from what is set, so that one change does for all that
 * come in the meantime, and for none if they go back.
 *
 * A request that needs no change at all is by far the commonest. Levels are
 * monotone in the utilisation, so two utilisations with the same level have all
 * between them at that level too. The range known to need no change is learned
 * from the requests that turned out to need none; nothing is assumed of the steps
 * that a driver has.
 *
 * Utilisation is in capacity units (SCHED_CAPACITY_SCALE is the fastest CPU) and
 * time in ns of a clock that may differ a little between CPUs, go backwards or
 * wrap. Nothing here knows of frequencies, policies, run queues or locks: callers
 * serialise the calls for one struct holdoff.
 */
#ifndef _KERNEL_SCHED_CPUFREQ_HOLDOFF_H
#define _KERNEL_SCHED_CPUFREQ_HOLDOFF_H

#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>
#include <linux/types.h>

enum holdoff_direction { HOLDOFF_FALL, HOLDOFF_RISE };

/* What is to be done with a request */
enum holdoff_verdict {
	HOLDOFF_SAME,	/* it is known to need no change */
	HOLDOFF_HELD,	/* it has to wait */
	HOLDOFF_ACT,	/* it may be acted on now */
};

/**
 * struct holdoff_curve - wait by error, for one direction
 * @urgent: error in capacity units from which on there is no wait
 * @slope: ns of the window that each unit of error takes away
 */
struct holdoff_curve {
	u32	urgent;
	u64	slope;
};

/**
 * struct holdoff - the limiter of one performance domain
 * @last: time of the last change
 * @since: time from which on each request needed a change, if @differs
 * @window: wait of a request with an error of 0, in ns
 * @lo: lowest utilisation known to need the present level
 * @hi: highest such; below @lo if none is known
 * @asked: highest utilisation that was held since the last change; 0 for none
 * @differs: the last request that was judged needs a change that was not made
 * @set: utilisation that the present level was chosen for
 * @curve: by direction
 */
struct holdoff {
	u64			last;
	u64			since;
	u64			window;
	u32			lo;
	u32			hi;
	u32			asked;
	u32			differs;
	u32			set;
	struct holdoff_curve	curve[2];
};

/**
 * holdoff_curve_init - set a curve
 * @curve: the curve
 * @window: wait for an error of 0, in ns
 * @urgent: error from which on there is no wait; 0 if each has the whole window
 *
 * Divides, so it is for when a setting changes.
 */
static inline void holdoff_curve_init(struct holdoff_curve *curve, u64 window, u32 urgent)
{
	curve->urgent = urgent ?: U32_MAX;
	curve->slope = urgent ? div_u64(window, urgent) : 0;
}

/**
 * holdoff_wait - how long an error may have to wait after a change
 * @curve: the direction's curve
 * @window: what the curve was set with
 * @error: distance from what is set, in capacity units
 *
 * Return: ns, from @window for no error to 0 for an urgent one, never rising.
 */
static inline u64 holdoff_wait(const struct holdoff_curve *curve, u64 window, u32 error)
{
	return error >= curve->urgent ? 0 : window - error * curve->slope;
}

/** holdoff_forget - the same utilisation may need another level from now on */
static inline void holdoff_forget(struct holdoff *h)
{
	h->lo = 1;
	h->hi = 0;
}

/**
 * holdoff_set - set window and curves; keeps what was learned
 * @h: the limiter
 * @window: wait of a small error, in ns
 * @rise: urgent error of a rise, in capacity units; 0 for none
 * @fall: the same of a fall
 */
static inline void holdoff_set(struct holdoff *h, u64 window, u32 rise, u32 fall)
{
	h->window = window;
	holdoff_curve_init(&h->curve[HOLDOFF_RISE], window, rise);
	holdoff_curve_init(&h->curve[HOLDOFF_FALL], window, fall);
}

/** holdoff_start - nothing is set, asked for or known */
static inline void holdoff_start(struct holdoff *h)
{
	h->last = 0;
	h->set = 0;
	h->asked = 0;
	h->differs = 0;
	holdoff_forget(h);
}

/**
 * holdoff_over - is a wait over?
 * @h: the limiter
 * @time: now
 * @from: when the wait began
 * @wait: ns
 *
 * A clock that is a little behind the one of the beginning is of another CPU,
 * and the wait goes on; one that is behind by more than the window was set back,
 * and waiting for it to catch up could take for ever.
 */
static inline bool holdoff_over(const struct holdoff *h, u64 time, u64 from, u64 wait)
{
	s64 age = time - from;

	return age >= (s64)wait || age < -(s64)h->window;
}

static inline u32 holdoff_error(const struct holdoff *h, u32 util)
{
	return util > h->set ? util - h->set : h->set - util;
}

/** holdoff_urgent - is a request so far from what is set that it does not wait? */
static inline bool holdoff_urgent(const struct holdoff *h, u32 util)
{
	return holdoff_error(h, util) >= h->curve[util > h->set].urgent;
}

/**
 * holdoff_may_act - may a request that needs a change be acted on?
 * @h: the limiter
 * @time: now
 * @from: when its wait began: @h->last, or holdoff_since() if it has to settle
 * @util: utilisation needed
 */
static inline bool holdoff_may_act(const struct holdoff *h, u64 time, u64 from, u32 util)
{
	const struct holdoff_curve *curve = &h->curve[util > h->set];

	/* No wait is longer than the window. */
	if (holdoff_urgent(h, util) || holdoff_over(h, time, from, h->window))
		return true;

	return holdoff_over(h, time, from, holdoff_wait(curve, h->window, holdoff_error(h, util)));
}

/**
 * holdoff_since - a request needs a change: how long have requests done so?
 * @h: the limiter
 * @time: now
 *
 * Return: since when; @time if it is the first.
 */
static inline u64 holdoff_since(struct holdoff *h, u64 time)
{
	if (!h->differs) {
		h->differs = 1;
		h->since = time;
	}
	return h->since;
}

/** holdoff_agrees - what is needed now is what is set */
static inline void holdoff_agrees(struct holdoff *h)
{
	h->differs = 0;
}

/** holdoff_same - is a utilisation known to need no change? */
static inline bool holdoff_same(const struct holdoff *h, u32 util)
{
	return util >= h->lo && util <= h->hi;
}

/**
 * holdoff_ready - has a request that needs a change waited for long enough?
 * @h: the limiter
 * @time: now
 * @util: utilisation needed
 * @settle: it has to settle
 */
static inline bool holdoff_ready(struct holdoff *h, u64 time, u32 util, bool settle)
{
	return holdoff_may_act(h, time, settle ? holdoff_since(h, time) : h->last, util);
}

/**
 * holdoff_judge - what is to be done with a request
 * @h: the limiter
 * @time: now
 * @util: utilisation needed
 * @settle: it has to settle
 */
static inline enum holdoff_verdict holdoff_judge(struct holdoff *h, u64 time, u32 util,
						 bool settle)
{
	if (holdoff_same(h, util)) {
		holdoff_agrees(h);
		return HOLDOFF_SAME;
	}

	if (holdoff_ready(h, time, util, settle))
		return HOLDOFF_ACT;
	holdoff_since(h, time);
	return HOLDOFF_HELD;
}

/**
 * holdoff_hold - remember a request that has to wait
 * @h: the limiter
 * @util: utilisation needed
 *
 * Return: true if it is the highest one since the last change.
 */
static inline bool holdoff_hold(struct holdoff *h, u32 util)
{
	if (util <= h->asked)
		return false;
	h->asked = util;
	return true;
}

/**
 * holdoff_claim - what to judge and to act on
 * @h: the limiter
 * @util: utilisation needed now
 * @gone: what asked for the highest held request may be gone
 *
 * Return: the highest utilisation asked for since the last change; @util if
 * that is higher, or if @gone, which drops the held request.
 */
static inline u32 holdoff_claim(struct holdoff *h, u32 util, bool gone)
{
	if (gone)
		h->asked = 0;
	return max(util, h->asked);
}

/**
 * holdoff_confirm - limits have changed, and the level is right nevertheless
 * @h: the limiter
 * @util: utilisation needed
 *
 * What the level was chosen for before may need another one within the new limits.
 */
static inline void holdoff_confirm(struct holdoff *h, u32 util)
{
	h->set = util;
	h->lo = util;
	h->hi = util;
	h->asked = 0;
	holdoff_agrees(h);
}

/**
 * holdoff_sent - the level was changed
 * @h: the limiter
 * @time: now
 * @util: utilisation that the new level is for
 */
static inline void holdoff_sent(struct holdoff *h, u64 time, u32 util)
{
	h->last = time;
	holdoff_confirm(h, util);
}

/**
 * holdoff_learn - a utilisation turned out to need no change
 * @h: the limiter
 * @util: the utilisation
 */
static inline void holdoff_learn(struct holdoff *h, u32 util)
{
	if (h->lo > h->hi)
		h->lo = h->hi = util;
	h->lo = min(h->lo, util);
	h->hi = max(h->hi, util);
	holdoff_agrees(h);
	if (h->asked <= util)
		h->asked = 0;
}

/*
 * Window from cost: if a change costs so many ns and changes may take so many
 * per mille of one CPU's time, they have to be that far apart.
 */

#define HOLDOFF_COST_SHIFT	3	/* weight of a sample: 1/8 */
#define HOLDOFF_COST_SAMPLES	8	/* before they count for anything */
#define HOLDOFF_COST_EVERY	32	/* changes to a sample, after these */
#define HOLDOFF_WINDOW_MAX	(10 * NSEC_PER_MSEC)

/**
 * struct holdoff_cost - what a change costs
 * @mean: smoothed, in ns
 * @used: what the window was made of; 0 if it was not made of a cost
 * @changes: changes so far; wraps
 */
struct holdoff_cost {
	u32	mean;
	u32	used;
	u32	changes;
};

/** holdoff_cost_due - count a change: is it to be measured? */
static inline bool holdoff_cost_due(struct holdoff_cost *cost)
{
	u32 changes = cost->changes++;

	return changes < HOLDOFF_COST_SAMPLES || !(changes % HOLDOFF_COST_EVERY);
}

/**
 * holdoff_cost_add - take in a measured cost
 * @cost: the cost
 * @ns: measured; negative ones (the clock was set back) are ignored
 *
 * One sample cannot do more than double the mean: whatever interrupted it (a
 * hypervisor, SMM) is not a cost of the change.
 */
static inline void holdoff_cost_add(struct holdoff_cost *cost, s64 ns)
{
	u32 sample;

	if (ns < 0)
		return;
	sample = min_t(s64, ns, NSEC_PER_SEC);
	if (!cost->mean) {
		cost->mean = max(sample, 1U);
		return;
	}
	sample = min(sample, cost->mean << HOLDOFF_COST_SHIFT);
	cost->mean = cost->mean - (cost->mean >> HOLDOFF_COST_SHIFT) +
		     (sample >> HOLDOFF_COST_SHIFT);
	cost->mean = max(cost->mean, 1U);
}

/** holdoff_cost_moved - is the cost far (1/8) from what the window was made of? */
static inline bool holdoff_cost_moved(const struct holdoff_cost *cost)
{
	u32 apart = cost->mean > cost->used ? cost->mean - cost->used : cost->used - cost->mean;

	return cost->changes >= HOLDOFF_COST_SAMPLES && apart > cost->used >> 3;
}

/**
 * holdoff_cost_window - the window that a budget makes of a cost
 * @cost: ns of a change
 * @permille: of one CPU's time that changes may take, at least 1
 * @floor: ns, lowest window
 *
 * Return: ns
 */
static inline u64 holdoff_cost_window(u32 cost, u32 permille, u64 floor)
{
	u64 window = div_u64((u64)cost * 1000, permille);

	return max(floor, min_t(u64, window, HOLDOFF_WINDOW_MAX));
}

#endif /* _KERNEL_SCHED_CPUFREQ_HOLDOFF_H */
