/* SPDX-License-Identifier: GPL-2.0 */
/* Which frequency counts as the highest one: pure functions */
#ifndef _X86_KERNEL_CPU_FREQ_MAX_H
#define _X86_KERNEL_CPU_FREQ_MAX_H

#include <linux/errno.h>
#include <linux/kstrtox.h>
#include <linux/string.h>

/* A choice is one of these or a number of cores active in turbo; 0: not chosen yet */
enum freq_max {
	FREQ_MAX_OFF = 256,
	FREQ_MAX_NOMINAL,
	FREQ_MAX_MIDPOINT,
	FREQ_MAX_BOOST,
};

static const char * const freq_max_words[] = { "off", "nominal", "midpoint", "boost" };

/* Return: the choice, or -EINVAL; "1c" to "255c" need a @turbo table */
static inline int freq_max_parse(const char *word, bool turbo)
{
	size_t digits = strspn(word, "0123456789");
	char number[4];
	u8 cores;
	int ret = sysfs_match_string(freq_max_words, word);

	if (ret >= 0)
		return FREQ_MAX_OFF + ret;

	if (!turbo || *word == '0' || digits >= sizeof(number) ||
	    !sysfs_streq(word + digits, "c"))
		return -EINVAL;

	strscpy(number, word, digits + 1);
	return kstrtou8(number, 10, &cores) ? -EINVAL : cores;
}

#endif /* _X86_KERNEL_CPU_FREQ_MAX_H */
