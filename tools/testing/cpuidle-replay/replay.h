/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replay of recorded idle periods through cpuidle governors.
 *
 * trace.c     reads and checks a trace
 * states.c    state tables: built in, from intel_idle.c, from files
 * emulate.c   the services that a governor calls: clock, tick, timers
 * engine.c    runs one governor over one trace and judges what it chose
 * bound.c     runs what knows the future
 * output.c    table and JSON
 */
#ifndef REPLAY_H
#define REPLAY_H

#include <linux/cpuidle.h>

/* What the next timer event at idle entry is ("next" column). */
enum next_event { NEXT_NONE, NEXT_HRTIMER, NEXT_WHEEL, NEXT_TICK_KEPT };

#define FLAG_TICK_STOPPED	1	/* when the governor was asked */
#define FLAG_TASK		4	/* a task ran after it */
#define FLAG_CONTINUES		16	/* no task ran since the last period */
#define FLAG_ALL		63

/**
 * struct idle_period - one row of a trace; times in ns
 * @entry: idle entry, on a scale where ticks fall due at multiples of the tick
 * @idle: from entry to when the wake-up came, or its timer was due
 * @sleep: from entry to the next timer event but the tick, KTIME_MAX: none
 * @next: what that timer event is
 * @flags: FLAG_*
 * @src: letter of what ended it
 * @irq: number of the device interrupt
 */
struct idle_period {
	s64 entry;
	s64 idle;
	s64 sleep;
	enum next_event next;
	unsigned int flags;
	int src, irq;
};

struct trace {
	char *name;
	s64 tick_ns;
	size_t nr, size;
	struct idle_period *periods;
};

/* All of these print file, line and reason, and return false. */
bool trace_read(struct trace *trace, const char *path);
void trace_free(struct trace *trace);

/**
 * struct state_table - the idle states that a trace is replayed with
 * @power: power while resting in a state, in units of what polling takes
 * @transition: energy of entering and leaving it once if that takes as long
 *	as the driver states, in the same unit times ns
 */
struct state_table {
	char name[64];
	struct cpuidle_driver drv;
	bool disabled[CPUIDLE_STATE_MAX];
	double power[CPUIDLE_STATE_MAX];
	double transition[CPUIDLE_STATE_MAX];
};

/* What the energy of a transition follows from. */
enum transition_model {
	TRANSITION_RESIDENCY,	/* break-even at the target residency */
	TRANSITION_LATENCY,	/* the exit latency at full power */
};

/* A row of a table as intel_idle.c has it, times in us (made by intel_tables.py). */
struct intel_state {
	const char *name;
	unsigned int exit_latency, target_residency;
};

struct intel_table {
	const char *name;
	struct intel_state states[CPUIDLE_STATE_MAX];
};

extern const struct intel_table intel_tables[];

bool states_find(struct state_table *table, const char *name);
void states_price(struct state_table *table, enum transition_model model);
void states_list(void);

/* Those who know something of the future, instead of a governor. */
enum bound {
	BOUND_NONE,
	BOUND_LEAST_ENERGY,	/* all of it, takes the least energy */
	BOUND_ORACLE,		/* the idle time, chooses by target residency */
	BOUND_TIMER,		/* the next timer event */
};

/**
 * struct costs - what the kernel's own work takes, at full power, in ns
 * @overhead: from when the governor is asked to when the state is entered
 * @tick_stop: to stop the tick, also before the state is entered
 * @tick_restart: to start it again when a task runs
 * @tick: the interrupt of a tick that was retained
 */
struct costs {
	s64 overhead, tick_stop, tick_restart, tick;
};

struct result;

/**
 * struct run - one governor, or bound, over one trace
 * @play: governor_run() or bound_run()
 * @gov: NULL for a bound
 * @bound: which, if it is one
 * @latency_ns: what cpuidle_governor_latency_req() answers
 * @latency_percent: how much of what the driver states a transition takes, in
 *	time and in energy
 */
struct run {
	void (*play)(const struct run *run, struct result *res);
	struct cpuidle_governor *gov;
	enum bound bound;
	const struct trace *trace;
	const struct state_table *table;
	s64 tick_ns;
	s64 latency_ns;
	unsigned int latency_percent;
	struct costs costs;
	bool nohz_full;
};

/**
 * struct result - what came of it
 * @least: decisions whose state takes the least energy for the rest it was
 * @wake_latency_ns: exit latencies of those that ended a period of the trace,
 *	that is, without the governor's own ticks and ends of polling
 * @waits: of these, those after which a task ran
 * @wait_latency_ns: and their exit latencies
 * The others are explained in README.md.
 */
struct result {
	u64 decisions, too_deep, adequate, too_shallow, least;
	u64 periods, wake_latency_ns;
	u64 waits, wait_latency_ns;
	u64 exit_latency_ns, idle_ns;
	u64 ticks, tick_stops, timer_queries;
	u64 usage[CPUIDLE_STATE_MAX];
	double energy;
};

void engine_run(const struct run *run, struct result *res);
void governor_run(const struct run *run, struct result *res);
void bound_run(const struct run *run, struct result *res);

/* What bound.c takes of engine.c. */
bool engine_usable(const struct run *run, int state);
double engine_rest_energy(const struct run *run, int state, s64 rest);
int engine_least_state(const struct run *run, s64 rest);
void engine_start_period(const struct idle_period *p, bool first);
void engine_update_tick(const struct idle_period *p);
bool engine_stop_tick(const struct run *run, struct result *res);
void engine_account(const struct run *run, struct result *res, int state, s64 rest);
void engine_account_tick(const struct run *run, struct result *res);
void engine_account_wakeup(const struct run *run, struct result *res,
			   const struct idle_period *p, int state);
s64 engine_entered(const struct run *run, s64 asked, bool stopped_now);

/* Between engine.c and emulate.c: the CPU as the governor sees it. */
struct emulation {
	const struct run *run;
	const struct idle_period *period;
	s64 now;
	s64 idle_entry;
	s64 timer;		/* absolute, KTIME_MAX: none */
	s64 next_tick;
	s64 latency_req;
	u64 timer_queries;
	bool can_stop_tick;
	bool tick_stopped;
	bool got_tick;
	bool task;		/* one is to run */
};

extern struct emulation emu;
extern struct cpuidle_governor *emulate_registered;

/* Governors of other kernel trees (made by compile_trees.py), ends with a NULL name. */
struct tree_governor {
	const char *name;
	int (*init)(void);
};

extern const struct tree_governor tree_governors[];

int init_teo(void);
int init_base_teo(void);
int init_base_menu(void);
int init_base_ladder(void);
int init_base_haltpoll(void);

#endif /* REPLAY_H */
