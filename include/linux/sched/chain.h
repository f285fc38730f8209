/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_SCHED_CHAIN_H
#define _LINUX_SCHED_CHAIN_H

#include <linux/types.h>

/**
 * struct sched_chain - what is known of the chain that a task is part of
 * @time: until when the task is accounted, in 1024 ns, as all that follows
 * @util: share of the time in which the chain had work, << CHAIN_UTIL_SHIFT
 * @exec: its runtime by then
 * @ran: work that @util does not have yet
 * @lag: time lost to a low clock that no rest has made good
 * @rest: how long the chain has rested, from any beginning
 * @slack: how much of its sleep the chain rested, if woken by it
 * @clock: logical clock: number of wake-ups that led here, from any beginning
 * @loop: the task is in a loop, for so many more wake-ups by tasks that do not close it
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
