/* SPDX-License-Identifier: GPL-2.0 */
/* What units of pure functions use of KUnit and of the kernel's headers, for user space */
#ifndef MUTANTS_KUNIT_TEST_H
#define MUTANTS_KUNIT_TEST_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned __int128 u128;
typedef uint64_t u64;
typedef int64_t s64;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint16_t u16;
typedef int16_t s16;
typedef uint8_t u8;

#define U32_MAX			UINT32_MAX
#define U64_MAX			UINT64_MAX
#define NSEC_PER_USEC		1000L
#define NSEC_PER_MSEC		1000000L
#define NSEC_PER_SEC		1000000000L
#define SCHED_CAPACITY_SHIFT	10
#define SCHED_CAPACITY_SCALE	(1L << SCHED_CAPACITY_SHIFT)
#define KTIME_MAX		INT64_MAX
#define BIT(n)			(1UL << (n))
#define BIT_ULL(n)		(1ULL << (n))
#define VFM_MAKE(vendor, family, model)	((vendor) << 16 | (family) << 8 | (model))
#define X86_VENDOR_INTEL	0
#define ENODATA			61
#define EXPORT_SYMBOL_IF_KUNIT(symbol)
#define MODULE_IMPORT_NS(namespace)
#define unlikely(x)		(x)
#undef __always_inline
#define __always_inline		inline __attribute__((always_inline))
#define ARRAY_SIZE(a)		((int)(sizeof(a) / sizeof(*(a))))
#define GFP_KERNEL		0
#define min(a, b)		((a) < (b) ? (a) : (b))
#define max(a, b)		((a) > (b) ? (a) : (b))
#define min_t(type, a, b)	min((type)(a), (type)(b))
#define max_t(type, a, b)	max((type)(a), (type)(b))
#define clamp_t(type, v, a, b)	min_t(type, max_t(type, v, a), b)
#define div_u64(a, b)		((u64)(a) / (u32)(b))
#define div64_u64(a, b)		((u64)(a) / (u64)(b))
#define fls64(x)		((x) ? 64 - __builtin_clzll(x) : 0)
#define ilog2(x)		(fls64(x) - 1)
#define strscpy(to, from, size)	snprintf(to, size, "%s", from)
#define MODULE_DESCRIPTION(text)
#define MODULE_LICENSE(text)

#define KUNIT_PARAM_DESC_SIZE	128

struct kunit {
	bool failed;
	const void *param_value;
};
struct kunit_case {
	void (*run)(struct kunit *test);
	const char *name;
	const void *(*next)(const void *before, char *desc);
};
struct kunit_suite {
	const char *name;
	struct kunit_case *test_cases;
};

#define KUNIT_CASE(f)			{ f, #f }
#define KUNIT_CASE_PARAM(f, params)	{ f, #f, params }
#define KUNIT_PARAMS(name, array, describe)				\
static const void *name##_gen_params(const void *before, char *desc)	\
{									\
	__typeof__(&(array)[0]) next = before ? (__typeof__(next))before + 1 : array; \
									\
	if (next - array == ARRAY_SIZE(array))				\
		return NULL;						\
	describe;							\
	return next;							\
}
#define KUNIT_ARRAY_PARAM(name, array, get_desc)			\
	KUNIT_PARAMS(name, array, get_desc(next, desc))
#define KUNIT_ARRAY_PARAM_DESC(name, array, member)			\
	KUNIT_PARAMS(name, array, strscpy(desc, next->member, KUNIT_PARAM_DESC_SIZE))
#define kunit_kzalloc(test, size, gfp)	calloc(1, size)

#define KUNIT_FAIL(test, ...)						\
do {									\
	(test)->failed = true;						\
	printf("# %s:%d: ", __FILE__, __LINE__);			\
	printf("" __VA_ARGS__);						\
	printf("\n");							\
} while (0)

#define KUNIT_COMPARE(test, a, op, b, ...)				\
do {									\
	__typeof__(a) _a = (a);						\
	__typeof__(b) _b = (b);						\
	if (!(_a op _b)) {						\
		printf("# %s is %lld, not " #op " %lld\n", #a, (long long)_a, (long long)_b); \
		KUNIT_FAIL(test, __VA_ARGS__);				\
	}								\
} while (0)

#define KUNIT_ASSERT_EQ(t, a, b)					\
do {									\
	KUNIT_EXPECT_EQ(t, a, b);					\
	if ((t)->failed)						\
		return;							\
} while (0)
#define KUNIT_EXPECT_STREQ(t, a, b)		KUNIT_COMPARE(t, strcmp(a, b), ==, 0, "%s", a)
#define KUNIT_EXPECT_EQ(t, a, b)		KUNIT_COMPARE(t, a, ==, b, "")
#define KUNIT_EXPECT_LE(t, a, b)		KUNIT_COMPARE(t, a, <=, b, "")
#define KUNIT_EXPECT_LT(t, a, b)		KUNIT_COMPARE(t, a, <, b, "")
#define KUNIT_EXPECT_GE(t, a, b)		KUNIT_COMPARE(t, a, >=, b, "")
#define KUNIT_EXPECT_GT(t, a, b)		KUNIT_COMPARE(t, a, >, b, "")
#define KUNIT_EXPECT_TRUE(t, a)			KUNIT_COMPARE(t, !!(a), ==, true, "")
#define KUNIT_EXPECT_FALSE(t, a)		KUNIT_COMPARE(t, !!(a), ==, false, "")
#define KUNIT_ASSERT_NOT_NULL(t, a)		KUNIT_EXPECT_TRUE(t, a)
#define KUNIT_EXPECT_EQ_MSG(t, a, b, ...)	KUNIT_COMPARE(t, a, ==, b, __VA_ARGS__)
#define KUNIT_EXPECT_LE_MSG(t, a, b, ...)	KUNIT_COMPARE(t, a, <=, b, __VA_ARGS__)
#define KUNIT_EXPECT_LT_MSG(t, a, b, ...)	KUNIT_COMPARE(t, a, <, b, __VA_ARGS__)
#define KUNIT_EXPECT_GE_MSG(t, a, b, ...)	KUNIT_COMPARE(t, a, >=, b, __VA_ARGS__)
#define KUNIT_EXPECT_TRUE_MSG(t, a, ...)	KUNIT_COMPARE(t, !!(a), ==, true, __VA_ARGS__)
#define KUNIT_EXPECT_FALSE_MSG(t, a, ...)	KUNIT_COMPARE(t, !!(a), ==, false, __VA_ARGS__)

struct rnd_state { u64 x; };

static inline void prandom_seed_state(struct rnd_state *state, u64 seed)
{
	state->x = seed;
}

static inline void prandom_bytes_state(struct rnd_state *state, void *to, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		state->x = state->x * 6364136223846793005ULL + 1442695040888963407ULL;
		((u8 *)to)[i] = state->x >> 56;
	}
}

static inline bool kunit_run(struct kunit_case *c)
{
	char desc[KUNIT_PARAM_DESC_SIZE] = "";
	const void *param = NULL;
	bool failed = false;

	while (!c->next || (param = c->next(param, desc))) {
		struct kunit test = { .param_value = param };

		c->run(&test);
		printf("%sok %s %s\n", test.failed ? "not " : "", c->name, desc);
		failed |= test.failed;
		if (!c->next)
			break;
	}
	return failed;
}

#define kunit_test_suite(suite)						\
int main(void)								\
{									\
	bool failed = false;						\
									\
	for (struct kunit_case *c = suite.test_cases; c->run; c++)	\
		failed |= kunit_run(c);					\
	return failed;							\
}									\
struct kunit

#endif
