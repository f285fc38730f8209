/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What cpufreq_schedutil.c uses of scheduler, cpufreq, sysfs and kthreads: one thread
 * plays all CPUs. Locks only check that they are used as locks.
 */
#ifndef SHIM_SCHEDUTIL_H
#define SHIM_SCHEDUTIL_H

#define cap_scale(v, s)		((v) * (s) >> SCHED_CAPACITY_SHIFT)
#define u64_u32_load(x)		READ_ONCE(x)
#define pr_err(...)		fprintf(stderr, __VA_ARGS__)
#define pr_warn(...)		fprintf(stderr, __VA_ARGS__)
#define rcu_dereference_protected(p, c)	(p)
#define trace_sugov_util_tp(...)	do { } while (0)
#define WARN_ON(c)		({ bool _c = (c); assert(!_c); _c; })

#define DEFINE_STATIC_KEY_FALSE(k)	bool k
#define static_branch_likely(k)		(*(k))
#define static_branch_unlikely(k)	(*(k))

/* Locks */
typedef struct { bool held; } raw_spinlock_t;
struct mutex { bool held; };
#define DEFINE_MUTEX(m)		struct mutex m
static inline void shim_lock(bool *held) { assert(!*held); *held = true; }
static inline void shim_unlock(bool *held) { assert(*held); *held = false; }
#define raw_spin_lock_init(l)			((l)->held = false)
#define raw_spin_lock(l)			shim_lock(&(l)->held)
#define raw_spin_unlock(l)			shim_unlock(&(l)->held)
#define raw_spin_lock_irqsave(l, f)		((f) = 0, shim_lock(&(l)->held))
#define raw_spin_unlock_irqrestore(l, f)	((void)(f), shim_unlock(&(l)->held))
#define mutex_init(m)				((m)->held = false)
#define mutex_destroy(m)			assert(!(m)->held)
#define mutex_lock(m)				shim_lock(&(m)->held)
#define mutex_unlock(m)				shim_unlock(&(m)->held)
#define lockdep_assert_held(l)			assert((l)->held)
static inline void shim_guard_end(bool **held) { shim_unlock(*held); }
#define guard(kind)		SHIM_GUARD
#define SHIM_GUARD(l)		bool *_guard __attribute__((cleanup(shim_guard_end))) = \
				(shim_lock(&(l)->held), &(l)->held)

/* CPUs */
typedef u32 cpumask_t;
#define for_each_cpu(c, mask)	for ((c) = 0; (c) < MAX_CPUS; (c)++) if (*(mask) >> (c) & 1)
#define cpumask_first(mask)	((unsigned int)__builtin_ctz(*(mask)))
#define cpumask_test_cpu(c, mask)	(*(mask) >> (c) & 1)

struct sched_avg { unsigned long util_avg, runnable_avg, util_est; };
struct sched_class { int dummy; };
static const struct sched_class fair_sched_class __attribute__((unused));
struct task_struct {
	struct { struct sched_avg avg; u64 sum_exec_runtime, prev_sum_exec_runtime; } se;
	const struct sched_class *sched_class;
	unsigned long nvcsw, nivcsw;
	unsigned int __state;
};
#define TASK_RUNNING		0
enum uclamp_id { UCLAMP_MIN, UCLAMP_MAX, UCLAMP_CNT };
struct rq {
	struct cfs_rq { struct sched_avg avg; unsigned int h_nr_running; } cfs;
	struct rt_rq { unsigned int rt_nr_running; } rt;
	struct { u64 running_bw; } dl;
	struct { u32 cpuperf_target; } scx;
	struct { unsigned int value; } uclamp[UCLAMP_CNT];
	struct sched_avg	avg_rt, avg_dl, avg_irq;
	unsigned int		nr_running;
	u64			clock, clock_idle, idle_stamp;
	u32			pairs;
	int			cpu;
	union { struct task_struct *curr, *donor; };	/* no proxy execution */
	struct task_struct	*idle;
	unsigned long		idle_calls;
};
extern struct rq shim_rq[MAX_CPUS];
extern bool sched_uclamp_used, shim_scx_enabled, shim_scx_switched_all, shim_invariant;
extern unsigned long shim_freq_scale[MAX_CPUS], shim_capacity;

#define BW_SHIFT		20
#define UTIL_AVG_UNCHANGED	0x80000000
#define cpu_rq(c)		(&shim_rq[c])
#define rt_rq_is_runnable(rt)	((rt)->rt_nr_running)
#ifndef sched_feat
#define sched_feat(x)		1
#endif
#define scx_enabled()		shim_scx_enabled
#define scx_switched_all()	shim_scx_switched_all
#define arch_scale_freq_ref(c)	((void)(c), 0)
#define arch_scale_freq_invariant()	shim_invariant
#define arch_scale_cpu_capacity(c)	((void)(c), shim_capacity)
#define arch_scale_freq_capacity(c)	(shim_freq_scale[c])
#define cpu_of(rq)		((rq)->cpu)
#define rq_clock(rq)		((rq)->clock)

/* Of a task, which is never asked about */
#define task_cpu(p)		(-1)
#define task_util(p)		((p)->se.avg.util_avg)
#define _task_util_est(p)	((p)->se.avg.util_est)
#define task_on_rq_queued(p)	false
#define current			((struct task_struct *)NULL)
#define lsub_positive(p, v)	(*(p) -= min(*(p), (v)))

extern u32 shim_jiffies;
#define jiffies			shim_jiffies
#define HZ			250

/* The governor is in use. */
#define DECLARE_WORK(w, f)	struct work_struct w
struct work_struct { int dummy; };
#define schedule_work(w)	((void)(w))
#define static_branch_enable(k)		(*(k) = true)
#define static_branch_disable(k)	(*(k) = false)
#define atomic_add(n, v)	((v)->counter += (n))
#define atomic_read(v)		((v)->counter)
#define rebuild_sched_domains_energy()	do { } while (0)
static bool sched_pairs_key;

unsigned long tick_nohz_get_idle_calls_cpu(int cpu);
#define CONFIG_NO_HZ_FULL	1
extern bool shim_nohz_full;
#define tick_nohz_full_cpu(cpu)	unlikely(shim_nohz_full)
#define sched_can_stop_tick(rq)	((rq)->nr_running < 2)
#define idle_cpu(cpu)	(cpu_rq(cpu)->curr == cpu_rq(cpu)->idle && !cpu_rq(cpu)->nr_running)

/* cpufreq */
struct kobject { int dummy; };
struct cpufreq_policy {
	cpumask_t	*cpus, *related_cpus;
	unsigned int	cpu, min, max, cur;
	unsigned int	transition_delay_us;
	struct { unsigned int max_freq, min_freq, transition_latency; } cpuinfo;
	bool		fast_switch_enabled, dvfs_possible_from_any_cpu;
	const void	*governor;
	void		*governor_data;
};
struct cpufreq_governor {
	const char	*name;
	void		*owner;
	unsigned int	flags;
	int		(*init)(struct cpufreq_policy *);
	void		(*exit)(struct cpufreq_policy *);
	int		(*start)(struct cpufreq_policy *);
	void		(*stop)(struct cpufreq_policy *);
	void		(*limits)(struct cpufreq_policy *);
};
#define CPUFREQ_GOV_DYNAMIC_SWITCHING	0
#define CPUFREQ_NEED_UPDATE_LIMITS	BIT(6)
#define CPUFREQ_RELATION_L		0
#define policy_is_shared(p)		(!!(*(p)->cpus & (*(p)->cpus - 1)))
unsigned int cpufreq_driver_resolve_freq(struct cpufreq_policy *policy, unsigned int freq);
unsigned int cpufreq_driver_fast_switch(struct cpufreq_policy *policy, unsigned int freq);
int __cpufreq_driver_target(struct cpufreq_policy *policy, unsigned int freq,
			    unsigned int relation);
/* A limit may come before the capacity, which is last: it is the driver's. */
#define cpufreq_driver_adjust_perf(who, lo, target, ...)	\
	shim_adjust_perf(lo, target, ((unsigned long[]){ __VA_ARGS__ })[	\
			 sizeof((unsigned long[]){ __VA_ARGS__ }) / sizeof(long) - 1])
void shim_adjust_perf(unsigned long lo, unsigned long target, unsigned long capacity);
bool cpufreq_driver_has_adjust_perf(void);
bool cpufreq_driver_test_flags(unsigned int flags);
void cpufreq_policy_apply_limits(struct cpufreq_policy *policy);
#define cpufreq_policy_transition_delay_us(p)	((p)->transition_delay_us)
#define cpufreq_enable_fast_switch(p)		do { } while (0)
#define cpufreq_disable_fast_switch(p)		do { } while (0)
#define get_governor_parent_kobj(p)		((void)(p), NULL)
#define have_governor_per_policy()		1
#define cpufreq_governor_init(g)
#define em_rebuild_sched_domains()	do { } while (0)

/* sysfs of governors */
struct attribute { const char *name; };
struct gov_attr_set {
	struct kobject		kobj;
	struct list_head	policy_list;
	struct mutex		update_lock;
	int			usage_count;
};
struct governor_attr {
	struct attribute attr;
	ssize_t (*show)(struct gov_attr_set *set, char *buf);
	ssize_t (*store)(struct gov_attr_set *set, const char *buf, size_t count);
};
struct kobj_type { const void *default_groups, *sysfs_ops; void (*release)(struct kobject *); };
#define __ATTR(n, mode, s, t)	{ { #n }, s, t }
#define __ATTR_RW(n)		{ { #n }, n##_show, n##_store }
#define ATTRIBUTE_GROUPS(n)	static struct attribute **n##_groups[] = { n##_attrs, NULL }
static const int governor_sysfs_ops __attribute__((unused));
#define to_gov_attr_set(k)	container_of(k, struct gov_attr_set, kobj)
#define sysfs_emit		sprintf
static inline int kstrtouint(const char *s, int base, unsigned int *v)
{
	char *end;
	unsigned long n = strtoul(s, &end, base);

	if (end == s || (*end && *end != '\n') || *s == '-' || n > U32_MAX)
		return -EINVAL;
	*v = n;
	return 0;
}
static inline int kstrtobool(const char *s, bool *v)
{
	*v = *s == '1';
	return *s == '0' || *s == '1' ? 0 : -EINVAL;
}
static struct gov_attr_set *governor_tunables;	/* the last that were made */
static inline void gov_attr_set_init(struct gov_attr_set *set, struct list_head *node)
{
	INIT_LIST_HEAD(&set->policy_list);
	set->update_lock.held = false;
	set->usage_count = 1;
	governor_tunables = set;
	list_add(node, &set->policy_list);
}
static inline void gov_attr_set_get(struct gov_attr_set *set, struct list_head *node)
{
	set->usage_count++;
	list_add(node, &set->policy_list);
}
static inline unsigned int gov_attr_set_put(struct gov_attr_set *set, struct list_head *node)
{
	list_del(node);
	return --set->usage_count;	/* the run frees nothing */
}
#define kobject_init_and_add(...)	0
#define kobject_put(k)			((void)(k))
#define kzalloc(size, flags)		calloc(1, size)
#define kzalloc_obj(obj)		calloc(1, sizeof(obj))
#define kfree(p)			free(p)

/* Deferred changes: the engine runs them */
struct irq_work { void (*func)(struct irq_work *); bool pending; };
struct kthread_work { void (*func)(struct kthread_work *); };
struct kthread_worker { int dummy; };
struct sched_attr {
	u32 size, sched_policy;
	u64 sched_flags;
	s32 sched_nice;
	u32 sched_priority;
	u64 sched_runtime, sched_deadline, sched_period;
};
#define SCHED_DEADLINE		6
#define SCHED_FLAG_SUGOV	0
void shim_irq_work_queue(struct irq_work *w);
void shim_kthread_queue(struct kthread_work *w);
void shim_kthread_cancel(void);
#define irq_work_queue(w)		shim_irq_work_queue(w)
#define init_irq_work(w, f)		((w)->func = (f))
#define irq_work_sync(w)		((void)(w))
#define kthread_init_work(w, f)		((w)->func = (f))
#define kthread_init_worker(w)		((void)(w))
#define kthread_worker_fn		NULL
#define kthread_create(...)		((struct task_struct *)&shim_rq)
#define sched_setattr_nocheck(t, a)	((void)(t), (void)(a), 0)
#define kthread_stop(t)			((void)(t))
#define kthread_bind_mask(t, m)		((void)(t))
#define set_cpus_allowed_ptr(t, m)	((void)(t))
#define wake_up_process(t)		((void)(t))
#define kthread_flush_worker(w)		((void)(w))
#define kthread_queue_work(worker, w)	shim_kthread_queue(w)
#define kthread_cancel_work_sync(w)	shim_kthread_cancel()

/* The scheduler's own source */
unsigned long cpu_util_cfs(int cpu);
extern struct update_util_data *cpufreq_update_util_data[MAX_CPUS];
#include "scheduler.h"
#include "kernel/sched/cpufreq.c"

#endif
