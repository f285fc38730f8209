/* SPDX-License-Identifier: GPL-2.0 */
/* At the end of cpufreq_schedutil.c of the series. */
#include <linux/livepatch_helpers.h>

/* While both versions ran, the base's may have changed levels: forget what is known of them. */
static void schedutil_post_patch(struct klp_object *obj)
{
	int cpu;

	for_each_possible_cpu(cpu)
		WRITE_ONCE(per_cpu(live_policies, cpu).holdoff.unit, 0);
}

KLP_POST_PATCH_CALLBACK(schedutil_post_patch);
