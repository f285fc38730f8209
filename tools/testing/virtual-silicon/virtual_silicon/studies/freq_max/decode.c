// SPDX-License-Identifier: GPL-2.0
/*
 * Reads "model base limit limit1 limit2" (hexadecimal) from standard input, one
 * CPU a line, and prints what turbo_table.c makes of it: the layout, freq_max over
 * base in 1/1024 (0: nothing), the same if all cores did not count, and the bins.
 */
#include "turbo_table.h"

int main(void)
{
	unsigned long long base, limit[TURBO_LIMIT_MSRS];
	unsigned int number, i;

	while (scanf("%x %llx %llx %llx %llx", &number, &base, &limit[0], &limit[1],
		     &limit[2]) == 5) {
		u32 vfm = VFM_MAKE(X86_VENDOR_INTEL, 6, number);
		const struct turbo_model *model = turbo_model_find(vfm);
		u64 limits[TURBO_LIMIT_MSRS];
		struct turbo_table table;
		unsigned int cores = model->cores;
		u32 ratio = 0, four = 0;

		for (i = 0; i < TURBO_LIMIT_MSRS; i++)
			limits[i] = model->layout->limit_msrs[i] ? limit[i] : 0;

		if (!turbo_table_decode(&table, model->layout, base, limits)) {
			ratio = turbo_table_freq_max(&table, turbo_table_cores(&table, cores));
			if (cores == TURBO_ALL_CORES)
				cores = 4;
			four = turbo_table_freq_max(&table, turbo_table_cores(&table, cores));
		}

		printf("%s %u %u", model->layout->name, ratio, four);
		for (i = 0; i < table.nr_bins; i++)
			printf(" %u:%u", table.bins[i].cores, table.bins[i].ratio);
		putchar('\n');
	}

	return 0;
}
