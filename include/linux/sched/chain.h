/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_SCHED_CHAIN_H
#define _LINUX_SCHED_CHAIN_H

#include <linux/types.h>

/**
 * struct sched_chain - what is known of the chain that a task is part of
 * @util: share of the time in which the chain had work, << CHAIN_UTIL_SHIFT
 * @time: until when @util is known, in 1024 ns, as all that follows
 * @ran: work since @time
 * @lag: time lost to a low clock that no rest has made good
 * @rest: how long the chain has rested, from any beginning
 * @slack: how much of it while the task was asleep, as the waker knows it, then as it is
 * @hop: number of wake-ups that led here, from any beginning
 * @closed: when the task was last woken in consequence of having woken another
 * @waker: enum chain_waker, of a task that is about to be queued
 * @issued: the task has woken another since @closed
 *
 * See kernel/sched/chain.h.
 */
struct sched_chain {
	u32	util;
	u32	time;
	u32	ran;
	u32	lag;
	u32	rest;
	u32	slack;
	u32	hop;
	u32	closed;
	u8	waker;
	bool	issued;
};

#endif /* _LINUX_SCHED_CHAIN_H */
