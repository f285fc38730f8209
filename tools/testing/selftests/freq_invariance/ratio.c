// SPDX-License-Identifier: GPL-2.0
/*
 * Frequency invariance is on, and freq_max is what the turbo registers of this
 * CPU say: computed here a second time, from /dev/cpu/0/msr.
 */
#include "counters.h"

enum layout { BYTES, GROUPS, DELTAS, ATOM };

/* Models that differ from one byte per core and the 4C ratio; beyond family 6 with the family */
static const struct exception {
	unsigned int model;
	enum layout layout;
	unsigned int cores;	/* 0: second highest, 255: all */
} exceptions[] = {
	{ 0x55, GROUPS, 4 }, { 0x6a, GROUPS, 255 }, { 0x6c, GROUPS, 255 },
	{ 0x8f, GROUPS, 255 }, { 0xcf, GROUPS, 255 }, { 0xad, GROUPS, 255 },
	{ 0xae, GROUPS, 255 }, { 0x1301, GROUPS, 255 }, { 0x86, GROUPS, 4 }, { 0xaf, GROUPS, 4 },
	{ 0xb6, GROUPS, 4 }, { 0xdd, GROUPS, 4 }, { 0xd7, GROUPS, 4 },
	{ 0x5c, GROUPS, 1 }, { 0x5f, GROUPS, 1 }, { 0x7a, GROUPS, 1 },
	{ 0x37, ATOM, 1 }, { 0x4d, ATOM, 1 }, { 0x4a, ATOM, 1 },
	{ 0x4c, ATOM, 1 }, { 0x5a, ATOM, 1 }, { 0x75, ATOM, 1 },
	{ 0x57, DELTAS, 0 }, { 0x85, DELTAS, 0 },
};

static bool is_intel(void)
{
	unsigned int eax, ebx, ecx, edx;

	return __get_cpuid(0, &eax, &ebx, &ecx, &edx) && ebx == signature_INTEL_ebx;
}

static struct exception model_of_cpu(void)
{
	struct exception plain = { 0, BYTES, 4 };
	unsigned int eax = 0, ebx, ecx, edx, family, i;

	__get_cpuid(1, &eax, &ebx, &ecx, &edx);
	family = eax >> 8 & 0xf;
	if (family == 0xf)
		family += eax >> 20 & 0xff;
	plain.model = (eax >> 4 & 0xf) | (eax >> 12 & 0xf0) | (family == 6 ? 0 : family << 8);

	for (i = 0; i < ARRAY_SIZE(exceptions); i++) {
		if (exceptions[i].model == plain.model)
			return exceptions[i];
	}
	return plain;
}

static unsigned int byte(uint64_t value, unsigned int i)
{
	return value >> 8 * i & 0xff;
}

/* freq_max as a ratio, from one register of ratios and one of counts */
static unsigned int turbo(struct exception m, uint64_t limit, uint64_t counts)
{
	unsigned int i, widest = 0, ratio = 0;

	switch (m.layout) {
	case GROUPS:
		for (i = 0; i < 8; i++) {
			if (!byte(limit, i) || byte(counts, i) <= widest)
				continue;
			widest = byte(counts, i);
			ratio = byte(limit, i);
			if (widest >= m.cores)
				return ratio;
		}
		return m.cores == 255 ? ratio : byte(limit, 0);
	case DELTAS:
		for (i = 2; i < 8; i++) {
			if (byte(limit, i) >> 5)
				return byte(limit, 1) - (byte(limit, i) >> 5);
		}
		return byte(limit, 1);	/* one level */
	case ATOM:
		return byte(limit, 0) & 0x3f;
	default:
		return byte(limit, m.cores - 1) ?: byte(limit, 0);
	}
}

/* freq_max / base frequency in 1/1024; 0 if the registers do not say */
static unsigned int expected_ratio(void)
{
	struct exception m = model_of_cpu();
	uint64_t info, limit, counts = 0, misc = 0;
	unsigned int base;

	if (!read_msr(0, m.layout == ATOM ? 0x66a : MSR_PLATFORM_INFO, &info) ||
	    !read_msr(0, m.layout == ATOM ? 0x66c : 0x1ad, &limit) ||
	    (m.layout == GROUPS && !read_msr(0, 0x1ae, &counts)))
		return 0;

	base = m.layout == ATOM ? byte(info, 2) & 0x3f : byte(info, 1);
	if (!base)
		return 0;
	ksft_print_msg("model %#x: base %u, freq_max %u\n", m.model, base,
		       turbo(m, limit, counts));

	if (read_msr(0, MSR_MISC_ENABLE, &misc) && misc >> 38 & 1)
		return 1024;
	return turbo(m, limit, counts) * 1024 / base;
}

static unsigned int ratio_of_kernel(void)
{
	char *text = kernel_log();
	char *line = strstr(text, "ratio of average max frequency by base frequency");
	unsigned int ratio = 0;

	if (line && sscanf(line, "%*[^:]: %u", &ratio) != 1)
		ratio = 0;
	free(text);
	return ratio;
}

int main(void)
{
	unsigned int ratio, expected;

	ksft_print_header();
	need_counters();
	need_invariance();
	if (!is_intel())
		ksft_exit_skip("only Intel CPUs have their turbo clocks in registers\n");
	expected = expected_ratio();
	if (!expected)
		ksft_exit_skip("the registers do not say what freq_max is\n");

	ksft_set_plan(2);
	ratio = ratio_of_kernel();
	ksft_test_result(ratio, "invariance is on\n");
	ksft_test_result(ratio == expected, "freq_max of the kernel %u, of the registers %u\n",
			 ratio, expected);
	ksft_finished();
}
