/* SPDX-License-Identifier: GPL-2.0 */
/* KUnit as a program: what the units use of it, by its names */
#ifndef SHIM_KUNIT_TEST_H
#define SHIM_KUNIT_TEST_H

#define KUNIT_PARAM_DESC_SIZE	128
#define HZ			250

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
	if (next - array == (int)ARRAY_SIZE(array))				\
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
#define KUNIT_EXPECT_GE_MSG(t, a, b, ...)	KUNIT_COMPARE(t, a, >=, b, __VA_ARGS__)
#define KUNIT_EXPECT_TRUE_MSG(t, a, ...)	KUNIT_COMPARE(t, !!(a), ==, true, __VA_ARGS__)
#define KUNIT_EXPECT_FALSE_MSG(t, a, ...)	KUNIT_COMPARE(t, !!(a), ==, false, __VA_ARGS__)

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
	setlinebuf(stdout);	/* what a case said is there if the next one crashes */ \
	for (struct kunit_case *c = suite.test_cases; c->run; c++)	\
		failed |= kunit_run(c);					\
	return failed;							\
}									\
struct kunit

#endif
