/* SPDX-License-Identifier: GPL-2.0 */
/* At the end of menu.c: the series' teo, known to the kernel while the module is on. */
#include <linux/livepatch_helpers.h>

#include "../cpuidle.h"

#undef postcore_initcall
#define postcore_initcall(fn)	static_assert(true)
#include "teo_series.c"

static struct cpuidle_governor *teo_before;

static int teo_pre_patch(struct klp_object *obj)
{
	scoped_guard(mutex, &cpuidle_lock)
		teo_before = cpuidle_curr_governor;

	/* Its rating makes it the current one, unless the user has named another at boot. */
	return cpuidle_register_governor(&teo_governor);
}

static void teo_post_patch(struct klp_object *obj)
{
	guard(mutex)(&cpuidle_lock);
	cpuidle_switch_governor(&teo_governor);
}

static void teo_post_unpatch(struct klp_object *obj)
{
	guard(mutex)(&cpuidle_lock);
	list_del(&teo_governor.governor_list);
	/* Waits until no CPU is in the governor. */
	if (cpuidle_curr_governor == &teo_governor)
		cpuidle_switch_governor(teo_before);
	if (cpuidle_prev_governor == &teo_governor)
		cpuidle_prev_governor = teo_before;
}

KLP_PRE_PATCH_CALLBACK(teo_pre_patch);
KLP_POST_PATCH_CALLBACK(teo_post_patch);
KLP_POST_UNPATCH_CALLBACK(teo_post_unpatch);
