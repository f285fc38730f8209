// SPDX-License-Identifier: GPL-2.0
/* Any word for a policy: those of the documentation are taken, no others */
#include <ctype.h>

#include "fuzz.h"

#include "cpu/freq_policy.c"

#define UNTOUCHED	77777

/* By the documentation: base, 1c to 9999c, all; nominal, midpoint, boost */
static unsigned int meant(const char *word, size_t len, enum freq_family family)
{
	static const char * const turbo[] = { "base", "all" };
	static const char * const boost[] = { "nominal", "midpoint", "boost" };
	unsigned int cores = 0;
	size_t i = 0;

	if (family == FREQ_FAMILY_BOOST) {
		for (i = 0; i < 3; i++) {
			if (len == strlen(boost[i]) && !memcmp(word, boost[i], len))
				return i;
		}
		return UNTOUCHED;
	}
	for (i = 0; i < 2; i++) {
		if (len == strlen(turbo[i]) && !memcmp(word, turbo[i], len))
			return i ? FREQ_POLICY_ALL_CORES : 0;
	}
	for (i = 0; i < len && i < 4 && isdigit((unsigned char)word[i]); i++)
		cores = 10 * cores + word[i] - '0';
	return i && i == len - 1 && word[i] == 'c' && *word != '0' ? cores : UNTOUCHED;
}

/* A number of cores or a word, then any bytes in place of some of it */
static size_t a_word(struct input *in, char *word, size_t size)
{
	static const char * const words[] = { "base", "all", "nominal", "midpoint", "boost", "" };
	u8 what = take(in, 1);
	size_t len;

	if (what & 1)
		snprintf(word, size, "%s%llu%s", what & 6 ? "" : "0",
			 (unsigned long long)take_any(in, 20), what & 24 ? "c" : "");
	else
		snprintf(word, size, "%s", words[(what >> 1) % ARRAY_SIZE(words)]);
	if (what & 32)
		strcat(word, "\n");
	len = strlen(word);
	for (; in->at < in->end && len < size - 1; len++)
		word[(what & 64 ? len : take(in, 1)) % (len + 1)] = take(in, 1);
	return strlen(word);
}

static void one(struct input *in)
{
	enum freq_family family = take(in, 1) & 1;
	unsigned int policy = UNTOUCHED, wanted;
	char word[64] = {}, again[FREQ_POLICY_WORD];
	size_t len = a_word(in, word, sizeof(word));
	int ret;

	wanted = meant(word, len - (len && word[len - 1] == '\n'), family);

	ret = freq_policy_parse(word, family, &policy);
	PROPERTY(policy == wanted);
	PROPERTY(ret == (wanted == UNTOUCHED ? -EINVAL : 0));
	if (ret)
		return;
	memset(again, 'x', sizeof(again));
	freq_policy_word(policy, family, again);
	PROPERTY(memchr(again, 0, sizeof(again)) && sysfs_streq(again, word));
}
