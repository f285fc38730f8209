/* SPDX-License-Identifier: GPL-2.0 */
/* What units of pure functions use of KUnit and of the kernel's headers, for user space */
#ifndef MUTANTS_KUNIT_TEST_H
#define MUTANTS_KUNIT_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t u64;
typedef int64_t s64;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint8_t u8;

#define U32_MAX			UINT32_MAX
#define U64_MAX			UINT64_MAX
#define NSEC_PER_USEC		1000L
#define NSEC_PER_MSEC		1000000L
#define NSEC_PER_SEC		1000000000L
#define SCHED_CAPACITY_SCALE	1024L
#define ARRAY_SIZE(a)		((int)(sizeof(a) / sizeof(*(a))))
#define GFP_KERNEL		0
#define min(a, b)		((a) < (b) ? (a) : (b))
#define max(a, b)		((a) > (b) ? (a) : (b))
#define div_u64(a, b)		((u64)(a) / (u32)(b))
#define MODULE_DESCRIPTION(text)
#define MODULE_LICENSE(text)

struct kunit { bool failed; };
struct kunit_case {
	void (*run)(struct kunit *test);
	const char *name;
};
struct kunit_suite {
	const char *name;
	struct kunit_case *test_cases;
};

#define KUNIT_CASE(f)			{ f, #f }
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

#define KUNIT_EXPECT_EQ(t, a, b)		KUNIT_COMPARE(t, a, ==, b, "")
#define KUNIT_EXPECT_LE(t, a, b)		KUNIT_COMPARE(t, a, <=, b, "")
#define KUNIT_EXPECT_LT(t, a, b)		KUNIT_COMPARE(t, a, <, b, "")
#define KUNIT_EXPECT_GE(t, a, b)		KUNIT_COMPARE(t, a, >=, b, "")
#define KUNIT_EXPECT_GT(t, a, b)		KUNIT_COMPARE(t, a, >, b, "")
#define KUNIT_EXPECT_TRUE(t, a)			KUNIT_COMPARE(t, !!(a), ==, true, "")
#define KUNIT_EXPECT_FALSE(t, a)		KUNIT_COMPARE(t, !!(a), ==, false, "")
#define KUNIT_EXPECT_EQ_MSG(t, a, b, ...)	KUNIT_COMPARE(t, a, ==, b, __VA_ARGS__)
#define KUNIT_EXPECT_LE_MSG(t, a, b, ...)	KUNIT_COMPARE(t, a, <=, b, __VA_ARGS__)
#define KUNIT_EXPECT_LT_MSG(t, a, b, ...)	KUNIT_COMPARE(t, a, <, b, __VA_ARGS__)
#define KUNIT_EXPECT_TRUE_MSG(t, a, ...)	KUNIT_COMPARE(t, !!(a), ==, true, __VA_ARGS__)
#define KUNIT_EXPECT_FALSE_MSG(t, a, ...)	KUNIT_COMPARE(t, !!(a), ==, false, __VA_ARGS__)

#define kunit_test_suite(suite)						\
int main(void)								\
{									\
	bool failed = false;						\
									\
	for (struct kunit_case *c = suite.test_cases; c->run; c++) {	\
		struct kunit test = { false };				\
									\
		c->run(&test);						\
		printf("%sok %s\n", test.failed ? "not " : "", c->name);	\
		failed |= test.failed;					\
	}								\
	return failed;							\
}									\
struct kunit

#endif
