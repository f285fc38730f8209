/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Timer events oriented CPU idle governor: the arithmetic
 *
 * Values in, values out: nothing here reads a clock, a driver or a CPU, so the
 * governor, its KUnit test and programs in user space share it as it is.
 * Times are in ns throughout.
 */
#ifndef _CPUIDLE_TEO_CORE_H
#define _CPUIDLE_TEO_CORE_H

#include <linux/bitops.h>
#include <linux/cpuidle.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

/*
 * A gain or a score of 1, which says "idle for twice the target residency".
 * Gains end at -1 (woken at once) and at 1.25: one long idle time among many
 * short ones must not outweigh them all.
 */
#define TEO_ONE			8192
#define TEO_GAIN_MAX		(TEO_ONE + TEO_ONE / 4)

/* A state is worth entering from this score on: too deep costs wake-ups time. */
#define TEO_ENTER		(TEO_ONE * 15 / 100)

/*
 * The tick is stopped if idle times that reach the tick period are not rare,
 * and for a timer before that only if the state pays off nearly always.
 */
#define TEO_STOP_TICK		(-TEO_ONE * 3 / 10)
#define TEO_STOP_TICK_SHORT	(TEO_ONE * 4 / 10)

/* A score is the mean over about 1 << TEO_MEMORY events, fewer at first. */
#define TEO_MEMORY		6

/* The pseudo state after the deepest one whose residency is the tick period. */
#define TEO_COLUMNS		(CPUIDLE_STATE_MAX + 1)

/* Residencies fall into at most so many classes. */
#define TEO_CLASSES		6

#define TEO_RECIPROCAL_SHIFT	26

/**
 * struct teo_table - what the arithmetic needs to know of the idle states
 * @nr_states: number of idle states
 * @nr_bins: bins of idle times; the tick period is the last one's lower end
 *	unless a state's target residency is above it
 * @residency: lower end of each bin: target residencies, then the tick period
 * @reciprocal: TEO_ONE << TEO_RECIPROCAL_SHIFT over @residency
 * @class: class of each bin, below TEO_CLASSES
 */
struct teo_table {
	unsigned int nr_states;
	unsigned int nr_bins;
	s64 residency[TEO_COLUMNS];
	u64 reciprocal[TEO_COLUMNS];
	u8 class[TEO_COLUMNS];
};

/**
 * struct teo_row - what happened in one kind of situation
 * @score: decaying mean of the gains, per state and for the tick period
 * @events: number of events seen, up to what TEO_MEMORY can tell apart
 */
struct teo_row {
	s16 score[TEO_COLUMNS];
	u16 events;
};

/* No idle time is far enough from a residency of 0 for that to matter. */
static inline u64 teo_reciprocal(s64 residency)
{
	return div64_u64((u64)TEO_ONE << TEO_RECIPROCAL_SHIFT,
			 max_t(s64, residency, 1));
}

/**
 * teo_table_init - take over the target residencies
 * @table: to be filled
 * @residency: target residency of each state, not falling
 * @nr_states: number of states, up to CPUIDLE_STATE_MAX
 * @tick: tick period
 */
static inline void teo_table_init(struct teo_table *table, const s64 *residency,
				  unsigned int nr_states, s64 tick)
{
	unsigned int i, nr_classes;

	for (i = 0; i <= nr_states; i++) {
		table->residency[i] = i < nr_states ? residency[i] : tick;
		table->reciprocal[i] = teo_reciprocal(table->residency[i]);
	}

	table->nr_states = nr_states;
	table->nr_bins = nr_states;
	if (nr_states && residency[nr_states - 1] < tick)
		table->nr_bins++;

	nr_classes = min_t(unsigned int, table->nr_bins, TEO_CLASSES);
	for (i = 0; i < table->nr_bins; i++)
		table->class[i] = i * nr_classes / table->nr_bins;
}

/* Before anything was seen, the timer is trusted. */
static inline void teo_row_init(struct teo_row *row)
{
	unsigned int i;

	row->events = 0;
	for (i = 0; i < TEO_COLUMNS; i++)
		row->score[i] = TEO_ONE;
}

/* The last bin that starts no later than @idle. */
static inline unsigned int teo_bin(const struct teo_table *table, s64 idle)
{
	unsigned int bin = table->nr_bins - 1;

	while (bin && table->residency[bin] > idle)
		bin--;
	return bin;
}

/*
 * The driver states with the target residency T where a state starts to take
 * less energy than the next shallower one. Both energies grow linearly with the
 * idle time d, so what is gained (or, below T, lost) by entering the state is
 * proportional to d - T. In units of T:
 *
 *	gain = (d - T) / T,	cut off at TEO_GAIN_MAX
 */
static inline s32 teo_gain(s64 idle, s64 residency, u64 reciprocal)
{
	s64 most = 2 * residency + (residency >> 2);
	s64 over = (idle < most ? idle : most) - residency;

	return (over * (s64)reciprocal) >> TEO_RECIPROCAL_SHIFT;
}

/* score' = score + (gain - score) / 2^shift */
static inline void teo_score(struct teo_row *row, const struct teo_table *table,
			     unsigned int col, s64 idle, unsigned int shift)
{
	s32 gain = teo_gain(idle, table->residency[col], table->reciprocal[col]);

	row->score[col] += (gain - row->score[col]) >> shift;
}

/**
 * teo_learn - let an idle time count
 * @row: the situation in which it was
 * @table: the states
 * @idle: the idle time
 * @bin: bin of the sleep length; what is beyond could not be entered
 *
 * The first events weigh more, so that a row soon says something.
 */
static inline void teo_learn(struct teo_row *row, const struct teo_table *table,
			     s64 idle, unsigned int bin)
{
	unsigned int shift = TEO_MEMORY, col;

	if (row->events < (1 << TEO_MEMORY) - 2)
		shift = ilog2(++row->events + 1);

	for (col = 1; col <= bin; col++)
		teo_score(row, table, col, idle, shift);
}

/* The deepest of the states in the mask @states. */
static inline unsigned int teo_deepest(unsigned long states)
{
	return __fls(states);
}

/* Those of @states whose target residency fits into @idle. */
static inline unsigned long teo_fitting(const struct teo_table *table,
					unsigned long states, s64 idle)
{
	unsigned long shallowest = states & -states;
	unsigned int bin = teo_bin(table, idle);

	return (states & GENMASK(bin, 0)) | shallowest;
}

/**
 * teo_choose - the state to enter
 * @row: the situation
 * @states: mask of states that may be entered, not empty
 *
 * Return: the deepest state that is worth it, else the shallowest.
 */
static inline unsigned int teo_choose(const struct teo_row *row,
				      unsigned long states)
{
	unsigned int state = teo_deepest(states);

	while (row->score[state] < TEO_ENTER) {
		states &= ~BIT(state);
		if (!states)
			break;
		state = teo_deepest(states);
	}
	return state;
}

/**
 * teo_wants_tick_stopped - is the tick to be stopped for this state?
 * @row: the situation
 * @table: the states
 * @state: what was chosen, the deepest that the next timer allows
 * @sleep: time to the next timer event but the tick
 * @delta: time to the next timer event, the tick included
 * @tick: tick period
 */
static inline bool teo_wants_tick_stopped(const struct teo_row *row,
					  const struct teo_table *table,
					  unsigned int state, s64 sleep,
					  s64 delta, s64 tick)
{
	bool needed = table->residency[state] > delta;

	if (sleep < tick)
		return needed && row->score[state] >= TEO_STOP_TICK_SHORT;

	return needed || row->score[table->nr_states] >= TEO_STOP_TICK;
}

/**
 * teo_idle_time - how long nothing was to be done
 * @measured: from entry to exit
 * @latency: what leaving the state takes, as far as is known
 * @sleep: time to the next timer event at entry
 *
 * The exit latency is part of @measured, but the wake-up came before it.
 */
static inline s64 teo_idle_time(s64 measured, s64 latency, s64 sleep)
{
	s64 idle = max_t(s64, measured - latency, measured / 2);

	return min_t(s64, idle, sleep);
}

/**
 * teo_track_latency - what leaving a state takes, from one more observation
 * @latency: what was known so far
 * @seen: from a timer event to the exit that it caused
 * @worst: the driver's figure
 *
 * Something may delay a wake-up, nothing makes it come early: a short latency
 * is believed sooner than a long one.
 */
static inline s64 teo_track_latency(s64 latency, s64 seen, s64 worst)
{
	seen = clamp_t(s64, seen, 0, worst);
	if (seen < latency)
		return latency - ((latency - seen + 3) >> 2);

	return latency + ((seen - latency) >> 4);
}

#endif /* _CPUIDLE_TEO_CORE_H */
