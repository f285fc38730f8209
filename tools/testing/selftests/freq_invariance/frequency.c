// SPDX-License-Identifier: GPL-2.0
/*
 * scaling_cur_freq and /proc/cpuinfo say of a busy CPU what APERF and MPERF say.
 * With a number as argument, of that CPU only; else of the first eight.
 */
#include "counters.h"

#define MOST_CPUS	8
#define TOLERANCE	0.05

static void test_cpu(int cpu, double base_khz)
{
	struct load load;
	double error;

	keep_off(cpu);
	start_load(&load, cpu);
	wait_ms(300);

	if (sysfs_khz(cpu)) {
		error = frequency_error(cpu, base_khz, sysfs_khz);
		ksft_test_result(error < TOLERANCE,
				 "cpu%d: scaling_cur_freq off by %.2f %%\n", cpu, 100 * error);
	} else {
		ksft_test_result_skip("cpu%d: no cpufreq driver\n", cpu);
	}

	error = frequency_error(cpu, base_khz, cpuinfo_khz);
	ksft_test_result(error < TOLERANCE,
			 "cpu%d: /proc/cpuinfo off by %.2f %%\n", cpu, 100 * error);
	stop_load(&load);
}

int main(int argc, char **argv)
{
	int cpu, online[MOST_CPUS], nr = 0;
	double base_khz;
	uint64_t value;

	ksft_print_header();
	need_counters();

	for (cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF) && nr < MOST_CPUS; cpu++) {
		if (argc > 1 ? cpu == atoi(argv[1]) : read_msr(cpu, MSR_MPERF, &value))
			online[nr++] = cpu;
	}
	if (!nr)
		ksft_exit_fail_msg("no such CPU\n");

	base_khz = tsc_khz();
	ksft_print_msg("base frequency %.0f kHz\n", base_khz);
	ksft_set_plan(2 * nr);
	for (cpu = 0; cpu < nr; cpu++)
		test_cpu(online[cpu], base_khz);
	ksft_finished();
}
