// SPDX-License-Identifier: GPL-2.0
/*
 * Counters that are set back or ahead: the kernel notices, the frequency reads right
 * again some ticks later, and invariance stays on.
 */
#include "counters.h"

#define TOLERANCE	0.05

static const struct fault {
	const char *name;
	uint64_t aperf, mperf;
	bool set_aperf, set_mperf;
} faults[] = {
	{ "both set back to 0",		0, 0, true, true },
	{ "MPERF set to 2^62",		0, 1ULL << 62, false, true },
	{ "MPERF set back to 0",	0, 0, false, true },
	{ "APERF set to 2^62",		1ULL << 62, 0, true, false },
	{ "APERF set back to 0",	0, 0, true, false },
	{ "both set to 2^61",		1ULL << 61, 1ULL << 61, true, true },
	{ "both close to wrapping",	-1000ULL, -1000ULL, true, true },
};

static bool inject(int cpu, const struct fault *fault)
{
	return (!fault->set_aperf || write_msr(cpu, MSR_APERF, fault->aperf)) &&
	       (!fault->set_mperf || write_msr(cpu, MSR_MPERF, fault->mperf));
}

/* Samples that the kernel has skipped; -1 if it does not say */
static long skipped(int cpu)
{
	FILE *file = fopen("/sys/kernel/debug/x86/freq_invariance", "r");
	char line[160];
	long n = -1;
	int of;

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "cpu %d", &of) == 1 && of == cpu &&
		    sscanf(strstr(line, "skipped") ?: "", "skipped %ld", &n) == 1)
			break;
	}
	if (file)
		fclose(file);
	return n;
}

/* Ticks of such CPUs take no samples and cannot notice */
static bool is_nohz_full(int cpu)
{
	FILE *file = fopen("/sys/devices/system/cpu/nohz_full", "r");
	bool found = false;
	int first, last;

	while (file && fscanf(file, "%d", &first) == 1) {
		if (fscanf(file, "-%d", &last) != 1)
			last = first;
		found |= first <= cpu && cpu <= last;
		if (fgetc(file) != ',')
			break;
	}
	if (file)
		fclose(file);
	return found;
}

static bool has_given_up(void)
{
	char *text = kernel_log();
	bool found = strstr(text, "wobbly") || strstr(text, "freq_invariance: off");

	free(text);
	return found;
}

int main(void)
{
	unsigned int i, nr = ARRAY_SIZE(faults);
	long before;
	int cpu = sysconf(_SC_NPROCESSORS_ONLN) - 1;
	struct load load;
	double base_khz, error;

	ksft_print_header();
	need_counters();
	need_invariance();
	while (cpu && is_nohz_full(cpu))
		cpu--;
	if (!write_msr(cpu, MSR_APERF, 1) || !write_msr(cpu, MSR_MPERF, 1))
		ksft_exit_skip("the counters cannot be written (msr.allow_writes=on?)\n");

	base_khz = tsc_khz();
	keep_off(cpu);
	start_load(&load, cpu);
	wait_ms(300);

	ksft_set_plan(2 * nr + 1);
	for (i = 0; i < nr; i++) {
		before = skipped(cpu);
		if (!inject(cpu, &faults[i])) {
			ksft_test_result_skip("cpu%d: %s\n", cpu, faults[i].name);
			ksft_test_result_skip("cpu%d: %s\n", cpu, faults[i].name);
			continue;
		}
		wait_ms(50);
		if (before < 0)
			ksft_test_result_skip("cpu%d: no count of bad samples\n", cpu);
		else
			ksft_test_result(skipped(cpu) > before,
					 "cpu%d: %s: noticed\n", cpu, faults[i].name);
		error = frequency_error(cpu, base_khz, cpuinfo_khz);
		ksft_test_result(error < TOLERANCE, "cpu%d: %s, then off by %.2f %%\n",
				 cpu, faults[i].name, 100 * error);
	}
	stop_load(&load);

	ksft_test_result(!has_given_up(), "invariance has not been given up\n");
	ksft_finished();
}
