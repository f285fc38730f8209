/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Chains: for what share of the time did a task, or those it waits for, have work?
 *
 * Two tasks that take turns look half idle each, yet one of them always has work. If a
 * task is woken because, in the end, it woke somebody itself, then the time it slept was
 * no slack, but for the time in which those in between had no work either.
 *
 *	A  ====.......====.......====		= has work
 *	B  ....===----....===----....		- waits for a timer or device: rest
 *	C  .......................===		. waits for the next one
 *
 * Each task counts the rest of its chain. A waker hands its count to the wakee: what
 * that has grown since the wakee fell asleep is how long the chain rested meanwhile. It
 * also hands over how many wake-ups the chain is long. If the wakee woke somebody, and the
 * waker's number is beyond its own, then its wake-up has come round: the chain is a loop.
 * A task that is woken again before it woke anybody stays in the loop for a while.
 * Nothing else is known of other tasks, and nothing has to be cleared when one ends.
 *
 * The share is an average like util_avg, invariant to frequency and capacity: work at a
 * low clock counts for less, and is made good for by the next rest. A chain that does not
 * rest for long gets there by its time alone, as no share of it is known.
 *
 * Time is in units of 1024 ns of run queue clocks, and wraps after 73 minutes; what is
 * wrong after a sleep of just that long is right again after the half-life.
 */
#ifndef _KERNEL_SCHED_CHAIN_H
#define _KERNEL_SCHED_CHAIN_H

#include <linux/bits.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/sched/chain.h>

#define CHAIN_HALF_SHIFT	15
#define CHAIN_HALF	((u32)BIT(CHAIN_HALF_SHIFT))	/* half-life of the average: 34 ms */
#define CHAIN_LAG	(CHAIN_HALF / 4)	/* more lost time than that is never made good */
#define CHAIN_LAPSE	(2 * CHAIN_HALF)	/* a loop lapses that was not closed for so long */
#define CHAIN_LENGTH	64			/* longest loop, in wake-ups */
#define CHAIN_GRAIN	64			/* less work is counted with what follows */
#define CHAIN_UTIL_SHIFT	20
#define CHAIN_FULL	((u32)SCHED_CAPACITY_SCALE << CHAIN_UTIL_SHIFT)

/* By whom a task was woken */
enum chain_waker { CHAIN_NOBODY, CHAIN_STRANGER, CHAIN_AGAIN, CHAIN_LOOP };

/* @share after half-lives of @time: 2^-f is 1 - f * (11 - 3 * f) / 16, to 0.005 */
static inline u32 chain_decay(u32 share, u32 time)
{
	u32 f = time & (CHAIN_HALF - 1);

	if (time >> CHAIN_HALF_SHIFT >= 32)
		return 0;
	share >>= time >> CHAIN_HALF_SHIFT;
	return share - ((u64)share * f * (11 * CHAIN_HALF - 3 * f) >> (2 * CHAIN_HALF_SHIFT + 4));
}

static inline void chain_busy(struct sched_chain *c, u32 time, u32 capacity)
{
	u32 done = (u64)time * capacity >> SCHED_CAPACITY_SHIFT;
	u32 lag = c->lag + time - done;

	c->lag = min(lag, CHAIN_LAG);
	c->util = CHAIN_FULL - chain_decay(CHAIN_FULL - c->util, done + lag - c->lag);
}

static inline void chain_rest(struct sched_chain *c, u32 time)
{
	if (!time)
		return;
	c->util = chain_decay(c->util, time + c->lag);
	c->lag = 0;
}

/* Is the task in a loop that has not lapsed? */
static inline bool chain_in_loop(const struct sched_chain *c, u32 now)
{
	return now - c->closed < CHAIN_LAPSE;
}

/**
 * chain_run - the task had work until @now
 * @c: the task's chain
 * @now: present time; nothing is done if it is before that of @c
 *
 * Return: chain_count() is to be called.
 */
static inline bool chain_run(struct sched_chain *c, u32 now)
{
	c->ran = max((s32)(now - c->time), 0);
	return c->ran >= CHAIN_GRAIN;
}

/**
 * chain_hand - a sleeping task is woken by another
 * @w: the wakee's chain; chain_woken() follows
 * @rest: the waker's
 * @hop: the waker's
 */
static inline void chain_hand(struct sched_chain *w, u32 rest, u32 hop)
{
	s32 ahead = hop - w->hop, slack = rest - w->rest;

	if (ahead < -1 || ahead >= CHAIN_LENGTH)
		w->waker = CHAIN_STRANGER;
	else
		w->waker = w->issued && ahead > 0 ? CHAIN_LOOP : CHAIN_AGAIN;
	w->slack = max(slack, 0);
	w->rest = rest;
	w->hop = hop + 1;
}

/**
 * chain_woken - the task has been asleep until @now
 * @w: its chain
 * @now: present time
 *
 * Return: chain_count() is to be called.
 */
static inline bool chain_woken(struct sched_chain *w, u32 now)
{
	u32 slept = max((s32)(now - w->time - w->ran), 0), slack = slept;

	if (w->waker == CHAIN_LOOP) {
		w->closed = now;
		w->issued = false;
	}
	if (w->waker >= CHAIN_AGAIN && chain_in_loop(w, now))
		slack = min(w->slack, slept);
	if (w->waker == CHAIN_NOBODY)
		w->rest += slept;
	w->waker = CHAIN_NOBODY;
	w->ran += slept - slack;
	w->slack = slack;
	return slack || w->ran >= CHAIN_GRAIN;
}

/**
 * chain_count - bring the average up to date
 * @c: a chain after chain_run() or chain_woken(); what they found is counted
 * @capacity: of the CPU, at its present frequency
 */
static inline void chain_count(struct sched_chain *c, u32 capacity)
{
	chain_busy(c, c->ran, capacity);
	chain_rest(c, c->slack);
	c->time += c->ran + c->slack;
	c->ran = 0;
	c->slack = 0;
}

#endif /* _KERNEL_SCHED_CHAIN_H */
