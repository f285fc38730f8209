/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_SCHED_CHAIN_H
#define _LINUX_SCHED_CHAIN_H

#include <linux/types.h>

/**
 * struct sched_chain - what is known of the chain that a task is part of
 * @time: until when the task is accounted, in 1024 ns, like all other times
 * @util: share of the time in which the chain had work, << CHAIN_UTIL_SHIFT
 * @exec: its runtime by then
 * @ran: work that is not in @util yet
 * @lag: time lost to a low clock that no rest has made up for
 * @rest: how long the chain has rested, with an arbitrary origin
 * @slack: for how much of its sleep the chain rested, when a task woke it last, and all
 *	sleeps since
 * @clock: logical clock: number of wake-ups that led here, with an arbitrary origin
 * @loop: the task is in a loop, for this many more wake-ups that do not close it
 * @issued: the task has woken another since the loop was last closed
 * @handed: a task has woken it, and has handed over @rest, @slack and @clock
 *
 * See kernel/sched/chain.h.
 */
struct sched_chain {
	u64	time;
	u32	util;
	u32	exec;
	u32	ran;
	u32	lag;
	u32	rest;
	u32	slack;
	u32	clock;
	u8	loop;
	bool	issued;
	bool	handed;
};

#endif /* _LINUX_SCHED_CHAIN_H */
