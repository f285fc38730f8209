/* SPDX-License-Identifier: GPL-2.0 */
/* What the units share: numbers taken from the input, and properties that end the program */
#ifndef FUZZ_H
#define FUZZ_H

#include <kunit/test.h>

#define PROPERTY(holds)							\
do {									\
	if (!(holds)) {							\
		fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #holds); \
		abort();						\
	}								\
} while (0)

struct input {
	const uint8_t *at, *end;
};

static inline u64 take(struct input *in, unsigned int bytes)
{
	u64 value = 0;

	while (bytes-- && in->at < in->end)
		value = value << 8 | *in->at++;
	return value;
}

/* Of any length in bits, so that small numbers and those near a limit are usual */
static inline u64 take_any(struct input *in, unsigned int bits)
{
	return take(in, 8) >> (64 - 1 - take(in, 1) % bits);
}

static inline u64 take_below(struct input *in, u64 limit)
{
	return take_any(in, 64) % limit;
}

static void one(struct input *in);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	one(&(struct input){ data, data + size });
	return 0;
}

#endif
