// SPDX-License-Identifier: GPL-2.0
/*
 * The base kernel's rule for freq_max, in user space.
 *
 * base_rule.c holds its functions as they stand in its aperfmperf.c, cut out by
 * invariance_freq_max.py. Reads "model 0xce 0x1ad 0x1ae" (hexadecimal, "-" for a
 * register that was not dumped), one CPU a line, and prints freq_max over base in
 * 1/1024, 0 where the base switches invariance off.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint32_t u32;
typedef uint64_t u64;

#define __init
#define __initconst
#define EXPORT_SYMBOL_GPL(symbol)
#define pr_debug(...)
#define div_u64(a, b)			((a) / (b))
#define SCHED_CAPACITY_SCALE		1024ull
#define X86_VENDOR_INTEL		0
#define X86_FEATURE_APERFMPERF		0
#define VFM_MAKE(vendor, family, model)	((vendor) << 16 | (family) << 8 | (model))
#define X86_MATCH_VFM_FEATURE(_vfm, feature, data)	{ .vfm = _vfm }

#include <asm/intel-family.h>
#include <asm/msr-index.h>

struct x86_cpu_id {
	u32 vfm;
};

static u32 this_vfm;
static u64 arch_turbo_freq_ratio;
static struct { u32 msr; bool known; u64 value; } registers[] = {
	{ MSR_PLATFORM_INFO }, { MSR_TURBO_RATIO_LIMIT }, { MSR_TURBO_RATIO_LIMIT1 },
};

#define REGISTERS	(sizeof(registers) / sizeof(registers[0]))

static const struct x86_cpu_id *x86_match_cpu(const struct x86_cpu_id *id)
{
	while (id->vfm && id->vfm != this_vfm)
		id++;
	return id->vfm ? id : NULL;
}

static int rdmsrl_safe(u32 msr, u64 *value)
{
	for (unsigned int i = 0; i < REGISTERS; i++) {
		if (registers[i].msr == msr && registers[i].known) {
			*value = registers[i].value;
			return 0;
		}
	}
	return -EIO;
}

static bool turbo_disabled(void)
{
	return false;
}

static void arch_set_max_freq_ratio(bool disabled)
{
}

#include "base_rule.c"

int main(void)
{
	char words[REGISTERS][32];
	unsigned int model;

	while (scanf("%x %31s %31s %31s", &model, words[0], words[1], words[2]) == 4) {
		this_vfm = VFM_MAKE(X86_VENDOR_INTEL, 6, model);
		for (unsigned int i = 0; i < REGISTERS; i++) {
			registers[i].known = strcmp(words[i], "-");
			registers[i].value = strtoull(words[i], NULL, 16);
		}
		arch_turbo_freq_ratio = 0;
		intel_set_max_freq_ratio();
		printf("%llu\n", (unsigned long long)arch_turbo_freq_ratio);
	}
	return 0;
}
