// SPDX-License-Identifier: GPL-2.0
/* Turbo tables of any register values, for all models */
#include "fuzz.h"
#include "cpu/turbo_table.c"

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
	unsigned int cores = turbo_table_cores(table, model->cores);

	if (model->cores != TURBO_SECOND_RATIO) {
		PROPERTY(cores == (widest < model->cores && model->cores != TURBO_ALL_CORES ?
				   1 : model->cores));
		return;
	}
	PROPERTY(cores <= widest);
	if (cores)
		PROPERTY(ratio_of(table, cores) < ratio_of(table, 1));
	for (unsigned int fewer = 1; fewer < (cores ?: widest + 1); fewer++)
		PROPERTY(ratio_of(table, fewer) >= ratio_of(table, 1));
}

static void one(struct input *in)
{
	int nr = take(in, 1) % ARRAY_SIZE(turbo_models);
	const struct turbo_model *model = turbo_model_find(turbo_models[nr].vfm);
	u64 base = take(in, 8), limits[TURBO_LIMIT_MSRS] = {};
	struct turbo_table table;
	unsigned int cores;

	PROPERTY(model == &turbo_models[nr]);
	PROPERTY(turbo_model_find(take(in, 4)));
	for (int i = 0; i < TURBO_LIMIT_MSRS && model->layout->limit_msrs[i]; i++)
		limits[i] = take(in, 8);

	memset(&table, 0xff, sizeof(table));
	if (turbo_table_decode(&table, model->layout, base, limits)) {
		PROPERTY(!table.nr_bins);
		return;
	}

	PROPERTY(table.base && table.base <= model->layout->base_mask && table.nr_bins);
	table_is_sound(&table);
	default_cores(&table, model);
	cores = take(in, 4);
	PROPERTY(turbo_table_freq_max(&table, 0) == 1024);
	for (; cores; cores >>= 1)
		PROPERTY(turbo_table_freq_max(&table, cores) ==
			 ratio_of(&table, cores) * 1024 / table.base);
}
