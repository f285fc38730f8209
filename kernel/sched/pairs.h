/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pairs: what do two tasks that take turns need together?
 *
 * A client and its server look half idle each, yet one of them always has work. If a task
 * is woken by the one that it woke last, that is an answer: in between, one of the two had
 * work. So the pair needs the sum of their utilizations. These leave out rests, waiting
 * behind others and throttled time, and are invariant to clocks and capacity.
 */

/*
 * What the wakee's CPU is asked for: all if the pair uses what the CPU has at the present
 * clock, because it needs more by an unknown amount. A task that does little itself gains
 * little from a higher clock, whatever it waits for: the limit is 8 times its utilization.
 * As tasks of a pool share the work, it may be twice the CPU's, up to 32 times the task's.
 * A CPU that idles may have old utilization.
 */
static inline u32 pair_need(u32 waker, u32 own, u32 cpu, u32 capacity)
{
	u32 both = waker + own >= capacity * 7 / 8 ? SCHED_CAPACITY_SCALE : waker + own;

	return min(both, 8 * clamp(cpu / 4, own, 4 * own));
}

/*
 * The utilization that @request, which is jiffies * 2048 + utilization, asks for, until it
 * expires after 34 to 50 ms
 */
static inline u32 pair_util(u32 request, u32 now)
{
	return (now - request / 2048) * 2048 <= (HZ / 30 + 1) * 2048 ? request % 2048 : 0;
}

/* Lower requests meanwhile are not kept. */
static inline void pair_ask(u32 *request, u32 util, u32 now)
{
	if (util >= pair_util(READ_ONCE(*request), now))
		WRITE_ONCE(*request, now * 2048 + util);
}
