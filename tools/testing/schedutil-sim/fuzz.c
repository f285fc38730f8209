// SPDX-License-Identifier: GPL-2.0
/*
 * Random calls of the schedutil governor's hook, and an oracle that judges what it
 * requests. The governor is compiled unmodified, GOVERNOR names its source. The oracle
 * knows what the scheduler, the driver and sysfs see, and nothing of the governor.
 *
 * The need of a CPU is computed from the documented formulas in floating point. It is a
 * range, because the kernel's integers round down, and because the boost for IO may be
 * anything up to its documented limit. A policy needs the most that one of its CPUs
 * needs. "window" is the rate limit. Rules for each call of the hook, and what differs
 * for "contract=ours" in brackets:
 *
 *  asked	each request is what utilisation asks for in this call, or with the
 *		governor's thread in a call since the thread last ran [or the maximum, if a
 *		busy CPU needs all but 1/32 of it; or what a CPU that was saturated needed
 *		since it last idled for long]
 *  late	the first call after the window requests a rise [on a busy CPU one of less
 *		than 1/16 once it has been needed for SETTLE]
 *  stuck	the first call after the window requests a fall if the CPU has idled for long,
 *		so that its tick stopped [the first call of any CPU that leaves idle after more
 *		than a tick or after 128 ms of less need, if its tick stopped, or after 128 ms in
 *		idle, unless it is idle and calls itself;
 *		a fall of less than 1/64 perhaps never; with several CPUs, or by a clamp, a tick
 *		later]
 *  early	no fall unless the CPU has idled for long since the last request, and no change
 *		in the window [a CPU that was saturated since then may fall, but not below
 *		what it had before]
 *  limits	the first call after a change of limits, and after the start of the governor,
 *		requests what utilisation asks for within the limits
 *  deadline	more deadline bandwidth is requested at once
 *  useless	no request of the frequency that the driver has
 *  floor	after each call out of the window, the driver knows the minimum performance
 *		that deadlines and clamps ask for [1/64 less, or 1/16 more]
 *  remote	a CPU outside of the policy requests nothing
 *
 * Capacity and frequency invariance change at any time.
 */
#include <limits.h>
#include "schedutil.h"

#include "kernel/sched/cpufreq_schedutil.c"

#include "machine.h"

#define SETTLE		(10 * MSEC)
#define HOLD		(128 * MSEC)
#define BUSY		max(3 * MSEC, shim_tick_ns)	/* a CPU may be saturated */
#define BEHIND		10000	/* largest difference of clocks, ns */
#define ROUNDING	2.3	/* two roundings down, one of them before 5/4 */
#define FAIR_SERVER	52428	/* 50 ms of 1 s, of 1 << BW_SHIFT */

enum rule { ASKED, LATE, STUCK, EARLY, LIMITS, DEADLINE, USELESS, FLOOR, REMOTE, RULES };
static const char *const rule_names[] = {
	"asked", "late", "stuck", "early", "limits", "deadline", "useless", "floor", "remote",
};

/* What streams may contain; all is "a mix of all" */
enum feature { RT = 1, DL = 2, IRQ = 4, UCLAMP = 8, SCX = 16, IO = 32, BARE = 64,
	       PAIRS = 128, QUOTA = 256 };
static const struct { const char *name; unsigned int set; } features[] = {
	{ "fair", 0 }, { "rt", RT }, { "dl", DL }, { "irq", IRQ }, { "uclamp", UCLAMP },
	{ "scx", SCX }, { "io", IO }, { "bare", BARE }, { "pairs", PAIRS },
	{ "quota", QUOTA | UCLAMP },
	{ "mix", RT | DL | IRQ | UCLAMP | SCX | IO | PAIRS },
};

static struct {
	bool ours;		/* contract */
	unsigned int features;
	int cpus;
	u64 window;
	bool chosen_window, trace;
} run;

/* The stream's state beside the machine's */
static struct {
	unsigned int stream, step;
	unsigned int features;
	bool may_saturate[MAX_CPUS], saturated[MAX_CPUS];	/* since it was idle */
	double boost[MAX_CPUS];		/* the most that IO gives, of 1024 */
	u64 called[MAX_CPUS];		/* last call that counts for the boost */
	u64 seen[MAX_CPUS];		/* idle_stamp at the last call */
	bool again;			/* not the first call in this idle time */
	bool stops[MAX_CPUS];		/* the tick in this idle time */
	struct { unsigned int util, at; } quota[MAX_CPUS];	/* what it asks for, since when */
	unsigned long idled, stopped, boosted, changed, due, called_last;	/* numbers of calls */
	unsigned long since;		/* st.idled when the next two began: */
	double most;			/* that was needed */
	unsigned long before;		/* level of a CPU that cannot have been saturated */
	u64 before_at;
	u64 needed;			/* when the level last was for sure */
	unsigned long seq;
} st;

/* The oracle */
static struct {
	unsigned long level;		/* last requested; 0: nothing since the start */
	u64 changed;			/* no later than this */
	u64 decided;			/* by the clock of the CPU that did it */
	u64 rising;			/* since when only the delay holds it back */
	u64 due;			/* since when the window is over; the same for */
	u64 more, large_more, less;	/* what is needed */
	double floor_max[MAX_CPUS], floor_min[MAX_CPUS];	/* seen since the change */
	bool limits;			/* nothing was requested since they changed */
	bool applying;			/* the limits are being applied */
	bool refused;			/* a call with more deadline bandwidth was refused */
	bool unheard;			/* a call of a CPU that needs more was refused */
	bool ranged;			/* no unit and no limit changed since a request */
	bool requested;
	unsigned long got, got_min, told;	/* told: the least performance */
	unsigned long lo, hi;		/* that calls since the thread ran asked for */
	double whole;			/* what all of the capacity is in levels */
} o;

static unsigned long checked[RULES], calls, requests;

/* @plain: as if no CPU were saturated */
struct need { double lo, hi, plain, floor; bool capped; };

static void report(enum rule rule, const char *text, const struct need *n, int cpu,
		   unsigned int flags)
{
	printf("FAIL %s: %s\n  stream %u step %u cpu %d flags %u at %.3f ms: level %lu for %.3f ms, "
	       "needed %.1f to %.1f, rising %.3f ms, %s%lu\n",
	       rule_names[rule], text, st.stream, st.step, cpu, flags, m.now / 1e6, o.level,
	       (m.now - o.changed) / 1e6, n->lo, n->hi, o.rising ? (m.now - o.rising) / 1e6 : 0,
	       o.requested ? "requested " : "no request ",
	       o.requested ? o.got : 0);
	printf("  window %.1f ms, tick %.0f ms, capacity %lu, %s, %s, inputs %u, limits %u to %u%s%s%s\n",
	       run.window / 1e6, shim_tick_ns / 1e6, shim_capacity,
	       shim_invariant ? "invariant" : "not invariant",
	       m.any_frequency ? "any frequency" : "table", st.features, m.policy.min, m.policy.max,
	       m.every_limit ? ", told of each limit" : "", shim_scx_switched_all ? ", all scx" : "",
	       n->capped ? ", capped" : "");
	exit(1);
}

#define require(rule, condition, text)						\
do {										\
	checked[rule]++;							\
	if (!(condition))							\
		report(rule, text, &n, cpu, flags);				\
} while (0)

static double fmin2(double a, double b) { return a < b ? a : b; }
static double fmax2(double a, double b) { return a > b ? a : b; }

/* 5/4 of what is used, no more than the clamp and no less than what is guaranteed */
static double wanted(double used, double floor, double top)
{
	return fmax2(fmin2(used * 5 / 4, top), floor);
}

static bool shared(void) { return m.online & (m.online - 1); }
static u64 differ(void) { return shared() ? BEHIND : 0; }

static bool runs(int cpu) { return shim_rq[cpu].curr != shim_rq[cpu].idle; }
static u64 busy_for(int cpu) { return clock_of(cpu) - shim_rq[cpu].clock_idle; }
static double bandwidth(int cpu) { return shim_rq[cpu].dl.running_bw * 1024 >> BW_SHIFT; }

/* Until it expires */
static unsigned int quota_asks(int cpu)
{
	return jiffies - st.quota[cpu].at <= 9 ? st.quota[cpu].util : 0;
}

static struct need need_of(int cpu)
{
	struct rq *rq = &shim_rq[cpu];
	struct sched_avg *a = &rq->cfs.avg;
	double cap = shim_capacity, irq = rq->avg_irq.util_avg, top = cap, used = 0, extra;
	double fair = fmin2(fmax2(fmax2(a->util_avg, a->runnable_avg), a->util_est), cap);
	struct need n = { .floor = cap };

	if (run.ours && st.features & PAIRS && !shim_scx_switched_all)
		fair = fmin2(fmax2(fair, rq->pairs), cap);
	if (run.ours && st.features & QUOTA && !shim_scx_switched_all)
		fair = fmin2(fmax2(fair, quota_asks(cpu)), cap);
	if (shim_scx_enabled)
		used = rq->scx.cpuperf_target;
	if (!shim_scx_switched_all)
		used += fair;
	used += rq->avg_rt.util_avg + rq->avg_dl.util_avg;
	if (irq >= cap || used >= cap)
		used = cap;
	else
		used = used * (cap - irq) / cap + irq;
	if (irq < cap) {
		n.floor = irq + bandwidth(cpu);
		if (sched_uclamp_used)
			n.floor = fmax2(n.floor, rq->uclamp[UCLAMP_MIN].value);
		else if (rq->rt.rt_nr_running)
			n.floor = fmax2(n.floor, cap);
		top = fmin2(cap, rq->uclamp[UCLAMP_MAX].value);
	}
	extra = m.now - st.called[cpu] > shim_tick_ns + differ() ? 0 : st.boost[cpu] * cap / 1024;
	n.plain = wanted(used, n.floor, top);
	n.lo = wanted(st.saturated[cpu] && shim_invariant ? cap : used, n.floor, top);
	n.hi = wanted(st.may_saturate[cpu] && shim_invariant ? cap : fmax2(used, extra), n.floor, top);
	/* A busy CPU that needs nearly all of what it may have may get all. */
	if (run.ours && busy_for(cpu) + differ() >= BUSY && n.hi + cap / 32 + 1 >= top)
		n.hi = fmax2(n.hi, top);
	n.capped = sched_uclamp_used && rq->uclamp[UCLAMP_MAX].value < 1024 &&
		   fmin2(fmax2(a->util_avg, a->util_est), cap) + rq->avg_rt.util_avg >=
		   rq->uclamp[UCLAMP_MAX].value;
	return n;
}

static bool on_perf_path(void) { return m.perf && !m.slow && shim_invariant && !shared(); }

/* What all of the capacity is in levels */
static double whole(void)
{
	if (on_perf_path())
		return shim_capacity;
	return shim_invariant ? KHZ_MAX : m.policy.cur * 5 / 4;
}

static unsigned long level_of(double util)
{
	if (on_perf_path())
		return fmax2(util, 0);
	return cpufreq_driver_resolve_freq(&m.policy, fmax2(util, 0) * o.whole / shim_capacity);
}

static struct need policy_need(void)
{
	struct need all = { 0 };
	int cpu;

	for_each_cpu(cpu, &m.online) {
		struct need n = need_of(cpu);

		all.lo = fmax2(all.lo, n.lo);
		all.hi = fmax2(all.hi, n.hi);
		all.plain = fmax2(all.plain, n.plain);
		all.capped |= n.capped;
		all.floor = n.floor;
	}
	return all;
}

static void request(unsigned long level, unsigned long min_perf)
{
	requests++;
	o.requested = true;
	o.got = level;
	o.got_min = min_perf;
	if (o.applying)
		o.level = level;
}

/* What was requested is what the calls since the last request asked for. */
static void judge_request(struct need n, int cpu, unsigned int flags, bool exempt)
{
	unsigned long lo = o.lo, hi = o.hi;
	bool kept = on_perf_path() && o.got == o.level;

	if (!on_perf_path()) {		/* limits may have changed before the thread ran */
		lo = clamp_val(lo, m.policy.min, m.policy.max);
		hi = clamp_val(hi, m.policy.min, m.policy.max);
	}
	require(ASKED, kept || (o.got >= lo && o.got <= hi), "nobody asked for this");
	if (!on_perf_path() && !m.slow && o.level && !(m.every_limit && exempt))
		require(USELESS, o.got != o.level, "the driver has this frequency");
	if (o.got < o.level && !shared() && !exempt)
		require(EARLY, st.idled > st.changed || st.boosted >= st.changed, "a fall, but the CPU has not idled");
}

static void settled(void)
{
	o.ranged = true;
	o.level = o.got;
	o.told = o.got_min;
	o.rising = o.due = o.more = o.large_more = o.less = 0;
	o.unheard = false;
}

static bool thread_pending(void) { return m.irq_work || m.work; }

/* Since when is something so? */
static void note(u64 *since, bool is_so)
{
	*since = is_so ? *since ?: m.now : 0;
}

static bool passed(u64 since, u64 ns) { return since && m.now - since >= ns + differ(); }

/* Of several CPUs, only the one that calls may be looked at for a tick. */
static u64 two_ticks(void) { return shared() ? 2 * shim_tick_ns : 0; }
static bool looked(u64 since) { return shared() && passed(since, two_ticks()); }

/* Is the window that began at @time over by the clock of @cpu? */
static bool after(int cpu, u64 time)
{
	return (s64)(clock_of(cpu) - time) >= (s64)run.window;
}

/* After each call of the hook: @leaving says that no task stays on the CPU. */
static void judge(int cpu, unsigned int flags, bool leaving, bool queued)
{
	struct need n = policy_need(), own = need_of(cpu);
	unsigned long lo = level_of(n.lo - ROUNDING), hi = level_of(n.hi), was = o.level, now;
	double dl = bandwidth(cpu), slack = on_perf_path() ? 3 : KHZ_STEP;
	bool must_rise, must_fall, more_dl = dl > o.floor_max[cpu], limits = o.limits;
	bool free = shim_scx_switched_all || n.capped, maybe_dl = o.refused || dl > o.floor_min[cpu];
	bool over = after(cpu, o.decided), busy = busy_for(cpu) >= BUSY;

	if (st.since != st.idled || m.now - st.before_at > HOLD)
		st.before = 0;
	if (st.since < st.stopped)
		st.most = 0;
	st.since = st.idled;
	st.most = fmax2(st.most, n.hi);
	o.lo = min(o.lo, lo);
	o.hi = max(o.hi, hi);
	if (run.ours && !shared() && st.boosted > st.stopped && (on_perf_path() || !limits))
		o.hi = max(o.hi, level_of(st.most));
	if (run.trace)
		printf("%u.%u cpu %d flags %u %.3f ms: needs %lu to %lu%s, %lu -> %lu\n", st.stream,
		       st.step, cpu, flags, m.now / 1e6, lo, hi, leaving ? ", leaves" : free ? ", free" : "", was,
		       o.requested ? o.got : was);
	if (o.requested || queued)
		require(EARLY, over || limits || maybe_dl, "a change in the window");
	if (o.requested)
		judge_request(n, cpu, flags, free || limits || maybe_dl);
	if (free || limits || maybe_dl || more_dl)
		st.before = 0;
	if (run.ours && o.requested && !shared() && !m.slow) {
		require(EARLY, o.got + o.whole / 64 + slack >= st.before,
			"less than it had before it was saturated");
		if (!st.may_saturate[cpu]) {
			st.before = o.got;
			st.before_at = m.now;
		}
	}
	now = o.requested ? o.got : was;
	/* What it runs next will ask. */
	bool idle = run.ours && idle_cpu(cpu) && !cpu_rq(cpu)->cfs.avg.util_est && shim_cpu == cpu;

	note(&o.due, after(cpu, o.changed));
	must_rise = was && lo > was && o.due;
	must_fall = hi < was && o.due && (free || shared() || st.idled > st.due);
	if (run.ours) {
		/* Whatever is above the capacity is the highest level. */
		unsigned long top = on_perf_path() ? shim_capacity : ULONG_MAX;
		double rise = (double)min(lo, top) - was, fall = (double)min(was, top) - hi;
		bool asks = level_of(own.lo - ROUNDING) > was, asked = asks || o.unheard;

		note(&o.more, rise > 0);
		note(&o.large_more, rise >= o.whole / 16 + slack);
		note(&o.rising, rise > 0 && o.due && (asked || looked(o.more)));
		must_rise = must_rise && rise > 0 &&
			    ((asked ? o.large_more || !busy : looked(o.large_more)) ||
			     passed(o.rising, SETTLE + two_ticks()));

		note(&o.less, fall > o.whole / 64 + slack);
		o.unheard = !over && !limits && !maybe_dl && (asks || o.unheard);
		must_fall = shared() ? looked(o.less) && looked(o.due) :
			    o.due && o.less && (free || (!idle && !st.again && st.stopped > st.called_last));
	}
	/*
	 * A little less counts as less. What is needed in the window goes unseen without a range,
	 * or when a task wakes.
	 */
	if (level_of(n.plain - ROUNDING - shim_capacity / 64) >= now &&
	    (over || limits || (runs(cpu) && o.ranged && shim_invariant && !shim_scx_enabled)))
		st.needed = m.now;
	st.called_last = st.seq;
	if ((over || limits || maybe_dl) && !free)
		st.due = st.seq;

	if (on_perf_path() && (o.due || o.requested)) {
		unsigned long told = o.requested ? o.got_min : o.told;

		require(FLOOR, told + (run.ours ? shim_capacity / 64 + 1 : 1) > own.floor &&
			told < own.floor + (run.ours ? shim_capacity / 16 + 1 : 1),
			"the driver does not know what deadlines and clamps say");
	}
	if (!thread_pending()) {
		if (limits) {
			require(LIMITS, on_perf_path() ? o.requested : now >= lo && now <= hi,
				"not what the limits ask for");
			if (m.every_limit && !m.slow && !on_perf_path())
				require(LIMITS, o.requested, "the driver was not told of the limits");
		}
		if (more_dl && lo > was)
			require(DEADLINE, now >= lo, "more deadline bandwidth has to wait");
		if (must_rise)
			require(LATE, now >= lo, "a rise is late");
		if (must_fall)
			require(STUCK, now <= hi, "a fall is late");
		o.lo = ULONG_MAX;
		o.hi = 0;
	}
	o.limits = o.refused = false;
	for (int i = 0; i < m.cpus; i++) {
		o.floor_max[i] = fmax2(o.floor_max[i], need_of(i).floor);
		o.floor_min[i] = fmin2(o.floor_min[i], need_of(i).floor);
	}
	if (o.requested)
		settled();
	if (o.requested || queued) {
		o.changed = m.now;
		o.decided = clock_of(cpu);
		for (int i = 0; i < m.cpus; i++)
			o.floor_max[i] = o.floor_min[i] = need_of(i).floor;
		if (!free)	/* else nobody looks at whether the CPU idles */
			st.changed = st.seq;
	}
}

static void thread_runs(u64 delay)
{
	bool was = thread_pending();

	o.requested = false;
	deferred(delay);
	if (!was || thread_pending())
		return;
	o.changed = m.now;
	if (o.requested) {
		judge_request(policy_need(), m.policy.cpu, 0, true);
		settled();
	}
}

/* Does the running task run for longer than it used to? */
static void look_at_task(int cpu, bool looked)
{
	struct rq *rq = &shim_rq[cpu];
	double util = rq->curr->se.avg.util_avg;
	u64 ran = rq->curr->se.sum_exec_runtime;
	bool young = ran < 16 * MSEC && ran - rq->curr->se.prev_sum_exec_runtime >= MSEC;
	double est = young ? 0 : rq->curr->se.avg.util_est;
	double more = util - est - est * est / 256, left = shim_capacity - util * 5 / 4;

	if (!run.ours || !shim_invariant || shim_scx_enabled ||
	    rq->curr == rq->idle || busy_for(cpu) < BUSY)
		return;
	st.may_saturate[cpu] |= more > -1 && left > -1;
	if (st.may_saturate[cpu])
		st.boosted = st.seq;
	st.saturated[cpu] |= looked && more > 0 && left > 0;
}

static void call(int from, int cpu, unsigned int flags, bool leaving)
{
	u64 idled = clock_of(cpu) - shim_rq[cpu].idle_stamp;	/* if it does not run */
	bool allowed = m.online >> from & 1 ||
		       (m.policy.dvfs_possible_from_any_cpu && cpufreq_update_util_data[from]);
	bool queued = thread_pending();

	if (!(m.online >> cpu & 1))
		return;
	calls++;
	st.seq++;
	if (run.ours && !runs(cpu) &&
	    (idled > shim_tick_ns || m.now - st.needed + differ() > HOLD)) {
		if ((st.stops[cpu] && (idled > shim_tick_ns || passed(o.less, HOLD))) || idled > HOLD)
			st.stopped = st.seq;
		st.idled = st.seq++;
	}
	st.again = !runs(cpu) && st.seen[cpu] == shim_rq[cpu].idle_stamp;
	st.seen[cpu] = shim_rq[cpu].idle_stamp;
	if (flags & SCHED_CPUFREQ_IOWAIT) {
		if (m.now - st.called[cpu] > shim_tick_ns || !st.boost[cpu])
			st.boost[cpu] = 128;
		else
			st.boost[cpu] = fmin2(2 * st.boost[cpu], 1024);
	} else if (m.now - st.called[cpu] > shim_tick_ns) {
		st.boost[cpu] = 0;
	}
	st.called[cpu] = m.now;
	look_at_task(cpu, allowed && after(cpu, o.changed));
	o.requested = false;
	o.whole = whole();
	call_hook(from, cpu, flags);
	queued = !queued && thread_pending();
	if (queued)
		deferred(rnd(5) < 3 ? 0 : rnd(2000000));
	if (!allowed) {
		struct need n = policy_need();

		require(REMOTE, !o.requested && !queued, "by a CPU that may not");
		o.refused |= bandwidth(cpu) > o.floor_min[cpu];
		o.unheard |= run.ours && o.level && level_of(need_of(cpu).lo - ROUNDING) > o.level;
		st.called_last = st.seq;	/* It may have needed what there is. */
		return;
	}
	judge(cpu, flags, leaving, queued);
}

/* What the scheduler does */

static unsigned int walk(unsigned int value, unsigned int max)
{
	int to = value;

	switch (rnd(6)) {
	case 0:
		return rnd(max + 1);
	case 1:
	case 2:
		to += (int)rnd(201) - 100;
		break;
	default:
		to += (int)rnd(17) - 8;
	}
	return to < 0 ? 0 : to > (int)max ? max : to;
}

static bool has_fair(int cpu) { return runs(cpu) && !shim_scx_switched_all; }

static void new_signals(int cpu)
{
	struct rq *rq = &shim_rq[cpu];
	struct sched_avg *a = &rq->cfs.avg;

	if (!shim_scx_switched_all) {
		a->util_avg = walk(a->util_avg, shim_capacity);
		a->runnable_avg = a->util_avg + (rnd(5) ? 0 : rnd(200));
		if (runs(cpu))
			a->util_est = walk(a->util_est, shim_capacity);
		m.running[cpu].se.avg = (struct sched_avg){
			.util_avg = a->util_avg, .util_est = rnd(a->util_avg + 200),
		};
		m.running[cpu].se.sum_exec_runtime = rnd(32) * MSEC;
		m.running[cpu].se.prev_sum_exec_runtime =
			m.running[cpu].se.sum_exec_runtime * rnd(3) / 2;
	}
	if (st.features & PAIRS)
		rq->pairs = rnd(3) ? walk(rq->pairs, shim_capacity) : 0;
	if (st.features & QUOTA && !rnd(4)) {
		unsigned int util = rnd(2) ? 1024 : 200 + rnd(800);

		if (util >= quota_asks(cpu)) {
			st.quota[cpu].util = util;
			st.quota[cpu].at = jiffies;
			rq->pairs = jiffies * 2048 + util;
		}
	}
	if (st.features & RT)
		rq->avg_rt.util_avg = rnd(3) ? walk(rq->avg_rt.util_avg, 300) : 0;
	if (st.features & DL)
		rq->avg_dl.util_avg = rnd(3) ? walk(rq->avg_dl.util_avg, 200) : 0;
	if (st.features & IRQ)
		rq->avg_irq.util_avg = rnd(40) ? walk(rq->avg_irq.util_avg, 150) : 1024;
	if (st.features & UCLAMP && !rnd(8)) {
		rq->uclamp[UCLAMP_MIN].value = rnd(2) ? 0 : rnd(600);
		rq->uclamp[UCLAMP_MAX].value = rnd(2) ? 1024 : 200 + rnd(800);
	}
}

static bool fair_server(void) { return !(st.features & BARE) && !shim_scx_switched_all; }

static void wake(int cpu, unsigned int flags)
{
	struct rq *rq = &shim_rq[cpu];

	rq->clock_idle = clock_of(cpu);	/* that of an idle CPU goes on */
	rq->cfs.avg.util_est = shim_scx_switched_all ? 0 : 1 + rnd(shim_capacity);
	new_signals(cpu);
	if (fair_server())
		rq->dl.running_bw += FAIR_SERVER;
	call(cpu, cpu, flags, false);	/* before the task is counted and runs */
	rq->nr_running = rq->cfs.h_nr_running = 1;
	rq->curr = &m.running[cpu];
	rq->idle->nivcsw++;
}

static void sleep(int cpu)
{
	struct rq *rq = &shim_rq[cpu];

	rq->curr->__state = 1;
	rq->rt.rt_nr_running = 0;
	rq->cfs.avg.util_est = 0;
	call(cpu, cpu, 0, true);
	rq->nr_running = rq->cfs.h_nr_running = 0;
	if (fair_server()) {
		rq->dl.running_bw -= FAIR_SERVER;
		call(cpu, cpu, 0, true);
	}
	rq->curr->__state = TASK_RUNNING;
	rq->curr = rq->idle;
	rq->clock_idle = rq->idle_stamp = clock_of(cpu);
	st.saturated[cpu] = st.may_saturate[cpu] = false;
	st.stops[cpu] = !rnd(3);
	if (!st.stops[cpu])
		return;
	/* The tick stops. */
	rq->idle_calls++;
	if (m.online >> cpu & 1 && !run.ours)
		st.idled = ++st.seq;
}

static void running_event(int cpu)
{
	struct rq *rq = &shim_rq[cpu];
	u32 what = rnd(100);

	if (what < 20) {
		new_signals(cpu);		/* without a call */
	} else if (what < 50) {
		new_signals(cpu);
		call(cpu, cpu, 0, false);
	} else if (what < 62 && st.features & RT) {
		rq->rt.rt_nr_running = !rq->rt.rt_nr_running;
		call(cpu, cpu, 0, false);
	} else if (what < 70 && st.features & DL) {
		u64 server = fair_server() ? FAIR_SERVER : 0;

		rq->dl.running_bw = rq->dl.running_bw > server ? server : server + rnd(600000);
		call(cpu, cpu, 0, false);
	} else if (what < 80 && st.features & IO) {
		call(cpu, cpu, SCHED_CPUFREQ_IOWAIT, false);
	} else if (what < 90 && shim_scx_enabled) {
		rq->scx.cpuperf_target = walk(rq->scx.cpuperf_target, 1024);
		call(cpu, cpu, 0, false);
	} else {
		sleep(cpu);
	}
}

static void idle_event(int cpu)
{
	struct rq *rq = &shim_rq[cpu];

	if (rnd(4)) {
		wake(cpu, st.features & IO && !rnd(3) ? SCHED_CPUFREQ_IOWAIT : 0);
	} else if (!shim_scx_switched_all) {
		int from = rnd(m.cpus + 1);	/* the last is of no policy that is online */

		rq->cfs.avg.util_avg = rq->cfs.avg.util_avg * (700 + rnd(300)) / 1024;
		rq->cfs.avg.runnable_avg = rq->cfs.avg.util_avg;
		shim_rq[cpu].clock_idle = clock_of(cpu);
		call(from, cpu, 0, true);	/* another CPU balances */
	}
}

static void tick(int cpu)
{
	if (!runs(cpu) || shim_scx_switched_all || shim_rq[cpu].rt.rt_nr_running)
		return;
	if (rnd(10) < 7) {
		new_signals(cpu);
		call(cpu, cpu, 0, false);
	}
}

static void pass(u64 ns)
{
	u64 end = m.now + ns;

	while (m.now < end) {
		u64 next = end;
		int due = -1;

		for (int cpu = 0; cpu < m.cpus; cpu++) {
			u64 phase = cpu * shim_tick_ns / 8;
			u64 at = (m.now - phase) / shim_tick_ns * shim_tick_ns + shim_tick_ns + phase;

			if (at <= next) {
				next = at;
				due = cpu;
			}
		}
		m.now = next;
		if (st.features & QUOTA)
			shim_jiffies = 100 + m.now / (4 * MSEC);
		thread_runs(0);
		if (due >= 0)
			tick(due);
	}
}

/* What user space does */

static void limits_changed(void)
{
	if (o.limits)		/* of two changes at once the base may lose one */
		return;
	m.policy.min = KHZ_MIN + rnd(8) * KHZ_STEP;
	m.policy.max = KHZ_MAX - rnd(20) * KHZ_STEP;
	o.applying = true;
	schedutil_gov.limits(&m.policy);
	o.applying = false;
	o.limits = true;
	o.ranged = false;
}

static void started(void)
{
	o.applying = true;
	governor_start();
	o.applying = false;
	o.level = m.slow ? m.policy.cur : 0;	/* a thread leaves a frequency that is right */
	o.limits = true;
	o.changed = o.decided = o.rising = o.due = o.more = o.large_more = o.less = 0;
	o.refused = false;
	o.lo = ULONG_MAX;
	o.hi = 0;
	st.changed = st.due = 0;	/* a governor that starts takes the CPU to have idled */
	for (int cpu = 0; cpu < m.cpus; cpu++) {
		st.boost[cpu] = 0;
		st.saturated[cpu] = st.may_saturate[cpu] = false;
		o.floor_max[cpu] = 1e9;
		o.floor_min[cpu] = 0;
	}
}

static void hotplug(void)
{
	cpumask_t mask = m.online ^ 1u << rnd(m.cpus);

	if (!mask)
		return;
	schedutil_gov.stop(&m.policy);
	m.online = mask;
	started();
}

static void set_window(void)
{
	static const unsigned int us[] = { 0, 500, 1000, 5000, 20000 };
	unsigned int value = run.chosen_window ? run.window / 1000 : us[rnd(5)];

	tunable("rate_limit_us", value);
	run.window = value * 1000ull;
}

/* Counters begin to work or fail, and other CPUs become faster or slower than this one. */
static void units_changed(void)
{
	st.before = 0;
	o.ranged = false;
	if (m.perf || rnd(2))
		shim_capacity = rnd(3) ? 1024 : 300 + rnd(700);
	else
		shim_invariant = !shim_invariant;
}

static void user_event(void)
{
	switch (rnd(5)) {
	case 3:
		units_changed();
		break;
	case 0:
		hotplug();
		break;
	case 1:
		governor_end();
		assert(!schedutil_gov.init(&m.policy));
		set_window();
		started();
		break;
	case 2:
		limits_changed();
		break;
	default:
		set_window();
	}
}

static u64 interval(void)
{
	switch (rnd(10)) {
	case 0:
		return MSEC * rnd(60) + 1000;	/* no CPU idles for no time */
	case 1 ... 4:
		return 1000 * (1 + rnd(4000));
	default:
		return 1000 * (1 + rnd(200));
	}
}

static void stream(unsigned int number, unsigned int steps)
{
	static struct update_util_data other;	/* of a CPU of another policy */
	static const u64 ticks[] = { 1, 4, 4, 10 };

	rnd_state = 88172645463325252ull + number * 2654435761ull;
	for (int i = 0; i < 10; i++)
		rnd(2);
	memset(&st, 0, sizeof(st));
	memset(&o, 0, sizeof(o));
	memset(m.running, 0, sizeof(m.running));
	memset(m.idle, 0, sizeof(m.idle));
	m.now = 0;
	shim_jiffies = 0;
	memset(cpufreq_update_util_data, 0, sizeof(cpufreq_update_util_data));
	cpufreq_update_util_data[run.cpus] = &other;
	st.stream = number;
	st.seq = st.idled = st.stopped = 1;
	st.features = run.features & (rnd(3) ? ~0u : rnd(128));
	if (run.features == RT || run.features == DL || run.features == SCX)
		st.features = run.features;
	m.irq_work = NULL;
	m.work = NULL;
	m.any_frequency = !rnd(2);
	m.every_limit = !rnd(3);
	shim_tick_ns = ticks[rnd(4)] * MSEC;
	shim_invariant = rnd(10);
	shim_capacity = rnd(3) ? 1024 : 300 + rnd(700);
	sched_uclamp_used = st.features & UCLAMP;
	shim_scx_enabled = st.features & SCX;
	shim_scx_switched_all = shim_scx_enabled && rnd(2);
	for (int cpu = 1; cpu < run.cpus; cpu++)
		m.behind[cpu] = rnd(BEHIND);
	machine_init(run.cpus);
	m.policy.dvfs_possible_from_any_cpu = !rnd(3);
	set_window();
	started();
	for (st.step = 0; st.step < steps; st.step++) {
		int cpu = rnd(m.cpus);

		pass(interval());
		if (!rnd(60))
			user_event();
		else if (runs(cpu))
			running_event(cpu);
		else
			idle_event(cpu);
		thread_runs(0);
	}
	governor_end();
}

/*
 * The frequency after each of a row of calls, all of which may act at once: what the
 * boost for IO gives does not depend on how the governor waits. All that is needed are
 * multiples of 5/32 of the capacity, so that no difference is small.
 */
static void io(unsigned int number)
{
	struct sched_avg *a = &shim_rq[0].cfs.avg;

	machine_init(1);
	tunable("rate_limit_us", 0);
	governor_start();
	shim_rq[0].nr_running = 1;
	for (unsigned int i = 0; i < number; i++) {
		m.now += 1000ull * (1 + rnd(rnd(20) ? 800 : 9000));
		if (!rnd(4))
			a->util_avg = a->runnable_avg = 128 * rnd(rnd(2) ? 7 : 2);
		shim_rq[0].curr = &m.running[0];
		if (rnd(2)) {
			shim_rq[0].curr = shim_rq[0].idle;
			shim_rq[0].idle_stamp = ~0ull;	/* longer than a tick ago, after the last call */
			shim_rq[0].idle_calls++;
			shim_rq[0].clock_idle = m.now;
		}
		m.now += 1000;
		call_hook(0, 0, rnd(6) ? 0 : SCHED_CPUFREQ_IOWAIT);
		printf("%u\n", m.policy.cur);
	}
}

int main(int argc, char **argv)
{
	unsigned int first = 1, streams = 100, steps = 400;

	run.cpus = 1;
	run.features = features[10].set;
	for (int i = 1; i < argc; i++) {
		char word[16];
		unsigned int value;
		bool known = false;

		for (size_t f = 0; f < sizeof(features) / sizeof(*features); f++) {
			if (!strncmp(argv[i], "inputs=", 7) && !strcmp(argv[i] + 7, features[f].name)) {
				run.features = features[f].set;
				known = true;
			}
		}
		if (sscanf(argv[i], "%15[a-z_]=%u", word, &value) == 2) {
			known = true;
			if (!strcmp(word, "io"))
				return io(value), 0;
			if (!strcmp(word, "first"))
				first = value;
			else if (!strcmp(word, "streams"))
				streams = value;
			else if (!strcmp(word, "steps"))
				steps = value;
			else if (!strcmp(word, "trace"))
				run.trace = value;
			else if (!strcmp(word, "cpus") && value && value < MAX_CPUS)
				run.cpus = value;
			else if (!strcmp(word, "rate_limit_us")) {
				run.window = value * 1000ull;
				run.chosen_window = true;
			} else
				known = false;
		}
		if (!strcmp(argv[i], "contract=ours"))
			run.ours = known = true;
		else if (!strcmp(argv[i], "contract=base") || !strcmp(argv[i], "driver=fast"))
			known = true;
		else if (!strcmp(argv[i], "driver=slow"))
			m.slow = known = true;
		else if (!strcmp(argv[i], "driver=perf"))
			m.perf = known = true;
		if (!known)
			return fprintf(stderr, "fuzz: %s: unknown; there are first= streams= steps= cpus= "
				       "rate_limit_us= inputs= contract= driver=\n", argv[i]), 2;
	}
	for (unsigned int i = first; i < first + streams; i++)
		stream(i, steps);
	printf("calls %lu requests %lu", calls, requests);
	for (int i = 0; i < RULES; i++)
		printf(" %s %lu", rule_names[i], checked[i]);
	printf("\n");
	return 0;
}
