// SPDX-License-Identifier: GPL-2.0
/*
 * What is possible with knowledge of the future.
 *
 * The least energy is exact for the model that engine.c charges by: in each period the
 * tick may be stopped at the entry, or when one that was retained wakes the CPU, or never,
 * and each rest is in the usable state that takes the least energy for it. A
 * tick that is stopped costs what it costs a governor, and stays stopped in the
 * periods that continue this one, so the choice is made for such a run of
 * periods as a whole, from its end.
 *
 * Nobody who gives up polling before the wake-up takes less than who polls on, so
 * the bound has no limit of polling. The one thing to gain is to be asked so
 * shortly before a tick that the work before the state outlasts both the tick and
 * the wake-up. So where a wake-up comes that soon after a tick, the bound is let
 * off what of this work is after the wake-up.
 */
#include <stdio.h>
#include <stdlib.h>

#include "replay.h"

/* The deepest state for which a rest of @ns is long enough. */
static int deepest_for(const struct run *run, s64 ns)
{
	const struct cpuidle_driver *drv = &run->table->drv;
	int i, idx = -1;

	for (i = 0; i < drv->state_count; i++) {
		if (!engine_usable(run, i))
			continue;
		if (idx < 0 || drv->states[i].target_residency_ns <= ns)
			idx = i;
	}
	return idx < 0 ? engine_least_state(run, ns) : idx;
}

/* By target residency; these always let the tick be stopped. */
static void run_by_residency(const struct run *run, struct result *res)
{
	const struct trace *trace = run->trace;
	size_t n;

	for (n = 0; n < trace->nr; n++) {
		const struct idle_period *p = &trace->periods[n];
		s64 known = run->bound == BOUND_ORACLE ? p->idle : p->sleep;
		s64 before;
		int idx;

		engine_start_period(p, !n);
		engine_update_tick(p);
		before = engine_entered(run, p->entry, engine_stop_tick(run, res)) -
			 p->entry;
		idx = deepest_for(run, known - before);
		engine_account(run, res, idx, max(p->idle - before, 0));
		engine_account_wakeup(run, res, p, idx);
	}
}

/* Energy of a run of periods from here on, by the state of the tick. */
struct ahead {
	double running, stopped;
};

/**
 * struct chance - the tick is running, and the CPU is asked for a state
 * @overhead: what being asked takes
 * @rest_kept: until the next tick or the wake-up
 * @rest_stopped: until the wake-up
 * @can_stop: the tick can be stopped
 * @tick: it ends the rest if it is not
 * @stop: stopping it takes less
 */
struct chance {
	s64 overhead, rest_kept, rest_stopped;
	bool can_stop, tick, stop;
};

struct plan {
	struct chance *chances;
	size_t nr, size;
};

static void add_chance(struct plan *plan, struct chance chance)
{
	if (plan->nr == plan->size) {
		plan->size = plan->size ? 2 * plan->size : 64;
		plan->chances = realloc(plan->chances, plan->size * sizeof(chance));
		if (!plan->chances) {
			fprintf(stderr, "governor-replay: out of memory\n");
			exit(1);
		}
	}
	plan->chances[plan->nr++] = chance;
}

static s64 rest_until(const struct run *run, s64 end, s64 asked, bool stop)
{
	return max(end - engine_entered(run, asked, stop), 0);
}

/* When the CPU is asked, if the tick is running at the entry and is retained. */
static void find_chances(const struct run *run, const struct idle_period *p,
			 struct plan *plan)
{
	s64 wakeup = p->entry + p->idle;

	plan->nr = 0;
	emu.tick_stopped = false;
	emu.idle_entry = p->entry;
	emu.timer = p->sleep == KTIME_MAX ? KTIME_MAX : p->entry + p->sleep;
	do {
		s64 asked = emu.idle_entry;
		bool tick;

		engine_update_tick(p);
		tick = wakeup >= emu.next_tick;
		add_chance(plan, (struct chance) {
			.overhead = asked == p->entry ? run->costs.overhead :
				    min(run->costs.overhead, wakeup - asked),
			.rest_kept = rest_until(run, min(wakeup, emu.next_tick), asked, false),
			.rest_stopped = rest_until(run, wakeup, asked, true),
			.can_stop = emu.can_stop_tick,
			.tick = tick,
		});
		emu.idle_entry = tick ? max(emu.next_tick, engine_entered(run, asked, false)) : wakeup;
	} while (emu.idle_entry < wakeup);
}

static double least_energy(const struct run *run, s64 overhead, s64 rest)
{
	int idx = engine_least_state(run, rest);

	return overhead + engine_rest_energy(run, idx, rest);
}

/* Decide for each chance whether the tick is stopped, given what comes after. */
static struct ahead plan_period(const struct run *run, const struct idle_period *p,
				struct plan *plan, struct ahead after)
{
	double energy = after.running;
	size_t i;

	find_chances(run, p, plan);
	for (i = plan->nr; i-- > 0; ) {
		struct chance *c = &plan->chances[i];

		energy += least_energy(run, c->overhead, c->rest_kept) +
			  (c->tick ? run->costs.tick : 0);
		c->stop = false;
		if (c->can_stop) {
			double stopped = run->costs.tick_stop + run->costs.tick_restart +
					 least_energy(run, c->overhead, c->rest_stopped) +
					 after.stopped;

			c->stop = stopped < energy;
			energy = c->stop ? stopped : energy;
		}
	}
	return (struct ahead) {
		.running = energy,
		.stopped = least_energy(run, run->costs.overhead,
					rest_until(run, p->entry + p->idle, p->entry, false)) +
			   after.stopped,
	};
}

/* Carry the plan out. */
static int follow_plan(const struct run *run, struct result *res,
		       const struct idle_period *p, const struct plan *plan)
{
	int idx = 0;
	size_t i;

	for (i = 0; i < plan->nr; i++) {
		const struct chance *c = &plan->chances[i];
		s64 rest = c->stop ? c->rest_stopped : c->rest_kept;

		emu.can_stop_tick = c->can_stop;
		if (c->stop)
			engine_stop_tick(run, res);
		idx = engine_least_state(run, rest);
		engine_account(run, res, idx, rest);
		res->energy -= run->costs.overhead - c->overhead;
		if (c->stop)
			break;
		if (c->tick)
			engine_account_tick(run, res);
	}
	return idx;
}

static void run_least(const struct run *run, struct result *res)
{
	const struct trace *trace = run->trace;
	struct ahead *after = calloc(trace->nr + 1, sizeof(*after));
	struct plan plan = { 0 };
	size_t n;

	if (!after) {
		fprintf(stderr, "governor-replay: out of memory\n");
		exit(1);
	}
	for (n = trace->nr; n-- > 1; )
		if (trace->periods[n].flags & FLAG_CONTINUES)
			after[n - 1] = plan_period(run, &trace->periods[n], &plan, after[n]);

	for (n = 0; n < trace->nr; n++) {
		const struct idle_period *p = &trace->periods[n];
		int idx;

		engine_start_period(p, !n);
		if (emu.tick_stopped) {
			s64 rest = rest_until(run, p->entry + p->idle, p->entry, false);

			idx = engine_least_state(run, rest);
			engine_account(run, res, idx, rest);
		} else {
			plan_period(run, p, &plan, after[n]);
			idx = follow_plan(run, res, p, &plan);
		}
		engine_account_wakeup(run, res, p, idx);
	}
	free(plan.chances);
	free(after);
}

void bound_run(const struct run *run, struct result *res)
{
	if (run->bound == BOUND_LEAST_ENERGY)
		run_least(run, res);
	else
		run_by_residency(run, res);
}
