// SPDX-License-Identifier: GPL-2.0
/*
 * Chains: where tasks wake each other and sleep, and what that makes their CPUs ask for.
 * The arithmetic is in chain.h.
 *
 * A task's chain is written by whoever wakes it while it sleeps, which p->pi_lock and
 * then the run queue's lock make one at a time, and with its run queue locked by what
 * runs on its CPU. A waker reads its own.
 */
#include "chain.h"

#define CHAIN_CPU_HOLD	(msecs_to_jiffies(8) + 1)

DEFINE_STATIC_KEY_FALSE(sched_chain_key);

static atomic_t chain_users;

static void chain_switch(struct work_struct *work)
{
	if (atomic_read(&chain_users))
		static_branch_enable(&sched_chain_key);
	else
		static_branch_disable(&sched_chain_key);
}

static DECLARE_WORK(chain_work, chain_switch);

/**
 * sched_chain_use - somebody begins or ends to read cpu_util_chain()
 * @use: it begins
 *
 * Context: Any that may be preempted. The switch follows a little later, because CPU
 * hotplug may be locked here, which static branches lock as well.
 */
void sched_chain_use(bool use)
{
	if (use)
		atomic_inc(&chain_users);
	else
		atomic_dec(&chain_users);
	schedule_work(&chain_work);
}

static u32 chain_clock(struct rq *rq)
{
	return rq_clock(rq) >> 10;
}

static u32 chain_capacity(struct rq *rq)
{
	return cap_scale(arch_scale_cpu_capacity(cpu_of(rq)), arch_scale_freq_capacity(cpu_of(rq)));
}

/* The CPU asks for the most that a chain needed lately. */
static void chain_ask(struct rq *rq, struct sched_chain *c)
{
	u32 util;

	chain_count(c, chain_capacity(rq));
	util = c->util >> CHAIN_UTIL_SHIFT;
	if (!chain_in_loop(c, chain_clock(rq)))
		return;
	if (util < rq->chain_util && jiffies - rq->chain_stamp <= CHAIN_CPU_HOLD)
		return;
	/* Other CPUs of a policy read them, at any time. */
	WRITE_ONCE(rq->chain_util, util);
	WRITE_ONCE(rq->chain_stamp, jiffies);
}

/* What chains make the CPU ask for. It lapses if no task of a chain renews it. */
unsigned long __cpu_util_chain(struct rq *rq)
{
	if (jiffies - READ_ONCE(rq->chain_stamp) > 3 * CHAIN_CPU_HOLD)
		return 0;
	return READ_ONCE(rq->chain_util);
}

/*
 * current wakes @p, which sleeps. An interrupt and the idle task are nobody: timers and
 * devices end a rest. In a softirq current may have nothing to do with it; then its hop
 * has not either, and is taken for that of a stranger.
 */
void __sched_chain_waking(struct task_struct *p)
{
	struct sched_chain *c = &current->chain;

	if (in_hardirq() || is_idle_task(current))
		return;
	/* One that has blocked and looks for tasks to run may be woken meanwhile. */
	chain_hand(&p->chain, data_race(c->rest), data_race(c->hop));
	WRITE_ONCE(c->issued, true);
}

/* @p has been woken, and is about to be queued. */
void __sched_chain_woken(struct rq *rq, struct task_struct *p)
{
	if (chain_woken(&p->chain, chain_clock(rq)))
		chain_ask(rq, &p->chain);
}

/* @p has work until now: a tick finds it running, it is about to sleep, or is new. */
void __sched_chain_run(struct rq *rq, struct task_struct *p)
{
	if (chain_run(&p->chain, chain_clock(rq)))
		chain_ask(rq, &p->chain);
}
