// SPDX-License-Identifier: GPL-2.0
/* Any word for freq_max: those of the documentation are taken, no others */
#include <ctype.h>

#include "fuzz.h"

#include "cpu/freq_max.h"

/* By the documentation. */
static int meant(const char *word, size_t len, bool turbo)
{
	static const char * const words[] = { "off", "nominal", "midpoint", "boost" };
	unsigned int cores = 0, i;
	const char *c = word;

	for (i = 0; i < ARRAY_SIZE(words); i++) {
		if (len == strlen(words[i]) && !memcmp(word, words[i], len))
			return 256 + i;
	}
	if (!turbo || len < 2 || len > 4 || word[len - 1] != 'c')
		return -EINVAL;
	if (*c == '0')
		return -EINVAL;
	while (isdigit((unsigned char)*c))
		cores = 10 * cores + *c++ - '0';
	return c == word + len - 1 && cores && cores < 256 ? (int)cores : -EINVAL;
}

/* A number of cores or a word, then any bytes in place of some of it */
static size_t a_word(struct input *in, char *word, size_t size)
{
	static const char * const words[] = { "off", "nominal", "midpoint", "boost", "" };
	u8 what = take(in, 1);
	size_t len;

	if (what & 1)
		snprintf(word, size, "%s%llu%s", what & 6 ? "" : "0",
			 (unsigned long long)take_any(in, 12), what & 24 ? "c" : "");
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
	bool turbo = take(in, 1) & 1;
	char word[64] = {};
	size_t len = a_word(in, word, sizeof(word));

	PROPERTY(freq_max_parse(word, turbo) ==
		 meant(word, len - (len && word[len - 1] == '\n'), turbo));
}
