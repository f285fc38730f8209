// SPDX-License-Identifier: GPL-2.0
/*
 * Timer events oriented CPU idle governor
 */

/**
 * DOC: teo-description
 *
 * A CPU that goes idle knows one thing for sure: when its next timer is due.
 * What it does not know is whether something else comes first. This governor
 * starts from the time to the next timer event, the sleep length, and learns
 * how far it can be trusted in the situation at hand.
 *
 * A *situation* is told by three things: the class of the sleep length (target
 * residencies are the limits between classes), the class of the last idle time,
 * and how that ended: by its timer, by something else while that timer is still
 * the next one, by something else otherwise, by the scheduler tick or a time
 * limit, and whether the tick has been stopped since.
 *
 * For each situation the governor keeps the share of idle times that the timer
 * ended, and for each idle state a *score*, the decaying mean of what entering the
 * state would have gained in those that it did not end. The target residency T of
 * a state is where the driver sees the break-even with the next shallower one,
 * and the energies of both grow with the idle time d, so the gain is taken to
 * be (d - T) / T. It is negative where d was too short for the state, and cut
 * off at 1. Taking the mean of the gain, and not the likeliest class of d,
 * lets an idle time count by how much is at stake. Where T is below 50 us that
 * is little. There the gain is three times as steep, so that it is cut off
 * sooner, and it counts more how often the state is right. A situation that is
 * new starts with what is known of the one before it.
 *
 * The governor enters the deepest state that satisfies three conditions: its
 * target residency fits into the sleep length, its exit latency into the latency
 * limit, and it is worth it. That is so if its score is at least 1/8 (not 0,
 * because a state that is too deep costs latency besides energy). A score below is
 * made up for by the timer, if that ends enough of the idle times: each counts as
 * a gain of 1, since the sleep length is known to be long enough.
 *
 * *The tick* is stopped only together with the deepest state that the next timer
 * allows, so that nothing can keep a CPU in a shallow state for long: either
 * the tick ends that, or a timer does before the tick would. With a deep state
 * it is stopped whenever the next timer comes later: all it could do is to end
 * the state early, for it to be entered once more. With a shallow one that is no
 * loss, and a score like those of the states, with the tick period for T, tells
 * whether the tick would be hit often enough to be worth stopping.
 * If the tick (or the time limit of a polling state) wakes the CPU, that is no
 * wake-up to learn from. The idle time goes on, the governor is asked again, and
 * it counts in full once something else ends it. After three such wake-ups
 * in succession the sleep length alone decides, whatever the scores are.
 *
 * *The exit latency* of the driver is the worst case, often two or three times
 * what is seen. As it is part of the measured idle time, the governor observes
 * it: a CPU woken by the timer it was waiting for knows when that was due.
 *
 * *The sleep length* is not cheap to find out. After several idle times in a row
 * that no timer ended and that were far too short for all but the shallow
 * states, these are scored without it and the tick is retained, which limits
 * the damage if the run of short idle times ends here.
 */

#include <linux/cpuidle.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/percpu.h>
#include <linux/sched/clock.h>
#include <linux/tick.h>

#include "gov.h"
#include "teo_core.h"

/* How an idle time ended, as far as it tells something about the next one. */
enum teo_end {
	TEO_END_OTHER,
	TEO_END_SAME,		/* as before, and the next timer is still the same */
	TEO_END_TIMER,
	TEO_END_SAFETY_NET,	/* own tick or time limit: not over yet */
	TEO_END_NR
};

/* Sleep length classes, and one for "not asked". */
#define TEO_SLEEP_CLASSES	(TEO_CLASSES + 1)
#define TEO_ROWS_PER_SLEEP	(TEO_CLASSES * TEO_END_NR * 2)
#define TEO_ROWS		(TEO_SLEEP_CLASSES * TEO_ROWS_PER_SLEEP)
#define TEO_ROWS_ASKED		(TEO_CLASSES * TEO_ROWS_PER_SLEEP)

/* Decisions that one idle time may consist of; more are not remembered. */
#define TEO_PENDING		4

/* Idle times in a row that make the next one certain to be short. */
#define TEO_SHORT_RUN		8

/* After so many safety nets in a row only the timer counts. */
#define TEO_SAFETY_NETS		3

/* A wake-up this close before the timer is the timer's. */
#define TEO_TIMER_SLACK_NS	(2 * NSEC_PER_USEC)

/* Times to the next timer that agree so well tell of the same timer. */
#define TEO_SAME_TIMER_NS	(4 * NSEC_PER_USEC)

/* Idle again this soon after a safety net: it was for nothing. */
#define TEO_SAME_IDLE_NS	(50 * NSEC_PER_USEC)

/**
 * struct teo_pending - a decision whose idle time is not over
 * @start: when it was taken
 * @row: the situation
 * @bin: bin of the sleep length
 */
struct teo_pending {
	u64 start;
	u16 row;
	u8 bin;
};

/**
 * struct teo_cpu - what the governor knows about a CPU
 * @table: its idle states
 * @sleep: sleep length at the last decision, KTIME_MAX if not asked for
 * @delta: time to the next timer event, tick included, at that time
 * @measured: how long the last decision's state was rested in
 * @timer: when the timer is due that @sleep is about
 * @short_ns: idle times below make only shallow states worth while
 * @shallow: the deepest state that needs no sleep length
 * @latency: observed exit latency per state
 * @pending: decisions to learn from when the idle time is over
 * @nr_pending: number of those
 * @short_run: idle times in a row below @short_ns that no timer ended
 * @safety_nets: wake-ups in a row by the own tick or a time limit
 * @last_class: class of the last idle time
 * @end: how the last idle time ended
 * @reflected: the last decision was carried out
 * @row: one per situation
 *
 * Only used by the CPU itself with interrupts off, or while its cpuidle device
 * is disabled.
 */
struct teo_cpu {
	struct teo_table table;
	s64 sleep;
	s64 delta;
	s64 measured;
	u64 timer;
	s64 short_ns;
	int shallow;
	s64 latency[CPUIDLE_STATE_MAX];
	struct teo_pending pending[TEO_PENDING];
	u8 nr_pending;
	u8 short_run;
	u8 safety_nets;
	u8 last_class;
	u8 end;
	bool reflected;
	struct teo_row row[TEO_ROWS];
};

static DEFINE_PER_CPU(struct teo_cpu, teo_cpus);

static unsigned int teo_row_index(const struct teo_cpu *cpu,
				  unsigned int sleep_class, bool tick_stopped)
{
	unsigned int row = sleep_class * TEO_CLASSES + cpu->last_class;

	return (row * TEO_END_NR + cpu->end) * 2 + tick_stopped;
}

/* Take a look at the next timer. */
static void teo_ask_timer(struct teo_cpu *cpu, u64 now)
{
	ktime_t delta;
	s64 moved;

	cpu->sleep = max_t(s64, tick_nohz_get_sleep_length(&delta), 0);
	cpu->delta = delta;

	moved = now + cpu->sleep - cpu->timer;
	cpu->timer += moved;
	if (cpu->end == TEO_END_OTHER && abs(moved) < TEO_SAME_TIMER_NS)
		cpu->end = TEO_END_SAME;
}

/* The decision before this one is the last that is pending, or was. */
static noinline void teo_new_situation(struct teo_cpu *cpu, unsigned int row)
{
	unsigned int last = cpu->nr_pending ? cpu->nr_pending - 1 : 0;

	teo_row_inherit(&cpu->row[row], &cpu->row[cpu->pending[last].row]);
}

static void teo_note_decision(struct teo_cpu *cpu, u64 now, unsigned int row,
			      unsigned int bin)
{
	struct teo_pending *p;

	if (unlikely(!cpu->row[row].events))
		teo_new_situation(cpu, row);

	if (cpu->nr_pending < TEO_PENDING)
		cpu->nr_pending++;

	p = &cpu->pending[cpu->nr_pending - 1];
	p->start = now;
	p->row = row;
	p->bin = bin;
}

static __always_inline void teo_learn_one(struct teo_cpu *cpu,
					  const struct teo_pending *p, u64 end,
					  bool timer)
{
	teo_learn(&cpu->row[p->row], &cpu->table, end - p->start, p->bin, timer);
}

/*
 * The idle time is over: all decisions taken in it learn how long it was. Those
 * that did not ask for a timer do not learn that it was one.
 */
static noinline void teo_learn_all(struct teo_cpu *cpu, u64 end)
{
	while (cpu->nr_pending) {
		const struct teo_pending *p = &cpu->pending[--cpu->nr_pending];

		teo_learn_one(cpu, p, end, cpu->end == TEO_END_TIMER &&
					   p->row < TEO_ROWS_ASKED);
	}
}

/* It is rarely more than one. */
static void teo_learn_pending(struct teo_cpu *cpu, u64 end, bool timer)
{
	if (unlikely(cpu->nr_pending != 1)) {
		teo_learn_all(cpu, end);
		return;
	}
	cpu->nr_pending = 0;
	teo_learn_one(cpu, &cpu->pending[0], end, timer);
}

static void teo_count_short(struct teo_cpu *cpu, s64 idle, bool timer)
{
	if (idle >= cpu->short_ns || timer)
		cpu->short_run = 0;
	else if (cpu->short_run < TEO_SHORT_RUN)
		cpu->short_run++;
}

/* An exit that a timer event caused, due @due ns after the entry. */
static void teo_observe_latency(struct teo_cpu *cpu, int state, s64 due,
				s64 worst)
{
	cpu->latency[state] = teo_track_latency(cpu->latency[state],
						cpu->measured - due, worst);
}

/* A safety net may have made a task run: then the idle time did end there. */
static void teo_check_over(struct teo_cpu *cpu, u64 now)
{
	u64 end = cpu->pending[cpu->nr_pending - 1].start + cpu->measured;

	if ((s64)(now - end) > TEO_SAME_IDLE_NS)
		teo_learn_all(cpu, end);
}

/* Take account of what came of the last decision. */
static void teo_update(struct teo_cpu *cpu, struct cpuidle_driver *drv, int state,
		       u64 now)
{
	s64 worst = drv->states[state].exit_latency_ns;
	u64 last = cpu->pending[cpu->nr_pending - 1].start;
	enum teo_end end = cpu->end;
	s64 idle;

	idle = teo_idle_time(cpu->measured, cpu->latency[state], cpu->sleep);

	if (end == TEO_END_SAFETY_NET) {
		if (cpu->delta < cpu->measured)
			teo_observe_latency(cpu, state, cpu->delta, worst);
		cpu->short_run = 0;
		teo_check_over(cpu, now);
	} else {
		bool timer = end == TEO_END_TIMER;

		if (timer) {
			teo_observe_latency(cpu, state, cpu->sleep, worst);
			idle = cpu->sleep;
		}
		teo_count_short(cpu, idle, timer);
		teo_learn_pending(cpu, last + idle, timer);
		idle += last - cpu->pending[0].start;
	}
	cpu->last_class = cpu->table.class[teo_bin(&cpu->table, idle)];
}

/*
 * A task came before the state was entered, or the driver refused: there was as
 * good as no idle time. Were that not learned, a CPU that is always called while
 * it stops the tick would stop it for ever.
 */
static noinline void teo_not_entered(struct teo_cpu *cpu)
{
	u64 first = cpu->pending[0].start;
	u64 last = cpu->pending[cpu->nr_pending - 1].start;

	cpu->end = TEO_END_OTHER;
	cpu->safety_nets = 0;
	teo_count_short(cpu, 0, false);
	teo_learn_all(cpu, last);
	cpu->last_class = cpu->table.class[teo_bin(&cpu->table, last - first)];
}

static void teo_catch_up(struct teo_cpu *cpu, struct cpuidle_driver *drv,
			 struct cpuidle_device *dev, u64 now)
{
	if (cpu->reflected) {
		cpu->reflected = false;
		teo_update(cpu, drv, dev->last_state_idx, now);
	} else if (cpu->nr_pending) {
		teo_not_entered(cpu);
	}
}

/*
 * With the tick stopped, nothing but the next timer is sure to end the stay in
 * a state that is too shallow, so take none if that is far away.
 */
static bool teo_trust_timer(const struct teo_cpu *cpu, bool tick_stopped)
{
	return cpu->safety_nets >= TEO_SAFETY_NETS ||
	       (tick_stopped && cpu->sleep > TICK_NSEC);
}

/* A run of short idle times: choose without asking for the sleep length. */
static int teo_select_shallow(struct teo_cpu *cpu, struct cpuidle_driver *drv,
			      struct cpuidle_device *dev, s64 latency_req, u64 now)
{
	unsigned int row = teo_row_index(cpu, TEO_CLASSES, false);
	int deepest;

	cpu->sleep = KTIME_MAX;
	cpu->delta = KTIME_MAX;
	teo_note_decision(cpu, now, row, cpu->shallow);
	return teo_choose(drv, dev, latency_req, &cpu->row[row], TEO_ENTER,
			  cpu->shallow, &deepest);
}

/* The tick stays, and what it would cut too short is not entered. */
static int teo_before_tick(const struct teo_cpu *cpu, struct cpuidle_driver *drv,
			   struct cpuidle_device *dev, s64 latency_req, int state)
{
	int i;

	for (i = state; cpu->table.column[state].residency > cpu->delta && i > 0; )
		if (teo_state_usable(drv, dev, latency_req, --i))
			state = i;
	return state;
}

/* @state is the deepest that the next timer allows. */
static bool teo_stops_tick(const struct teo_cpu *cpu, struct cpuidle_driver *drv,
			   const struct teo_row *row, int state)
{
	if (drv->states[state].flags & CPUIDLE_FLAG_POLLING)
		return false;

	return cpu->safety_nets >= TEO_SAFETY_NETS ||
	       teo_wants_tick_stopped(row, &cpu->table, state, cpu->sleep,
				      cpu->delta, TICK_NSEC);
}

/* The sleep length is known: choose, and decide on the tick. */
static int teo_select_by_timer(struct teo_cpu *cpu, struct cpuidle_driver *drv,
			       struct cpuidle_device *dev, s64 latency_req,
			       u64 now, bool *stop_tick)
{
	bool tick_stopped = tick_nohz_tick_stopped();
	int bin = teo_bin(&cpu->table, cpu->sleep);
	unsigned int index = teo_row_index(cpu, cpu->table.class[bin],
					   tick_stopped);
	const struct teo_row *row = &cpu->row[index];
	int enter = teo_trust_timer(cpu, tick_stopped) ? S16_MIN : TEO_ENTER;
	int state, deepest;

	teo_note_decision(cpu, now, index, bin);
	state = teo_choose(drv, dev, latency_req, row, enter,
			   min(bin, cpu->table.nr_states - 1), &deepest);
	if (unlikely(state < 0)) {
		state = teo_shallowest(drv, dev);
		deepest = state;
	}

	if (tick_stopped ||
	    (state == deepest && teo_stops_tick(cpu, drv, row, state)))
		return state;

	*stop_tick = false;
	return teo_before_tick(cpu, drv, dev, latency_req, state);
}

/**
 * teo_select - select the idle state to enter
 * @drv: the driver
 * @dev: the CPU
 * @stop_tick: set to false if the tick is to be retained
 *
 * Called by the idle loop on the CPU itself with interrupts off.
 *
 * Return: index of the state.
 */
static int teo_select(struct cpuidle_driver *drv, struct cpuidle_device *dev,
		      bool *stop_tick)
{
	struct teo_cpu *cpu = this_cpu_ptr(&teo_cpus);
	s64 latency_req = cpuidle_governor_latency_req(dev->cpu);
	u64 now = local_clock();
	int state;

	teo_catch_up(cpu, drv, dev, now);

	if (cpu->short_run >= TEO_SHORT_RUN && !tick_nohz_tick_stopped()) {
		state = teo_select_shallow(cpu, drv, dev, latency_req, now);
		if (state >= 0) {
			*stop_tick = false;
			return state;
		}
		cpu->nr_pending--;
	}

	teo_ask_timer(cpu, now);
	return teo_select_by_timer(cpu, drv, dev, latency_req, now, stop_tick);
}

/**
 * teo_reflect - note how the rest ended
 * @dev: the CPU
 * @state: index of the state that was entered
 *
 * This is part of the time that it takes to leave idle, so what can wait is
 * left to the next decision.
 */
static void teo_reflect(struct cpuidle_device *dev, int state)
{
	struct teo_cpu *cpu = this_cpu_ptr(&teo_cpus);
	bool got_tick = tick_nohz_idle_got_tick();

	dev->last_state_idx = state;
	cpu->reflected = true;
	cpu->measured = dev->last_residency_ns;

	if (cpu->measured + TEO_TIMER_SLACK_NS >= cpu->sleep) {
		cpu->end = TEO_END_TIMER;
		cpu->safety_nets = 0;
	} else if (got_tick || dev->poll_time_limit) {
		cpu->end = TEO_END_SAFETY_NET;
		if (cpu->safety_nets < TEO_SAFETY_NETS)
			cpu->safety_nets++;
	} else {
		cpu->end = TEO_END_OTHER;
		cpu->safety_nets = 0;
	}
	dev->poll_time_limit = false;
}

/* Which states are shallow, and which idle times are short. */
static void teo_init_shallow(struct teo_cpu *cpu)
{
	const struct teo_column *col = cpu->table.column;
	int i;

	for (i = 1; i < cpu->table.nr_states; i++)
		if (col[i].residency >= RESIDENCY_THRESHOLD_NS)
			break;
	cpu->shallow = i - 1;
	cpu->short_ns = min_t(s64, col[i].residency, TICK_NSEC) / 2;
}

/**
 * teo_enable_device - start from nothing on a CPU
 * @drv: the driver, its states are taken over
 * @dev: the CPU
 */
static int teo_enable_device(struct cpuidle_driver *drv,
			     struct cpuidle_device *dev)
{
	struct teo_cpu *cpu = per_cpu_ptr(&teo_cpus, dev->cpu);
	s64 residency[CPUIDLE_STATE_MAX];
	int i;

	memset(cpu, 0, sizeof(*cpu));
	for (i = 0; i < drv->state_count; i++) {
		residency[i] = drv->states[i].target_residency_ns;
		/* Until it is seen: between the best and the worst case. */
		cpu->latency[i] = drv->states[i].exit_latency_ns / 2;
	}
	teo_table_init(&cpu->table, residency, drv->state_count, TICK_NSEC);
	teo_init_shallow(cpu);
	for (i = 0; i < TEO_ROWS; i++)
		teo_row_init(&cpu->row[i]);

	return 0;
}

static struct cpuidle_governor teo_governor = {
	.name =		"teo",
	.rating =	19,
	.enable =	teo_enable_device,
	.select =	teo_select,
	.reflect =	teo_reflect,
};

static int __init teo_governor_init(void)
{
	return cpuidle_register_governor(&teo_governor);
}

postcore_initcall(teo_governor_init);
