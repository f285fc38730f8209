/* SPDX-License-Identifier: GPL-2.0 */
/*
 * At the end of aperfmperf.c: freq_max as the series chooses it, without the limit of cpufreq.
 * Not on AMD, and not where intel_pstate sets freq_max of each CPU.
 */
#include <linux/livepatch_helpers.h>

static u64 ratio_before, ratio_now;

static int freq_pre_patch(struct klp_object *obj)
{
	ratio_before = READ_ONCE(arch_turbo_freq_ratio);
	ratio_now = ratio_before;
	if (boot_cpu_data.x86_vendor == X86_VENDOR_INTEL && read_turbo_table())
		ratio_now = turbo_table_freq_max(&turbo_table, turbo_table.cores);
	return 0;
}

/* If turbo is disabled arch_max_freq_ratio is 1024, and stays. */
static void freq_switch(u64 from, u64 to)
{
	if (READ_ONCE(arch_turbo_freq_ratio) != from)
		return;
	WRITE_ONCE(arch_turbo_freq_ratio, to);
	if (READ_ONCE(arch_max_freq_ratio) == from)
		WRITE_ONCE(arch_max_freq_ratio, to);
	pr_info("freq_max / base frequency: %llu / 1024 in place of %llu\n", to, from);
}

static void freq_post_patch(struct klp_object *obj)
{
	freq_switch(ratio_before, ratio_now);
}

static void freq_post_unpatch(struct klp_object *obj)
{
	freq_switch(ratio_now, ratio_before);
}

KLP_PRE_PATCH_CALLBACK(freq_pre_patch);
KLP_POST_PATCH_CALLBACK(freq_post_patch);
KLP_POST_UNPATCH_CALLBACK(freq_post_unpatch);
