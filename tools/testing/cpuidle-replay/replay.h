/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replay of recorded idle periods through cpuidle governors.
 *
 * trace.c     reads and checks a trace
 * states.c    state tables: built in, from intel_idle.c, from files
 * emulate.c   the services that a governor calls: clock, tick, timers
 * engine.c    runs one governor (or bound) over one trace
 * output.c    table and JSON
 */
#ifndef REPLAY_H
#define REPLAY_H

#include <linux/cpuidle.h>

/* What the next timer event at idle entry is ("next" column). */
enum next_event { NEXT_NONE, NEXT_HRTIMER, NEXT_WHEEL, NEXT_TICK_KEPT };

#define FLAG_TICK_STOPPED	1	/* when the governor was asked */
#define FLAG_CONTINUES		16	/* no task ran since the last period */
#define FLAG_ALL		63

/**
 * struct idle_period - one row of a trace; times in ns
 * @entry: idle entry, on a scale where ticks fall due at multiples of the tick
 * @idle: from entry to when the wake-up came, or its timer was due
 * @sleep: from entry to the next timer event but the tick, KTIME_MAX: none
 * @next: what that timer event is
 * @flags: FLAG_*
 */
struct idle_period {
	s64 entry;
	s64 idle;
	s64 sleep;
	enum next_event next;
	unsigned int flags;
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
 * @overhead: energy of entering and leaving it once, in the same unit times ns
 */
struct state_table {
	char name[64];
	struct cpuidle_driver drv;
	bool disabled[CPUIDLE_STATE_MAX];
	double power[CPUIDLE_STATE_MAX];
	double overhead[CPUIDLE_STATE_MAX];
};

/* A row of a table as intel_idle.c has it, times in us (made by gen_tables.py). */
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
void states_list(void);

/* How much of a state's worst-case exit latency a wake-up takes, in 1/1024. */
#define LATENCY_FULL	1024
#define LATENCY_HALF	512

/**
 * struct run - one governor, or bound, over one trace
 * @name: as in the output
 * @gov: NULL for a bound
 * @latency_ns: what cpuidle_governor_latency_req() answers
 * @latency_share: LATENCY_FULL or LATENCY_HALF
 */
struct run {
	const char *name;
	struct cpuidle_governor *gov;
	bool oracle;
	const struct trace *trace;
	const struct state_table *table;
	s64 latency_ns;
	unsigned int latency_share;
};

struct result {
	u64 decisions, too_deep, adequate, too_shallow;
	u64 exit_latency_ns, idle_ns;
	u64 ticks, tick_stops, timer_queries;
	u64 usage[CPUIDLE_STATE_MAX];
	double energy;
	double seconds;
};

void engine_run(const struct run *run, struct result *res);

/* Between engine.c and emulate.c: the CPU as the governor sees it. */
struct emulation {
	s64 now;
	s64 idle_entry;
	s64 timer;		/* absolute, KTIME_MAX: none */
	s64 next_tick;
	s64 latency_req;
	u64 timer_queries;
	bool can_stop_tick;
	bool tick_stopped;
	bool got_tick;
};

extern struct emulation emu;
extern struct cpuidle_governor *emulate_registered;

int init_teo(void);
int init_base_teo(void);
int init_base_menu(void);
int init_base_ladder(void);
int init_base_haltpoll(void);

#endif /* REPLAY_H */
