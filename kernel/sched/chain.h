/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Chains: for what share of the time did a task, or those it waits for, have work?
 *
 * Two tasks that take turns look half idle each, yet one of them always has work. If a
 * task wakes a peer, sleeps, and is woken by the resulting reply, its sleep counts as work,
 * minus the time in which its peers had no work either.
 *
 *	A  ====.......====.......====		= has work
 *	B  ....===----....===----....		- waits for a timer or device: rest
 *	C  .......................===		. waits for the next one
 *
 * Each task counts the rest of its chain. A waker hands its count to the wakee: its growth
 * since the two counts last met is the time for which the chain rested meanwhile. It hands
 * over its logical clock as well, which each wake-up advances by one. If the wakee woke
 * somebody, and the waker's clock is ahead of its own, then its wake-up has come round:
 * the chain is a loop. No task knows others, so nothing has to be cleared when one ends.
 *
 * The share is an average like util_avg, invariant to frequency and capacity: work at a
 * low clock counts for less, and the next rest makes up for it. Without a rest for long,
 * time alone counts, and the chain requests the highest clock: it needs more than it has,
 * by an unknown amount.
 *
 * Time is in units of 1024 ns of run queue clocks. A chain without news for a second is
 * forgotten, so that differences of 32-bit numbers do not wrap.
 */
#ifndef _KERNEL_SCHED_CHAIN_H
#define _KERNEL_SCHED_CHAIN_H

#include <linux/bits.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/sched/chain.h>

#define CHAIN_HALF_SHIFT	15
#define CHAIN_HALF	((u32)BIT(CHAIN_HALF_SHIFT))	/* half-life of the average: 34 ms */
#define CHAIN_LAG	(CHAIN_HALF / 4)	/* with so much time lost it needs all: 8 ms */
#define CHAIN_GONE	(32 * CHAIN_HALF)	/* after that a chain is forgotten: 1.07 s */
#define CHAIN_LENGTH	64			/* longest loop, in wake-ups */
#define CHAIN_TRIES	2			/* wake-ups that do not close a loop end it */
#define CHAIN_REST	(4 * CHAIN_HALF)	/* so long a rest ends it, in 1 or more parts */
#define CHAIN_GRAIN	64			/* less work is counted with the next */
#define CHAIN_WAKE	256			/* an idle CPU may take this long to wake */
#define CHAIN_OWN	8			/* limit of requests: 8 times a utilization */
#define CHAIN_HOLD	(HZ / 30 + 1)		/* a CPU's request expires, in jiffies */
#define CHAIN_UTIL_SHIFT	20
#define CHAIN_FULL	((u32)SCHED_CAPACITY_SCALE << CHAIN_UTIL_SHIFT)

/* @share after half-lives of @time: 2^-f is 1 - f * (11 - 3 * f) / 16, to 0.005 */
static inline u32 chain_decay(u32 share, u32 time)
{
	u32 f = time & (CHAIN_HALF - 1);

	if (time >> CHAIN_HALF_SHIFT >= 32)
		return 0;
	share >>= time >> CHAIN_HALF_SHIFT;
	return share - ((u64)share * f * (11 * CHAIN_HALF - 3 * f) >> (2 * CHAIN_HALF_SHIFT + 4));
}

/**
 * chain_count - bring the average up to date
 * @c: a chain after chain_run() or chain_woken()
 * @slack: what that returned
 * @capacity: of the CPU, at its present frequency
 */
static inline void chain_count(struct sched_chain *c, u32 slack, u32 capacity)
{
	u32 done = (u64)c->ran * capacity >> SCHED_CAPACITY_SHIFT;
	u32 lag = c->lag + c->ran - done;

	c->lag = min(lag, CHAIN_LAG);
	c->util = CHAIN_FULL - chain_decay(CHAIN_FULL - c->util, done + lag - c->lag);
	c->ran = 0;
	if (slack) {
		c->util = chain_decay(c->util, slack + c->lag);
		c->lag = 0;
	}
}

/* Is there enough for chain_count()? */
static inline bool chain_counts(const struct sched_chain *c, u32 slack)
{
	return slack || c->ran >= CHAIN_GRAIN;
}

/* Advance @c->time to @now, if that is later: clocks of CPUs differ. Return: by how much */
static inline u32 chain_pass(struct sched_chain *c, u64 now)
{
	u64 passed = max_t(s64, now - c->time, 0);

	c->time += passed;
	if (passed < CHAIN_GONE)
		return passed;
	c->util = 0;
	c->loop = 0;
	c->issued = false;
	return CHAIN_GONE;
}

/**
 * chain_run - the task has been on a run queue until @now
 * @c: the task's chain
 * @now: present time
 * @exec: for how long the task has run since it began
 *
 * Time in which others ran, or in which the task was throttled, is rest.
 *
 * Return: for how long the chain rested
 */
static inline u32 chain_run(struct sched_chain *c, u64 now, u32 exec)
{
	u32 passed = chain_pass(c, now), work = 0;

	if (passed < CHAIN_GONE)
		work = min(passed, exec - c->exec + CHAIN_WAKE);
	c->exec = exec;
	c->ran += work;
	c->rest += passed - work;
	return passed - work;
}

/**
 * chain_new - a task begins, as if its parent had woken it
 * @c: a copy of the parent's chain
 * @now: present time
 *
 * The child keeps the parent's average and loop: often the parent waits for its work. What
 * the parent lost outside of a loop the child does not make up for.
 * A child that ends soon, or does something else, may ask for too much.
 */
static inline void chain_new(struct sched_chain *c, u64 now)
{
	chain_pass(c, now);
	if (!c->loop)
		c->lag = 0;
	c->exec = 0;
	c->ran = 0;
	c->clock++;
	c->issued = false;
}

/**
 * chain_hand - a sleeping task is woken by another
 * @w: the wakee's chain; chain_woken() follows
 * @rest: the waker's
 * @clock: the waker's
 *
 * Return: the wakee takes over what the waker hands it. In a loop it takes nothing from a
 * stranger, whose wake-ups only end the loop if there are two in a row.
 */
static inline bool chain_hand(struct sched_chain *w, u32 rest, u32 clock)
{
	s32 ahead = clock - w->clock, slack = rest - w->rest;
	bool near = ahead >= -1 && ahead < CHAIN_LENGTH;

	if (near && ahead > 0 && w->issued) {
		w->loop = CHAIN_TRIES;
		w->issued = false;
	} else if (w->loop) {
		w->loop--;
		if (!near)
			return false;
	}
	w->slack = max(slack, 0);
	w->rest = rest;
	w->clock = clock + 1;
	w->handed = true;
	return true;
}

/**
 * chain_woken - the task has been asleep until @now
 * @w: its chain
 * @now: present time
 *
 * Rests that timers, devices or strangers end also end the loop, which a child may have from
 * its parent, once they add up to CHAIN_REST without a wake-up by a task of the chain. A short
 * one does not: a stranger would take the task out of its chain.
 *
 * Return: for how long the chain rested
 */
static inline u32 chain_woken(struct sched_chain *w, u64 now)
{
	u32 passed = chain_pass(w, now), slack = passed;

	if (!w->handed) {
		w->rest += passed;
		w->slack += passed;
		if (w->slack > CHAIN_REST)
			w->loop = 0;
	} else if (w->loop) {
		slack = w->slack;
	}
	w->handed = false;
	w->ran += passed - min(slack, passed);
	return slack;
}

/**
 * chain_need - what the chain asks the CPU for
 * @c: the task's chain
 * @own: the task's utilization, or its share of the CPU's
 *
 * A task that does little itself gains little from a higher clock, whatever it waits for.
 *
 * Return: utilization, 0 outside of a loop
 */
static inline u32 chain_need(const struct sched_chain *c, u32 own)
{
	u32 need = c->util >> CHAIN_UTIL_SHIFT;

	if (c->lag == CHAIN_LAG)
		need = SCHED_CAPACITY_SCALE;
	return c->loop ? min(need, CHAIN_OWN * own) : 0;
}

/* Has a request made at @stamp expired? */
static inline bool chain_lapsed(u32 stamp, u32 now)
{
	return now - stamp > CHAIN_HOLD;
}

#endif /* _KERNEL_SCHED_CHAIN_H */
