// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/devices/system/cpu/freq_invariance and cpuN/freq_invariance:
 * Documentation/ABI/testing/sysfs-devices-system-cpu-freq-invariance.
 */
#define pr_fmt(fmt) "freq_invariance: " fmt

#include <linux/cpu.h>
#include <linux/cpufeature.h>
#include <linux/device.h>
#include <linux/init.h>
#include <linux/kobject.h>
#include <linux/math64.h>
#include <linux/printk.h>
#include <linux/sysfs.h>
#include <linux/topology.h>

#include <asm/tsc.h>

#include "cpu.h"
#include "freq_policy.h"
#include "turbo_table.h"

static ssize_t enabled_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", static_key_enabled(&arch_scale_freq_key));
}
static DEVICE_ATTR_RO(enabled);

static ssize_t policy_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	char word[FREQ_POLICY_WORD];

	freq_policy_word(READ_ONCE(freq_policy), freq_family(), word);

	return sysfs_emit(buf, "%s\n", word);
}

static ssize_t policy_store(struct device *dev, struct device_attribute *attr,
			    const char *buf, size_t count)
{
	return freq_max_set_policy(buf) ?: count;
}
static DEVICE_ATTR_RW(policy);

static ssize_t available_policies_show(struct device *dev, struct device_attribute *attr,
				       char *buf)
{
	return sysfs_emit(buf, "%s\n", freq_policy_words(freq_family()));
}
static DEVICE_ATTR_RO(available_policies);

static ssize_t turbo_table_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	const struct turbo_bin *bin = turbo_table.bins;
	int len = 0;

	for (; bin < turbo_table.bins + turbo_table.nr_bins; bin++)
		len += sysfs_emit_at(buf, len, "%u %llu\n", bin->cores,
				     DIV_ROUND_CLOSEST_ULL((u64)bin->ratio * tsc_khz,
							   turbo_table.base));

	return len;
}
static DEVICE_ATTR_RO(turbo_table);

static struct attribute *common_attrs[] = {
	&dev_attr_enabled.attr,
	&dev_attr_policy.attr,
	&dev_attr_available_policies.attr,
	&dev_attr_turbo_table.attr,
	NULL
};

static umode_t common_is_visible(struct kobject *kobj, struct attribute *attr, int n)
{
	return attr == &dev_attr_turbo_table.attr && !turbo_table.nr_bins ? 0 : attr->mode;
}

static const struct attribute_group common_group = {
	.name		= "freq_invariance",
	.attrs		= common_attrs,
	.is_visible	= common_is_visible,
};

/* One number of a CPU, by the device's id */
#define CPU_ATTR(_name, _value)							\
static ssize_t _name##_show(struct device *dev, struct device_attribute *attr,	\
			    char *buf)						\
{										\
	unsigned int cpu = dev->id;						\
										\
	return sysfs_emit(buf, "%lu\n", (unsigned long)(_value));		\
}										\
static DEVICE_ATTR_RO(_name)

CPU_ATTR(scale, READ_ONCE(per_cpu(arch_freq_scale, cpu)));
CPU_ATTR(max_ratio, freq_max_of_cpu(cpu));
CPU_ATTR(skipped, freq_samples_skipped(cpu));

static struct attribute *cpu_attrs[] = {
	&dev_attr_scale.attr,
	&dev_attr_max_ratio.attr,
	&dev_attr_skipped.attr,
	NULL
};

static const struct attribute_group cpu_group = {
	.name	= "freq_invariance",
	.attrs	= cpu_attrs,
};

static int add_cpu_files(struct device *dev, struct subsys_interface *sif)
{
	return sysfs_create_group(&dev->kobj, &cpu_group);
}

static struct subsys_interface cpu_interface = {
	.name		= "freq_invariance",
	.subsys		= &cpu_subsys,
	.add_dev	= add_cpu_files,
};

static int __init freq_invariance_sysfs_init(void)
{
	struct device *root;
	int ret;

	if (!cpu_feature_enabled(X86_FEATURE_APERFMPERF)) {
		pr_info("off, no APERF and MPERF\n");
		return 0;
	}

	root = bus_get_dev_root(&cpu_subsys);
	if (!root)
		return -ENODEV;

	ret = sysfs_create_group(&root->kobj, &common_group);
	put_device(root);

	return ret ?: subsys_interface_register(&cpu_interface);
}
late_initcall(freq_invariance_sysfs_init);
