// SPDX-License-Identifier: GPL-2.0
/*
 * Reads "model base limit limit1 limit2" (hexadecimal) from standard input, one
 * CPU a line, and prints what turbo_table.h makes of it: freq_max over base in
 * 1/1024 (0: nothing), the same if all cores did not count, and the bins.
 */
#include "turbo_table.h"

int main(void)
{
	unsigned long long base, limit[TURBO_LIMIT_MSRS];
	unsigned int number, i;

	while (scanf("%x %llx %llx %llx %llx", &number, &base, &limit[0], &limit[1],
		     &limit[2]) == 5) {
		u64 limits[TURBO_LIMIT_MSRS] = { limit[0], limit[1], limit[2] };
		struct turbo_table table;
		u32 ratio = 0, four = 0;

		if (!turbo_table_decode(&table, VFM_MAKE(X86_VENDOR_INTEL, number >> 8 ?: 6,
							    number & 0xff),
					base >> 8 & 0xff, limits)) {
			ratio = turbo_table_freq_max(&table, table.cores);
			four = ratio;
			if (table.cores == TURBO_ALL_CORES)
				four = turbo_table_freq_max(&table,
					table.bins[table.nr_bins - 1].cores < 4 ? 1 : 4);
		}

		printf("%u %u", ratio, four);
		for (i = 0; i < table.nr_bins; i++)
			printf(" %u:%u", table.bins[i].cores, table.bins[i].ratio);
		putchar('\n');
	}

	return 0;
}
