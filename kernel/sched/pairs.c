// SPDX-License-Identifier: GPL-2.0
/*
 * Pairs: who answers whom, and what CPUs are asked for; see pairs.h. A request of a CPU is
 * one word without a lock: if two are made at once, either may be lost.
 */
DEFINE_STATIC_KEY_FALSE(sched_pairs_key);

/* For how long has @p not been accounted? The clock of tasks leaves out interrupts. */
static s64 pair_since(struct task_struct *p, struct rq *rq)
{
	/* Another CPU may account for @p, or move its clock, meanwhile. */
	return data_race(local_clock() - (rq->clock - rq->clock_task) - p->se.exec_start);
}

/*
 * Interrupts, softirqs that come with them and the idle task wake nobody in current's name.
 * Softirqs on behalf of current do. A child answers its parent when it begins. It is no
 * answer if both had work for most of the time since current was chosen to run.
 */
void __sched_pair_wake(struct rq *rq, struct task_struct *p)
{
	/* Another CPU may account for current meanwhile. */
	u64 ran = data_race(current->se.sum_exec_runtime - current->se.prev_sum_exec_runtime);
	u32 need;

	if (in_hardirq() || this_cpu_read(softirq_interrupts) || is_idle_task(current))
		return;
	WRITE_ONCE(current->pair_woke, p->pid);
	/* @p may be on its way to sleep on another CPU. */
	if ((READ_ONCE(p->pair_woke) != current->pid && data_race(p->se.exec_start)) ||
	    p->sched_class != &fair_sched_class ||
	    2 * pair_since(p, task_rq(p)) < (s64)(pair_since(current, this_rq()) + ran))
		return;
	need = pair_need(READ_ONCE(current->se.avg.util_avg), READ_ONCE(p->se.avg.util_avg),
			 READ_ONCE(rq->cfs.avg.util_avg),
			 cap_scale(arch_scale_cpu_capacity(cpu_of(rq)),
				   /* That CPU's tick may store it meanwhile. */
				   data_race(arch_scale_freq_capacity(cpu_of(rq)))));
	/* The request outlives the clamp of a task that sleeps. */
	need = min(need, uclamp_eff_value(p, UCLAMP_MAX));
	pair_ask(&rq->pairs, need, jiffies);
}
