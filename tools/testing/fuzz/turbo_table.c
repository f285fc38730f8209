// SPDX-License-Identifier: GPL-2.0
/* Turbo tables of any register values, for all models */
#include "fuzz.h"
#include "cpu/turbo_table.h"

static void table_is_sound(const struct turbo_table *table)
{
	PROPERTY(table->nr_bins <= TURBO_BINS_MAX);
	for (int i = 0; i < table->nr_bins; i++) {
		PROPERTY(table->bins[i].ratio >= table->base);
		PROPERTY(table->bins[i].cores > (i ? table->bins[i - 1].cores : 0));
	}
}

/* The ratio of the narrowest bin that the cores fit into, else of the widest */
static u32 ratio_of(const struct turbo_table *table, unsigned int cores)
{
	for (int i = 0; i < table->nr_bins; i++) {
		if (table->bins[i].cores >= cores)
			return table->bins[i].ratio;
	}
	return table->bins[table->nr_bins - 1].ratio;
}

static void default_cores(const struct turbo_table *table, const struct turbo_model *model)
{
	unsigned int widest = table->bins[table->nr_bins - 1].cores;
	unsigned int fewer;

	if (model->cores != TURBO_SECOND_RATIO) {
		PROPERTY(table->cores == (widest < model->cores && model->cores != TURBO_ALL_CORES ?
					  1 : model->cores));
		return;
	}
	PROPERTY(table->cores && table->cores <= widest);
	if (table->cores > 1)
		PROPERTY(ratio_of(table, table->cores) < ratio_of(table, 1));
	for (fewer = 1; fewer < (table->cores > 1 ? table->cores : widest + 1); fewer++)
		PROPERTY(ratio_of(table, fewer) >= ratio_of(table, 1));
}

static void one(struct input *in)
{
	int nr = take(in, 1) % ARRAY_SIZE(turbo_models);
	const struct turbo_model *model = &turbo_models[nr];
	u8 base = take(in, 1);
	u64 limits[TURBO_LIMIT_MSRS] = {};
	struct turbo_table table;
	unsigned int cores;

	for (int i = 0; i < TURBO_LIMIT_MSRS; i++)
		limits[i] = take(in, 8);

	memset(&table, 0xff, sizeof(table));
	if (turbo_table_decode(&table, model->vfm, base, limits)) {
		PROPERTY(!table.nr_bins);
		return;
	}

	PROPERTY(table.base == base && base && table.nr_bins);
	table_is_sound(&table);
	default_cores(&table, model);
	for (cores = take(in, 4); cores; cores >>= 1)
		PROPERTY(turbo_table_freq_max(&table, cores) ==
			 ratio_of(&table, cores) * 1024 / table.base);
}
