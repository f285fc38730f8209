// SPDX-License-Identifier: GPL-2.0
/*
 * Chains: the hooks where tasks wake each other and sleep, and the requests of CPUs. The
 * arithmetic is in chain.h.
 *
 * While a task sleeps, its waker writes its chain: one at a time, under p->pi_lock and then
 * the run queue's lock. Otherwise its CPU writes it, with the run queue locked. A waker
 * reads its own, and sets @issued there, without a lock.
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
 * sched_chain_use - a governor starts or stops reading cpu_util_chain()
 * @use: it starts
 *
 * Context: Preemptible. A work item switches the static branch, because that takes the
 * lock of CPU hotplug, which the caller may hold.
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
	int cpu = cpu_of(rq);
	unsigned long capacity;

	/* A tick of another CPU may write its scale meanwhile. */
	capacity = data_race(cap_scale(arch_scale_cpu_capacity(cpu),
				       arch_scale_freq_capacity(cpu)));
	/* Boost may exceed the scale. */
	return min(SCHED_CAPACITY_SCALE, capacity);
}

/*
 * The CPU asks for the most that a fair task needed lately. Other classes make their own
 * requests, and util_avg of their tasks stands still since they left the fair class.
 *
 * The limit is 8 times the task's utilization, or twice the CPU's, as tasks of a pool share
 * the work, up to 32 times the task's. A CPU that idles may have old utilization.
 */
static void chain_ask(struct rq *rq, struct task_struct *p)
{
	u32 need, own = p->se.avg.util_avg;

	if (p->sched_class != &fair_sched_class)
		return;
	need = chain_need(&p->chain, clamp(rq->cfs.avg.util_avg / 4, own, 4 * own));
	/* The CPU's request outlives the clamp of a task that sleeps. */
	if (uclamp_is_used())
		need = min(need, uclamp_eff_value(p, UCLAMP_MAX));
	if (need < rq->chain_util && !chain_lapsed(rq->chain_stamp, jiffies))
		return;
	/* Other CPUs of a policy read these at any time. */
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

/* The request of chains, until it expires; sched_ext makes its own. */
unsigned long __cpu_util_chain(struct rq *rq)
{
	if (scx_enabled() || chain_lapsed(READ_ONCE(rq->chain_stamp), jiffies))
		return 0;
	return READ_ONCE(rq->chain_util);
}

/*
 * current wakes @p, which sleeps. Interrupts, softirqs that come with them and the idle task
 * do not count as wakers: timers and devices end a rest. Softirqs on behalf of current do.
 */
void __sched_chain_waking(struct task_struct *p)
{
	struct sched_chain *c = &current->chain;

	if (in_hardirq() || this_cpu_read(softirq_interrupts) || is_idle_task(current))
		return;
	/* current may have blocked, look for tasks to run, and be woken meanwhile. */
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
