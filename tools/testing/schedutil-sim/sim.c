// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the schedutil governor's source, unmodified, on a model of tasks, CPUs and
 * utilisation. GOVERNOR names the source; the same program is made of the base's
 * and of ours. The model decides, not the host: equal arguments give equal output.
 *
 * What is modelled: utilisation of each task with a half-life of 32 periods of
 * 1.024 ms, on a clock that runs at the CPU's speed and catches up in idle; the
 * estimate of a waking task is its utilisation when it last slept; the hook is
 * called when a task wakes, sleeps or migrates or at a tick, and a period of
 * utilisation is full, and by the scheduler's tick if the source has that call.
 */
#include "kernel.h"
#include <math.h>
#include <time.h>

#include GOVERNOR

#define MSEC		1000000ull
#define PERIOD_NS	1024000.0
#define HALFLIFE_NS	(32 * PERIOD_NS)
#define MAX_TASKS	16
#define KHZ_MIN		800000
#define KHZ_MAX		3800000
#define KHZ_STEP	100000

u64 shim_tick_ns = 4 * MSEC;
static u64 STEP = 50000;	/* ns of the model's clock */
struct rq shim_rq[MAX_CPUS];
unsigned long shim_freq_scale[MAX_CPUS];

struct task {
	int cpu;		/* -1: not there */
	bool runnable, fresh;
	double work;		/* left, in ns at the highest frequency */
	u64 wake_at;
	double util, est;
};

static struct {
	u64 now;
	int cpus;
	bool slow, perf;	/* kind of driver */
	struct cpufreq_policy policy;
	cpumask_t online, related;
	struct update_util_data *hook[MAX_CPUS];
	struct task task[MAX_TASKS];
	struct task_struct running[MAX_CPUS], idle[MAX_CPUS];
	double lag[MAX_CPUS], since_call[MAX_CPUS];	/* ns */
	double busy[MAX_CPUS], cycles[MAX_CPUS];
	unsigned long told[MAX_CPUS];	/* utilisation at the last call of the hook */
	int cpu;			/* that runs the present code */
	struct irq_work *irq_work;
	struct kthread_work *work;
	u64 work_at;
	unsigned long calls, changes;
	double joules, work_done;
} m;

static u64 rnd_state = 88172645463325252ull;
static u32 rnd(u32 limit)
{
	rnd_state ^= rnd_state << 13;
	rnd_state ^= rnd_state >> 7;
	rnd_state ^= rnd_state << 17;
	return (rnd_state >> 32) * limit >> 32;
}

/* The kernel's side */

unsigned long tick_nohz_get_idle_calls_cpu(int cpu) { return shim_rq[cpu].idle_calls; }
u64 local_clock(void) { return m.now; }

unsigned long cpu_util_cfs_boost(int cpu)
{
	struct sched_avg *a = &shim_rq[cpu].cfs.avg;
	unsigned long util = max(READ_ONCE(a->util_avg), READ_ONCE(a->runnable_avg));

	return min(max(util, READ_ONCE(a->util_est)), (unsigned long)SCHED_CAPACITY_SCALE);
}

unsigned long effective_cpu_util(int cpu, unsigned long util, unsigned long *lo,
				 unsigned long *hi)
{
	struct rq *rq = cpu_rq(cpu);
	unsigned long scale = SCHED_CAPACITY_SCALE, irq = cpu_util_irq(rq);

	if (unlikely(irq >= scale)) {
		*lo = *hi = scale;
		return scale;
	}
	*lo = irq + cpu_bw_dl(rq);
	if (rt_rq_is_runnable(&rq->rt))
		*lo = max(*lo, scale);
	*hi = scale;
	util += cpu_util_rt(rq) + cpu_util_dl(rq);
	if (util >= scale)
		return scale;
	return min(scale, scale_irq_capacity(util, irq, scale) + irq);
}

void cpufreq_add_update_util_hook(int cpu, struct update_util_data *data,
				  void (*func)(struct update_util_data *, u64, unsigned int))
{
	assert(!m.hook[cpu]);
	data->func = func;
	m.hook[cpu] = data;
}

void cpufreq_remove_update_util_hook(int cpu) { m.hook[cpu] = NULL; }

bool cpufreq_this_cpu_can_update(struct cpufreq_policy *policy)
{
	return *policy->cpus >> m.cpu & 1;
}

unsigned int cpufreq_driver_resolve_freq(struct cpufreq_policy *policy, unsigned int freq)
{
	freq = (freq + KHZ_STEP - 1) / KHZ_STEP * KHZ_STEP;
	return min(max(freq, READ_ONCE(policy->min)), READ_ONCE(policy->max));
}

static void set_freq(unsigned int khz)
{
	m.changes++;
	m.policy.cur = khz;
}

unsigned int cpufreq_driver_fast_switch(struct cpufreq_policy *policy, unsigned int freq)
{
	set_freq(cpufreq_driver_resolve_freq(policy, freq));
	return policy->cur;
}

int __cpufreq_driver_target(struct cpufreq_policy *policy, unsigned int freq, unsigned int r)
{
	freq = cpufreq_driver_resolve_freq(policy, freq);
	if (freq != policy->cur)
		set_freq(freq);
	return 0;
}

void cpufreq_driver_adjust_perf(unsigned int cpu, unsigned long lo, unsigned long target,
				unsigned long capacity)
{
	unsigned int khz = cpufreq_driver_resolve_freq(&m.policy, target * KHZ_MAX / capacity);

	if (khz != m.policy.cur)
		set_freq(khz);
}

bool cpufreq_driver_has_adjust_perf(void) { return m.perf; }
bool cpufreq_driver_test_flags(unsigned int flags) { return false; }

void cpufreq_policy_apply_limits(struct cpufreq_policy *policy)
{
	__cpufreq_driver_target(policy, policy->cur, 0);
}

void shim_irq_work_queue(struct irq_work *w) { m.irq_work = w; }
void shim_kthread_queue(struct kthread_work *w) { m.work = w; m.work_at = m.now + 100000; }
void shim_kthread_cancel(void) { m.work = NULL; m.irq_work = NULL; }

/* Tasks and utilisation */

static void call_hook(int cpu, unsigned int flags)
{
	if (!m.hook[cpu])
		return;
	m.cpu = cpu;
	m.calls++;
	m.since_call[cpu] = 0;
	m.told[cpu] = cpu_util_cfs_boost(cpu);
	m.hook[cpu]->func(m.hook[cpu], m.now, flags);
}

static struct task *running_on(int cpu)
{
	for (struct task *t = m.task; t < m.task + MAX_TASKS; t++)
		if (t->cpu == cpu && t->runnable)
			return t;
	return NULL;
}

static void publish(int cpu)
{
	struct sched_avg *a = &shim_rq[cpu].cfs.avg;
	double util = 0, est = 0;
	unsigned int nr = 0;

	for (struct task *t = m.task; t < m.task + MAX_TASKS; t++) {
		if (t->cpu != cpu)
			continue;
		util += t->util;
		if (t->runnable) {
			m.running[cpu].se.avg = (struct sched_avg){
				.util_avg = t->util, .util_est = t->est,
			};
			est += t->est;
			nr++;
		}
	}
	a->util_avg = a->runnable_avg = min(util, 1024.0);
	a->util_est = est;
	shim_rq[cpu].nr_running = nr;
}

static void advance(int cpu, u64 dt)
{
	struct task *on = running_on(cpu);
	double speed = (double)m.policy.cur / KHZ_MAX, clock = dt * speed, keep;

	if (on) {
		m.lag[cpu] += dt - clock;
		m.busy[cpu] += dt;
		m.cycles[cpu] += clock;
	} else {
		clock = dt + m.lag[cpu];
		m.lag[cpu] = 0;
	}
	keep = exp2(-clock / HALFLIFE_NS);
	m.since_call[cpu] += clock;
	for (struct task *t = m.task; t < m.task + MAX_TASKS; t++) {
		if (t->cpu != cpu)
			continue;
		t->util *= keep;
		if (t == on)
			t->util += 1024 * (1 - keep);
	}
	if (on) {
		on->work -= dt * speed;
		m.work_done += dt * speed;
	}
}

static void changed(int cpu, bool attach, unsigned int flags)
{
	publish(cpu);
	if (attach || m.since_call[cpu] >= PERIOD_NS)
		call_hook(cpu, flags);
}

static void run_task(int cpu)
{
	if (shim_rq[cpu].curr == &m.idle[cpu])
		m.idle[cpu].nivcsw++;
	shim_rq[cpu].curr = &m.running[cpu];
}

static void task_wake(struct task *t, double work)
{
	bool attach = t->fresh;

	t->work = work;
	t->runnable = true;
	t->fresh = false;
	/* The clock of an idle CPU goes on until now. */
	if (shim_rq[t->cpu].curr == &m.idle[t->cpu])
		shim_rq[t->cpu].clock_idle = m.now;
	changed(t->cpu, attach, 0);
	run_task(t->cpu);
}

static void task_sleep(struct task *t, u64 until)
{
	int cpu = t->cpu;

	t->runnable = false;
	t->est = t->util;
	t->wake_at = until;
	shim_rq[cpu].curr->__state = !running_on(cpu);
	changed(cpu, false, 0);
	shim_rq[cpu].curr->__state = TASK_RUNNING;
	if (!running_on(cpu)) {
		shim_rq[cpu].curr = &m.idle[cpu];
		shim_rq[cpu].clock_idle = m.now;
		shim_rq[cpu].idle_calls++;
	}
}

static void task_migrate(struct task *t, int cpu)
{
	int old = t->cpu;

	t->cpu = cpu;
	if (old >= 0) {
		changed(old, true, 0);
		if (!running_on(old)) {
			shim_rq[old].curr = &m.idle[old];
			shim_rq[old].clock_idle = m.now;
			shim_rq[old].idle_calls++;
		}
	}
	changed(cpu, true, 0);
	if (t->runnable)
		run_task(cpu);
}

static void tick(int cpu)
{
	if (!running_on(cpu))
		return;
	shim_freq_scale[cpu] = m.busy[cpu] ? 1024 * m.cycles[cpu] / m.busy[cpu] : 1024;
	m.busy[cpu] = m.cycles[cpu] = 0;
#ifdef HAVE_TICK
	changed(cpu, false, SCHED_CPUFREQ_TICK_SOON);
	call_hook(cpu, SCHED_CPUFREQ_TICK);
#else
	changed(cpu, false, 0);
#endif
}

/* A core of the Sapphire Rapids machine file; idle in C1E, no uncore */
static void account(u64 dt)
{
	double ghz = m.policy.cur / 1e6, volt = 0.70 + 0.40 * (ghz - 0.8) / 3.0;
	double leak = 0.80 * pow(volt / 1.10, 3);

	for (int cpu = 0; cpu < m.cpus; cpu++)
		m.joules += (running_on(cpu) ? 2.82 * volt * volt * ghz + leak : 0.55) * dt * 1e-9;
}

static void deferred(void)
{
	if (m.irq_work) {
		struct irq_work *w = m.irq_work;

		m.irq_work = NULL;
		w->func(w);
	}
	if (m.work && m.now >= m.work_at) {
		struct kthread_work *w = m.work;

		m.work = NULL;
		w->func(w);
	}
}

static void step(void)
{
	m.now += STEP;
	for (int cpu = 0; cpu < m.cpus; cpu++)
		advance(cpu, STEP);
	account(STEP);
	deferred();
}

static bool tick_due(int cpu)
{
	return (m.now + cpu * STEP) % shim_tick_ns < STEP;
}

/* The governor */

static void tunable(const char *name, unsigned int value)
{
	struct sugov_policy *p = m.policy.governor_data;
	char text[16];

	snprintf(text, sizeof(text), "%u\n", value);
	for (struct attribute **a = sugov_attrs; *a; a++) {
		struct governor_attr *g = container_of(*a, struct governor_attr, attr);

		if (strcmp(g->attr.name, name))
			continue;
		mutex_lock(&p->tunables->attr_set.update_lock);
		assert(g->store(&p->tunables->attr_set, text, strlen(text)) > 0);
		mutex_unlock(&p->tunables->attr_set.update_lock);
	}
}

static char **settings;

static void governor_begin(void)
{
	assert(!schedutil_gov.init(&m.policy));
	for (char **s = settings; *s; s++) {
		char name[32];
		unsigned int value;

		if (sscanf(*s, "%31[a-z_]=%u", name, &value) == 2)
			tunable(name, value);
	}
	assert(!schedutil_gov.start(&m.policy));
	schedutil_gov.limits(&m.policy);
}

static void governor_end(void)
{
	schedutil_gov.stop(&m.policy);
	schedutil_gov.exit(&m.policy);
}

static void setup(int cpus)
{
	m.cpus = cpus;
	m.online = m.related = (1u << cpus) - 1;
	m.policy = (struct cpufreq_policy){
		.cpus = &m.online, .related_cpus = &m.related, .min = KHZ_MIN, .max = KHZ_MAX,
		.cur = KHZ_MIN, .cpuinfo = { KHZ_MAX, KHZ_MIN, 20000 },
		.transition_delay_us = 500, .fast_switch_enabled = !m.slow,
	};
	m.now = 1000 * MSEC;
	for (int cpu = 0; cpu < cpus; cpu++) {
		shim_rq[cpu].curr = shim_rq[cpu].idle = &m.idle[cpu];
		shim_freq_scale[cpu] = 1024;
	}
	for (int i = 0; i < MAX_TASKS; i++)
		m.task[i] = (struct task){ .cpu = -1 };
	governor_begin();
}

static unsigned int wanted(void)
{
	unsigned long util = 0, lo, hi;
	int cpu;

	for_each_cpu(cpu, m.policy.cpus) {
		unsigned long cfs = cpu_util_cfs_boost(cpu);

		/* Of an idle CPU all that a governor has is what it last said of itself. */
		if (!running_on(cpu))
			cfs = min(cfs, m.told[cpu]);
		util = max(util, effective_cpu_util(cpu, cfs, &lo, &hi));
	}
	util = min(util + (util >> 2), 1024UL);
	return cpufreq_driver_resolve_freq(&m.policy, util * KHZ_MAX / 1024);
}

/*
 * Scenarios: tasks of one CPU (two, if something migrates). A task works for
 * "work" ns at the highest frequency, then sleeps until the next period.
 */
struct scenario {
	const char *name;
	u64 period;
	double (*work)(u64 t, u32 i);	/* of the period that begins at t */
	u64 length;
	int cpus;
};

static double light(u64 t, u32 i) { return 0.05 * 10 * MSEC; }
static double work_step(u64 t, u32 i) { return t < 200 * MSEC || t >= 500 * MSEC ? light(t, i) : 300 * MSEC; }
static double work_ramp(u64 t, u32 i) { return (0.05 + 0.85 * t / (600.0 * MSEC)) * 10 * MSEC; }
static double work_noise(u64 t, u32 i) { return (0.2 + 0.2 * rnd(1000) / 1000) * 10 * MSEC; }
static double work_10(u64 t, u32 i) { return 0.1 * 20 * MSEC; }
static double work_30(u64 t, u32 i) { return 0.3 * 20 * MSEC; }
static double work_60(u64 t, u32 i) { return 0.6 * 20 * MSEC; }
static double work_random(u64 t, u32 i) { return (1 + rnd(60)) * MSEC; }
static double burst_2(u64 t, u32 i) { return 2 * MSEC; }
static double burst_10(u64 t, u32 i) { return 10 * MSEC; }
static double burst_50(u64 t, u32 i) { return 50 * MSEC; }
static double burst_200(u64 t, u32 i) { return 200 * MSEC; }

static const struct scenario scenarios[] = {
	{ "step", 10 * MSEC, work_step, 1000 * MSEC, 1 },
	{ "ramp", 10 * MSEC, work_ramp, 600 * MSEC, 1 },
	{ "noise", 10 * MSEC, work_noise, 600 * MSEC, 1 },
	{ "periodic", 20 * MSEC, work_30, 600 * MSEC, 1 },
	{ "migrating", 20 * MSEC, work_60, 600 * MSEC, 2 },
	{ "random", 60 * MSEC, work_random, 60000 * MSEC, 1 },
	{ "10%", 20 * MSEC, work_10, 20000 * MSEC, 1 },
	{ "30%", 20 * MSEC, work_30, 20000 * MSEC, 1 },
	{ "60%", 20 * MSEC, work_60, 20000 * MSEC, 1 },
	{ "burst-2", 500 * MSEC, burst_2, 50000 * MSEC, 1 },
	{ "burst-10", 500 * MSEC, burst_10, 50000 * MSEC, 1 },
	{ "burst-50", 1000 * MSEC, burst_50, 100000 * MSEC, 1 },
	{ "burst-200", 2000 * MSEC, burst_200, 100000 * MSEC, 1 },
};

/* The first periods of a load are new to the governor; after these it knows it. */
#define LEARNT		5

/* What a run is judged by */
static struct { double late, longest, learnt; u32 periods; } seen;

static void play(const struct scenario *s, bool print)
{
	struct task *t = &m.task[0], *other = &m.task[1];
	u64 begin = m.now, next = m.now, woken = 0;
	u32 i = 0;

	*t = (struct task){ .cpu = 0, .fresh = true };
	*other = (struct task){ .cpu = -1 };
	while (m.now - begin < s->length) {
		step();
		for (int cpu = 0; cpu < m.cpus; cpu++)
			if (tick_due(cpu))
				tick(cpu);
		if (t->runnable && t->work <= 0) {
			double ms = (m.now - woken) / 1e6;

			seen.late += ms;
			seen.longest = max(seen.longest, ms);
			if (++seen.periods == LEARNT)
				seen.learnt = m.joules;
			task_sleep(t, next);
		}
		if (!t->runnable && m.now >= next) {
			double work = s->work(next - begin, i++);

			next += max(s->period, (u64)work);
			/* Every fifth period on the other CPU of the same policy */
			if (s->cpus > 1)
				task_migrate(t, i / 5 % 2);
			woken = m.now;
			task_wake(t, work);
		}
		if (print && m.now % (MSEC / 4) < STEP)
			publish(0), printf("%.2f %u %u\n", (m.now - begin) / 1e6, wanted() / 1000,
			       m.policy.cur / 1000);
	}
}

static const struct scenario *find(const char *name)
{
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(*scenarios); i++)
		if (!strcmp(scenarios[i].name, name))
			return &scenarios[i];
	fprintf(stderr, "sim: no scenario %s\n", name);
	exit(2);
}

/* name energy_J energy_J_once_known work_s mean_ms longest_ms changes calls */
static void run_one(const char *name, bool print)
{
	const struct scenario *s = find(name);

	setup(s->cpus);
	play(s, print);
	if (!print)
		printf("%s %.3f %.3f %.4f %.3f %.3f %lu %lu\n", s->name, m.joules,
		       m.joules - seen.learnt, m.work_done / 1e9,
		       seen.periods ? seen.late / seen.periods : 0, seen.longest, m.changes,
		       m.calls);
}

static void pass(u64 until)
{
	while (m.now < until) {
		step();
		if (tick_due(0))
			tick(0);
	}
}

/* ms until the highest frequency is set */
static double until_top(void)
{
	u64 begin = m.now;

	while (m.policy.cur < KHZ_MAX && m.now - begin < 1000 * MSEC)
		pass(m.now + STEP);
	return (m.now - begin) / 1e6;
}

/* ms until it no longer is, if a CPU-bound task becomes light */
static double top_stays(struct task *t)
{
	u64 begin = m.now, next = m.now;

	while (m.policy.cur == KHZ_MAX && m.now - begin < 1000 * MSEC) {
		if (t->runnable && (next == begin || t->work <= 0)) {
			next += 10 * MSEC;
			task_sleep(t, next);
		} else if (!t->runnable && m.now >= next) {
			task_wake(t, light(0, 0));
		}
		pass(m.now + STEP);
	}
	return (m.now - begin) / 1e6;
}

static void play_light(u64 length)
{
	struct scenario s = { "light", 10 * MSEC, light, length, 1 };

	play(&s, false);
	while (m.task[0].runnable && m.task[0].work > 0)
		pass(m.now + STEP);
}

/*
 * A CPU-bound task in 50 phases of the tick, each in a slot of its own, so that they
 * are the same for each governor. "step" was light before, "new" has just been forked,
 * "return" used to be busy for 60 % of the time, "fall" has been CPU-bound for 300 ms
 * and becomes light: the others are ms until the highest frequency, this one ms for
 * which it stays.
 */
static void run_rise(const char *mode)
{
	struct task *t = &m.task[0];
	u64 slot;

	setup(1);
	slot = m.now;
	for (int i = 0; i < 50; i++, slot += 5000 * MSEC) {
		bool is_new = !strcmp(mode, "new"), returns = !strcmp(mode, "return");

		pass(slot);
		play_light(800 * MSEC + rnd(20000) * 1000ull);
		if (is_new || returns) {
			pass(m.now + 500 * MSEC);
			*t = (struct task){ .cpu = 0, .fresh = is_new, .util = is_new ? 512 : 0,
					    .est = returns ? 614 : 0 };
		}
		if (!t->runnable)
			task_wake(t, 1e12);
		t->work = 1e12;
		if (!strcmp(mode, "fall")) {
			pass(m.now + 300 * MSEC);
			printf("%.2f\n", top_stays(t));
		} else {
			printf("%.2f\n", until_top());
		}
		if (t->runnable)
			task_sleep(t, 0);
	}
}

#ifdef HAVE_TICK
/* One call of the hook, @ns after the one before */
static void held_call(u64 ns, unsigned long util, struct task_struct *curr, unsigned int nr)
{
	struct rq *rq = &shim_rq[0];

	m.now += ns;
	if (rq->curr == rq->idle) {
		rq->clock_idle = m.now;		/* until it is switched from */
		rq->idle->nivcsw += curr != rq->idle;
	}
	rq->curr = curr;
	rq->nr_running = nr;
	rq->cfs.avg.util_avg = rq->cfs.avg.runnable_avg = util;
	rq->cfs.avg.util_est = util / 2;
	call_hook(0, 0);
}

/* A request of a wake-up from idle that had to wait, and is the highest */
static void run_held(void)
{
	struct task_struct *idle = &m.idle[0], *task = &m.running[0];
	struct holdoff *h;

	setup(1);
	h = &((struct sugov_policy *)m.policy.governor_data)->holdoff;
	held_call(0, 300, task, 1);
	held_call(4 * MSEC, 400, task, 1);
	assert(h->set == 500 && !h->asked);
	shim_rq[0].curr = idle;
	held_call(100000, 420, idle, 0);
	assert(h->asked == 525);			/* has to wait */
	held_call(100000, 410, task, 1);
	assert(h->set == 500 && h->asked == 525);	/* still has, and its task runs */
	held_call(600000, 410, task, 1);
	assert(h->set == 525);				/* was not lost */
	held_call(4 * MSEC, 400, task, 1);
	held_call(0, 440, task, 1);
	assert(h->set == 550);
	held_call(100000, 460, task, 1);
	assert(h->asked == 575);
	shim_rq[0].curr = idle;				/* its task sleeps */
	shim_rq[0].idle_calls++;
	held_call(600000, 430, task, 1);
	assert(h->set == 537 && !h->asked);		/* and what it asked for is gone */
	printf("ok\n");
}
#else
static void run_held(void) { }
#endif

/*
 * Random life of a shared policy: tasks, hotplug, governor and limits. The
 * frequency must not stay below what is wanted for longer than the window and a
 * tick. That is looked at all the time, and judged at the ticks of a CPU that runs:
 * whoever only looks at ticks takes two short waits for a long one.
 */
static struct {
	unsigned long offline, online, switched, limits, tunables, migrations, checks, lost;
	double worst;
} life;

static u64 wrong_since;

static bool life_runs(void)
{
	for (int cpu = 0; cpu < m.cpus; cpu++)
		if (m.online >> cpu & 1 && running_on(cpu))
			return true;
	return false;
}

/* Falls wait for a CPU to idle, where there is one: what is lost are rises. */
static void life_look(void)
{
	static unsigned long changes;

	/* What is wrong after a change has a window of its own. */
	if (changes != m.changes || m.work || m.irq_work || wanted() <= m.policy.cur ||
	    !life_runs())
		wrong_since = 0;
	else if (!wrong_since)
		wrong_since = m.now;
	changes = m.changes;
}

static void life_check(u64 window)
{
	life_look();
	life.checks++;
	if (!wrong_since)
		return;
	life.worst = max(life.worst, (double)(m.now - wrong_since) / 1e6);
	if (m.now - wrong_since > window + shim_tick_ns + MSEC)
		life.lost++;
}

static void life_hotplug(void)
{
	int cpu = rnd(m.cpus);
	cpumask_t mask = m.online ^ 1u << cpu;

	if (!mask)
		return;
	for (struct task *t = m.task; t < m.task + MAX_TASKS; t++)
		if (t->cpu == cpu)
			task_migrate(t, __builtin_ctz(mask & ~(1u << cpu) ?: mask));
	schedutil_gov.stop(&m.policy);
	*(mask & 1u << cpu ? &life.online : &life.offline) += 1;
	m.online = mask;
	m.policy.cpu = __builtin_ctz(mask);
	assert(!schedutil_gov.start(&m.policy));
	schedutil_gov.limits(&m.policy);
}

static void life_event(void)
{
	switch (rnd(4)) {
	case 0:
		life_hotplug();
		break;
	case 1:
		life.switched++;
		governor_end();
		set_freq(rnd(2) ? m.policy.min : m.policy.max);	/* another governor's */
		governor_begin();
		break;
	case 2:
		life.limits++;
		m.policy.min = KHZ_MIN + rnd(8) * KHZ_STEP;
		m.policy.max = KHZ_MAX - rnd(16) * KHZ_STEP;
		schedutil_gov.limits(&m.policy);
		break;
	case 3:
		life.tunables++;
		tunable("urgent_up", rnd(1025));
		tunable("urgent_down", rnd(1025));
		break;
	}
}

static void life_task(struct task *t)
{
	if (t->runnable && t->work <= 0) {
		task_sleep(t, m.now + 1000ull * rnd(rnd(4) ? 20000 : 400000));
	} else if (!t->runnable && m.now >= t->wake_at) {
		int cpu = rnd(m.cpus);

		if (!rnd(4) && m.online >> cpu & 1) {
			life.migrations++;
			task_migrate(t, cpu);
		}
		task_wake(t, 1000.0 * rnd(rnd(8) ? 3000 : 100000));
	}
}

static void run_life(int cpus, double seconds)
{
	u64 end;

	STEP = 100000;
	setup(cpus);
	tunable("rate_limit_us", 500);
	for (int i = 0; i < cpus + cpus / 2; i++)
		m.task[i] = (struct task){ .cpu = i % cpus, .fresh = true };
	end = m.now + seconds * 1e9;
	while (m.now < end) {
		step();
		for (int i = 0; i < cpus + cpus / 2; i++)
			life_task(&m.task[i]);
		life_look();
		for (int cpu = 0; cpu < cpus; cpu++) {
			if (!tick_due(cpu) || !(m.online >> cpu & 1) || !running_on(cpu))
				continue;
			tick(cpu);
			deferred();
			life_check(500000);
		}
		if (!rnd(4000)) {	/* five a second */
			life_event();
			wrong_since = 0;
		}
	}
	printf("cpus %d seconds %.0f calls %lu changes %lu offline %lu online %lu switched %lu "
	       "limits %lu tunables %lu migrations %lu checks %lu lost %lu worst_ms %.2f\n",
	       cpus, seconds, m.calls, m.changes, life.offline, life.online, life.switched,
	       life.limits, life.tunables, life.migrations, life.checks, life.lost, life.worst);
}

/* The pace of the boost for IO: a stream of calls that does not depend on us */
static void run_pace(unsigned int calls)
{
	setup(1);
	for (unsigned int i = 0; i < calls; i++) {
		struct sched_avg *a = &shim_rq[0].cfs.avg;

		m.now += 1000ull * rnd(rnd(20) ? 800 : 9000);
		if (!rnd(4))
			a->util_avg = a->runnable_avg = rnd(rnd(2) ? 1024 : 64);
		if (rnd(2))
			shim_rq[0].idle_calls++;
		call_hook(0, rnd(6) ? 0 : SCHED_CPUFREQ_IOWAIT);
		printf("%u\n", sugov_cpu[0].iowait_boost);
	}
}

static void no_hook(struct update_util_data *data, u64 time, unsigned int flags)
{
	__asm__ volatile("");
}

/* Calls that change nothing, or all of which change the frequency, or of nothing */
static void run_cost(const char *kind, unsigned int calls)
{
	bool changing = strcmp(kind, "same");

	struct sched_avg *a = &shim_rq[0].cfs.avg;
	struct timespec begin, end;

	setup(1);
	shim_rq[0].curr = &m.running[0];
	if (!strcmp(kind, "none"))
		m.hook[0]->func = no_hook;
	for (unsigned int i = 0; i < 100 + calls; i++) {
		if (i == 100)
			clock_gettime(CLOCK_MONOTONIC, &begin);
		m.now += 4 * MSEC;
		a->util_avg = a->runnable_avg = changing ? i % 2 * 500 + 200 : 500 + i % 4;
		a->util_est = 200;	/* of what runs */
		shim_rq[0].idle_calls += changing;
		m.hook[0]->func(m.hook[0], m.now, 0);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%.2f ns %lu changes\n", ((end.tv_sec - begin.tv_sec) * 1e9 + end.tv_nsec -
					 begin.tv_nsec) / calls, m.changes);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	const char *arg = argc > 2 ? argv[2] : "";

	settings = argv + argc;
	for (int i = argc - 1; i > 1 && strchr(argv[i], '='); i--)
		settings = argv + i;
	for (char **s = settings; *s; s++) {
		unsigned int hz;

		if (sscanf(*s, "hz=%u", &hz) == 1)
			shim_tick_ns = NSEC_PER_SEC / hz;
		m.slow |= !strcmp(*s, "slow=1");
		m.perf |= !strcmp(*s, "perf=1");
	}
	if (!strcmp(mode, "plot"))
		run_one(arg, true);
	else if (!strcmp(mode, "run"))
		run_one(arg, false);
	else if (!strcmp(mode, "rise"))
		run_rise(arg);
	else if (!strcmp(mode, "life"))
		run_life(atoi(arg), argc > 3 ? atof(argv[3]) : 3600);
	else if (!strcmp(mode, "pace"))
		run_pace(100000);
	else if (!strcmp(mode, "held"))
		run_held();
	else if (!strcmp(mode, "cost"))
		run_cost(arg, argc > 3 ? atoi(argv[3]) : 100000);
	else
		return fprintf(stderr, "usage: sim plot|run|rise|held|life|pace|cost ...\n"), 2;
	return 0;
}
