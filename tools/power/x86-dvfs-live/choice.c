/* SPDX-License-Identifier: GPL-2.0 */
/*
 * At the end of fair.c of the series: a switch in debugfs in place of SIS_SHALLOW, for comparisons
 * without a transition.
 */
#include <linux/debugfs.h>
#include <linux/livepatch_helpers.h>

static struct dentry *live_dir;

static void choice_post_patch(struct klp_object *obj)
{
	live_dir = debugfs_create_dir("x86-dvfs-live", NULL);
	debugfs_create_bool("choice", 0600, live_dir, &live_choice);
}

static void choice_pre_unpatch(struct klp_object *obj)
{
	debugfs_remove(live_dir);
}

KLP_POST_PATCH_CALLBACK(choice_post_patch);
KLP_PRE_UNPATCH_CALLBACK(choice_pre_unpatch);
