// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the schedutil governor's source, unmodified, on a model of tasks, CPUs and
 * utilisation. It is compiled with the base's source and with ours. It is independent of
 * the host: equal arguments give equal output.
 *
 * What is modelled: utilisation of each task with a half-life of 32 periods of
 * 1.024 ms, on a clock that runs at the CPU's speed and catches up in idle; the
 * estimate of a task, as util_est_update() makes it when the task sleeps; groups of
 * one task that are throttled; the hook is called when a task wakes, sleeps or migrates
 * or at a tick, and a period of utilisation is full.
 */
#include "schedutil.h"
#include <math.h>

#include "kernel/sched/cpufreq_schedutil.c"

#include "machine.h"

#define PERIOD_NS	1024000.0
#define HALFLIFE_NS	(32 * PERIOD_NS)
#define MAX_TASKS	16
#define STEP		50000	/* ns of the model's clock */
#define THREAD		100000	/* ns until the governor's thread runs */

struct task {
	int cpu;		/* -1: not there */
	bool runnable, fresh;
	double work;		/* left, in ns at the highest frequency, or at any if ... */
	bool timed;		/* ... it takes as long at any frequency */
	bool throttled;		/* its utilisation stands still, that of its group does not */
	double util, group, est;
	u64 ran, began;		/* in all, and when it began to run this time */
};

static struct {
	struct task task[MAX_TASKS];
	double lag[MAX_CPUS], since_call[MAX_CPUS];	/* ns */
	double busy[MAX_CPUS], cycles[MAX_CPUS];
	unsigned long told[MAX_CPUS];	/* utilisation at the last call of the hook */
	unsigned long calls, changes;
	double joules, work_done;
	unsigned int idle_state;	/* of idle CPUs: 1 is C1, 6 is C6, any other C1E */
	unsigned int noise;		/* interrupts take 0 to twice as many units */
} sim;

static void request(unsigned long level, unsigned long min_perf)
{
	static unsigned int last = KHZ_MIN;

	sim.changes += m.policy.cur != last;
	last = m.policy.cur;
}

static void tell(int cpu, unsigned int flags)
{
	sim.calls++;
	sim.since_call[cpu] = 0;
	sim.told[cpu] = cpu_util_cfs_boost(cpu);
	call_hook(cpu, cpu, flags);
}

static struct task *running_on(int cpu)
{
	for (struct task *t = sim.task; t < sim.task + MAX_TASKS; t++)
		if (t->cpu == cpu && t->runnable)
			return t;
	return NULL;
}

static void publish(int cpu)
{
	struct sched_avg *a = &shim_rq[cpu].cfs.avg;
	struct task *on = running_on(cpu);
	double util = 0, est = 0;
	unsigned int nr = 0;

	if (on) {
		m.running[cpu].se.avg = (struct sched_avg){
			.util_avg = on->util, .util_est = on->est,
		};
		m.running[cpu].se.sum_exec_runtime = on->ran;
		m.running[cpu].se.prev_sum_exec_runtime = on->began;
	}
	for (struct task *t = sim.task; t < sim.task + MAX_TASKS; t++) {
		if (t->cpu != cpu)
			continue;
		util += t->group;
		if (t->runnable) {
			est += t->est;
			nr++;
		}
	}
	if (sim.noise)
		shim_rq[cpu].avg_irq.util_avg = rnd(2 * sim.noise + 1);
	a->util_avg = a->runnable_avg = min(util, 1024.0);
	a->util_est = est;
	shim_rq[cpu].nr_running = nr;
}

static void advance(int cpu, u64 dt)
{
	struct task *on = running_on(cpu);
	double speed = (double)m.policy.cur / KHZ_MAX, clock = dt * speed, keep;

	if (on) {
		sim.lag[cpu] += dt - clock;
		sim.busy[cpu] += dt;
		sim.cycles[cpu] += clock;
	} else {
		clock = dt + sim.lag[cpu];
		sim.lag[cpu] = 0;
	}
	keep = exp2(-clock / HALFLIFE_NS);
	sim.since_call[cpu] += clock;
	for (struct task *t = sim.task; t < sim.task + MAX_TASKS; t++) {
		if (t->cpu != cpu)
			continue;
		t->group = t->group * keep + (t == on) * 1024 * (1 - keep);
		if (!t->throttled)
			t->util = t->util * keep + (t == on) * 1024 * (1 - keep);
	}
	if (on) {
		on->ran += dt;
		on->work -= on->timed ? dt : dt * speed;
		sim.work_done += dt * speed;
	}
}

static void changed(int cpu, bool attach, unsigned int flags)
{
	publish(cpu);
	if (attach || sim.since_call[cpu] >= PERIOD_NS)
		tell(cpu, flags);
}

static void run_task(int cpu)
{
	if (shim_rq[cpu].curr == &m.idle[cpu])
		m.idle[cpu].nivcsw++;
	shim_rq[cpu].curr = &m.running[cpu];
}

/* The clock of an idle CPU goes on. Its tick stops if the idle time is longer than one. */
static void idle_until_now(struct rq *rq)
{
	rq->idle_calls += m.now - rq->clock_idle >= shim_tick_ns;
	rq->clock_idle = m.now;
}

static void task_wake(struct task *t, double work)
{
	bool attach = t->fresh;

	t->work = work;
	t->began = t->ran;
	t->runnable = true;
	t->fresh = false;
	if (shim_rq[t->cpu].curr == &m.idle[t->cpu])
		idle_until_now(&shim_rq[t->cpu]);
	changed(t->cpu, attach, 0);
	run_task(t->cpu);
}

static void task_sleep(struct task *t)
{
	int cpu = t->cpu;

	t->runnable = false;
	if (!t->throttled && t->est <= t->util)
		t->est = t->util;
	else if (!t->throttled && t->est - t->util >= 10)
		t->est -= (t->est - t->util) / 4;
	shim_rq[cpu].curr->__state = !running_on(cpu);
	changed(cpu, false, 0);
	shim_rq[cpu].curr->__state = TASK_RUNNING;
	if (!running_on(cpu)) {
		shim_rq[cpu].curr = &m.idle[cpu];
		shim_rq[cpu].clock_idle = shim_rq[cpu].idle_stamp = m.now;
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
			shim_rq[old].clock_idle = shim_rq[old].idle_stamp = m.now;
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
	shim_freq_scale[cpu] = sim.busy[cpu] ? 1024 * sim.cycles[cpu] / sim.busy[cpu] : 1024;
	sim.busy[cpu] = sim.cycles[cpu] = 0;
	changed(cpu, false, 0);
}

/*
 * A core of the Sapphire Rapids machine file, without uncore. An idle core is in C1E, at
 * the lowest clock; in C1, at the requested clock, where it takes 5 % of busy plus its
 * leakage; or in C6, which takes next to nothing.
 */
static void account(u64 dt)
{
	double ghz = m.policy.cur / 1e6, volt = 0.70 + 0.40 * (ghz - 0.8) / 3.0;
	double leak = 0.80 * pow(volt / 1.10, 3), dynamic = 2.82 * volt * volt * ghz;
	double idle = sim.idle_state == 1 ? 0.05 * dynamic + leak : sim.idle_state == 6 ? 0.03 : 0.55;

	for (int cpu = 0; cpu < m.cpus; cpu++)
		sim.joules += (running_on(cpu) ? dynamic + leak : idle) * dt * 1e-9;
}

static void step(void)
{
	m.now += STEP;
	for (int cpu = 0; cpu < m.cpus; cpu++)
		advance(cpu, STEP);
	account(STEP);
	deferred(THREAD);
}

static bool tick_due(int cpu)
{
	return (m.now + cpu * STEP) % shim_tick_ns < STEP;
}

/* The governor */

static char **settings;

static void setup(int cpus)
{
	machine_init(cpus);
	for (int i = 0; i < MAX_TASKS; i++)
		sim.task[i] = (struct task){ .cpu = -1 };
	for (char **word = settings; *word; word++) {
		char name[32];
		unsigned int value;

		if (sscanf(*word, "%31[a-z_]=%u", name, &value) == 2)
			tunable(name, value);
	}
	governor_start();
}

static unsigned int wanted(void)
{
	unsigned long util = 0, lo, hi;
	int cpu;

	for_each_cpu(cpu, m.policy.cpus) {
		unsigned long cfs = cpu_util_cfs_boost(cpu);

		/* Of an idle CPU all that a governor has is what it last said of itself. */
		if (!running_on(cpu))
			cfs = min(cfs, sim.told[cpu]);
		util = max(util, effective_cpu_util(cpu, cfs, &lo, &hi));
	}
	util = min(util + (util >> 2), 1024UL);
	return cpufreq_driver_resolve_freq(&m.policy, util * KHZ_MAX / 1024);
}

/*
 * Scenarios: tasks of one CPU (two, if something migrates). A task works for
 * "work" ns at the highest frequency, then sleeps until the next period. A TIMED one is
 * busy for "work" ns at any frequency, then sleeps for up to a period. One with a QUOTA
 * always has work, and may be busy for "work" ns in each period.
 */
struct scenario {
	const char *name;
	u64 period;
	double (*work)(u64 t, u32 i);	/* of the period that begins at t */
	u64 length;
	int cpus;
	enum { WORK, TIMED, QUOTA } kind;
};

static double light(u64 t, u32 i) { return 0.05 * 10 * MSEC; }
static double work_step(u64 t, u32 i) { return t < 200 * MSEC || t >= 500 * MSEC ? light(t, i) : 300 * MSEC; }
static double work_ramp(u64 t, u32 i) { return (0.05 + 0.85 * t / (600.0 * MSEC)) * 10 * MSEC; }
static double work_noise(u64 t, u32 i) { return (0.2 + 0.2 * rnd(1000) / 1000) * 10 * MSEC; }
static double work_10(u64 t, u32 i) { return 0.1 * 20 * MSEC; }
static double work_30(u64 t, u32 i) { return 0.3 * 20 * MSEC; }
static double work_60(u64 t, u32 i) { return 0.6 * 20 * MSEC; }
static double work_random(u64 t, u32 i) { return (1 + rnd(60)) * MSEC; }
static double work_any(u64 t, u32 i) { return rnd(20000) * (MSEC / 1000); }
static double work_long(u64 t, u32 i) { return rnd(100000) * (MSEC / 1000); }
static double burst_2(u64 t, u32 i) { return 2 * MSEC; }
static double burst_10(u64 t, u32 i) { return 10 * MSEC; }
static double burst_50(u64 t, u32 i) { return 50 * MSEC; }
static double burst_20(u64 t, u32 i) { return 20 * MSEC; }
static double burst_100(u64 t, u32 i) { return 100 * MSEC; }
static double half_long(u64 t, u32 i) { return rnd(50000) * (MSEC / 1000); }
static double burst_200(u64 t, u32 i) { return 200 * MSEC; }

static const struct scenario scenarios[] = {
	{ "step", 10 * MSEC, work_step, 1000 * MSEC, 1 },
	{ "ramp", 10 * MSEC, work_ramp, 600 * MSEC, 1 },
	{ "noise", 10 * MSEC, work_noise, 600 * MSEC, 1 },
	{ "periodic", 20 * MSEC, work_30, 600 * MSEC, 1 },
	{ "migrating", 20 * MSEC, work_60, 600 * MSEC, 2 },
	{ "random", 60 * MSEC, work_random, 60000 * MSEC, 1 },
	{ "timed-20", 20 * MSEC, work_any, 60000 * MSEC, 1, TIMED },
	{ "timed-50", 50 * MSEC, half_long, 60000 * MSEC, 1, TIMED },
	{ "timed-100", 100 * MSEC, work_long, 60000 * MSEC, 1, TIMED },
	{ "fixed-20", 100 * MSEC, burst_20, 60000 * MSEC, 1, TIMED },
	{ "fixed-50", 200 * MSEC, burst_50, 60000 * MSEC, 1, TIMED },
	{ "fixed-100", 400 * MSEC, burst_100, 60000 * MSEC, 1, TIMED },
	{ "quota-50", 100 * MSEC, burst_50, 20000 * MSEC, 1, QUOTA },
	{ "quota-20", 100 * MSEC, burst_20, 20000 * MSEC, 1, QUOTA },
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
	struct task *t = &sim.task[0], *other = &sim.task[1];
	u64 begin = m.now, next = m.now, woken = 0;
	u32 i = 0;

	*t = (struct task){ .cpu = 0, .fresh = true, .timed = s->kind != WORK };
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
				seen.learnt = sim.joules;
			if (s->kind == TIMED)
				next = m.now + rnd(s->period / 1000) * 1000;
			t->throttled = s->kind == QUOTA;
			task_sleep(t);
		}
		if (!t->runnable && m.now >= next) {
			double work = s->work(next - begin, i++);

			if (s->kind != TIMED)
				next += max(s->period, (u64)work);
			t->throttled = false;
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
		printf("%s %.3f %.3f %.4f %.3f %.3f %lu %lu\n", s->name, sim.joules,
		       sim.joules - seen.learnt, sim.work_done / 1e9,
		       seen.periods ? seen.late / seen.periods : 0, seen.longest, sim.changes,
		       sim.calls);
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
			task_sleep(t);
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
	while (sim.task[0].runnable && sim.task[0].work > 0)
		pass(m.now + STEP);
}

/*
 * A CPU-bound task in 50 phases of the tick, each in a slot of its own, so that they
 * are the same for each governor. "step" was light before, "new" has just been forked,
 * "return" used to be busy for 60 % of the time, "behind" has just been forked @rest ms
 * after the end of another's burst of 300 ms: ms until the highest frequency. "fall" has
 * been CPU-bound for 300 ms and becomes light: ms until the highest frequency ends.
 */
static void run_rise(const char *mode, unsigned int rest)
{
	struct task *t = &sim.task[0];
	u64 slot;

	setup(1);
	slot = m.now;
	for (int i = 0; i < 50; i++, slot += 5000 * MSEC) {
		bool behind = !strcmp(mode, "behind"), returns = !strcmp(mode, "return");
		bool is_new = behind || !strcmp(mode, "new");

		pass(slot);
		play_light(800 * MSEC + rnd(20000) * 1000ull);
		if (behind) {
			*t = (struct task){ .cpu = 0, .fresh = true, .util = 512, .group = 512 };
			task_wake(t, 1e12);
			pass(m.now + 300 * MSEC);
			task_sleep(t);
			rest = rest ?: 500;
		}
		if (is_new || returns) {
			pass(m.now + (behind ? rest : 500) * MSEC);
			*t = (struct task){ .cpu = 0, .fresh = is_new, .util = is_new ? 512 : 0,
					    .group = is_new ? 512 : 0, .est = returns ? 614 : 0 };
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
			task_sleep(t);
	}
}

static void run_for(struct task *t, double work)
{
	task_wake(t, work);
	while (t->work > 0)
		pass(m.now + STEP);
	task_sleep(t);
}

/*
 * 150 processes one after the other, each of up to @most us of work, with a pause of
 * @rest us after it. A shell forks them; a new one begins with the shell's utilisation.
 * Output: ms, J, changes.
 */
static void run_processes(unsigned int most, unsigned int rest)
{
	struct task *shell = &sim.task[0], *process = &sim.task[1];
	u64 begin;

	setup(1);
	*shell = (struct task){ .cpu = 0, .fresh = true };
	begin = m.now;
	for (int i = 0; i < 150; i++) {
		double util = shell->util < 1 ? 512 : min(shell->util, 512.0);

		run_for(shell, 0.15 * MSEC);
		*process = (struct task){ .cpu = 0, .fresh = true, .util = util, .group = util };
		run_for(process, rnd(most) * 1000.0);
		process->cpu = -1;
		pass(m.now + rest * 1000ull);
	}
	printf("%.1f %.3f %lu\n", (m.now - begin) / 1e6, sim.joules, sim.changes);
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

	setup(1);
	shim_rq[0].curr = &m.running[0];
	if (!strcmp(kind, "none"))
		cpufreq_update_util_data[0]->func = no_hook;
	for (unsigned int i = 0; i < 100 + calls; i++) {
		m.now += 4 * MSEC;
		a->util_avg = a->runnable_avg = changing ? i % 2 * 500 + 200 : 500 + i % 4;
		a->util_est = 200;	/* of what runs */
		if (changing) {		/* after it idled */
			shim_rq[0].curr = shim_rq[0].idle;
			shim_rq[0].idle_stamp = ~0ull;	/* longer than a tick ago, after the last call */
			shim_rq[0].idle_calls++;
			shim_rq[0].clock_idle = m.now;
		}
		call_hook(0, 0, 0);
		shim_rq[0].curr = &m.running[0];
	}
	printf("%lu changes\n", sim.changes);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	const char *arg = argc > 2 ? argv[2] : "";

	settings = argv + argc;
	for (int i = argc - 1; i > 1 && strchr(argv[i], '='); i--)
		settings = argv + i;
	for (char **word = settings; *word; word++) {
		unsigned int hz;

		if (sscanf(*word, "hz=%u", &hz) == 1)
			shim_tick_ns = NSEC_PER_SEC / hz;
		sscanf(*word, "noise=%u", &sim.noise);
		sscanf(*word, "idle=%u", &sim.idle_state);
		m.any_frequency |= !strcmp(*word, "any=1");
		m.slow |= !strcmp(*word, "slow=1");
		m.perf |= !strcmp(*word, "perf=1");
	}
	if (!strcmp(mode, "plot"))
		run_one(arg, true);
	else if (!strcmp(mode, "run"))
		run_one(arg, false);
	else if (!strcmp(mode, "rise"))
		run_rise(arg, argc > 3 ? atoi(argv[3]) : 0);
	else if (!strcmp(mode, "processes"))
		run_processes(atoi(arg), argc > 3 ? atoi(argv[3]) : 0);
	else if (!strcmp(mode, "cost"))
		run_cost(arg, argc > 3 ? atoi(argv[3]) : 100000);
	else
		return fprintf(stderr, "usage: sim plot|run|rise|processes|cost ...\n"), 2;
	return 0;
}
