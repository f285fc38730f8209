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
 * sched_chain_use - a governor begins or ends to read cpu_util_chain()
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

static u64 chain_clock(struct rq *rq)
{
	return rq_clock(rq) >> 10;
}

static u32 chain_capacity(struct rq *rq)
{
	return cap_scale(arch_scale_cpu_capacity(cpu_of(rq)), arch_scale_freq_capacity(cpu_of(rq)));
}

/*
 * The CPU asks for the most that a fair task needed lately. Other classes ask by themselves,
 * and util_avg of their tasks is what it was when they left the fair one.
 */
static void chain_ask(struct rq *rq, struct task_struct *p)
{
	u32 need;

	if (p->sched_class != &fair_sched_class)
		return;
	need = chain_need(&p->chain, READ_ONCE(p->se.avg.util_avg));
	if (need < rq->chain_util && !chain_lapsed(rq->chain_stamp, jiffies))
		return;
	/* Other CPUs of a policy read them, at any time. */
	WRITE_ONCE(rq->chain_util, need);
	WRITE_ONCE(rq->chain_stamp, jiffies);
}

static void chain_update(struct rq *rq, struct task_struct *p, u32 slack)
{
	if (!chain_counts(&p->chain, slack))
		return;

	chain_count(&p->chain, slack, chain_capacity(rq));
	chain_ask(rq, p);
}

/* What chains make the CPU ask for, until no task renews it; sched_ext asks for its own. */
unsigned long __cpu_util_chain(struct rq *rq)
{
	if (scx_enabled() || chain_lapsed(READ_ONCE(rq->chain_stamp), jiffies))
		return 0;
	return READ_ONCE(rq->chain_util);
}

/*
 * current wakes @p, which sleeps. An interrupt and the idle task are nobody: timers and
 * devices end a rest. In a softirq current may have nothing to do with it, and is a stranger.
 */
void __sched_chain_waking(struct task_struct *p)
{
	struct sched_chain *c = &current->chain;

	if (in_hardirq() || is_idle_task(current))
		return;
	/* One that has blocked and looks for tasks to run may be woken meanwhile. */
	if (chain_hand(&p->chain, data_race(c->rest), data_race(c->clock)))
		WRITE_ONCE(c->issued, true);
}

/* @p has been woken, and is about to be queued. */
void __sched_chain_woken(struct rq *rq, struct task_struct *p)
{
	chain_update(rq, p, chain_woken(&p->chain, chain_clock(rq)));
}

/* @p was on a run queue until now: a tick finds it running, or it is about to sleep. */
void __sched_chain_run(struct rq *rq, struct task_struct *p)
{
	if (is_idle_task(p))
		return;
	chain_update(rq, p, chain_run(&p->chain, chain_clock(rq), p->se.sum_exec_runtime >> 10));
}

/* current has created @p, which is about to be queued. */
void __sched_chain_new(struct rq *rq, struct task_struct *p)
{
	WRITE_ONCE(current->chain.issued, true);
	chain_new(&p->chain, chain_clock(rq));
	chain_ask(rq, p);
}
