// SPDX-License-Identifier: GPL-2.0
/*
 * The base kernel's rule for freq_max, in user space.
 *
 * base_rule.c holds its functions as they stand in its aperfmperf.c, cut out by
 * parts.py. Reads "model 0xce 0x1ad 0x1ae" (hexadecimal, "-" for a
 * register that was not dumped), one CPU a line, and prints freq_max over base in
 * 1/1024, 0 where the base switches invariance off.
 */
#define __initconst
#define pr_debug(...)
#define X86_FEATURE_APERFMPERF		0
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

#define REGISTERS	ARRAY_SIZE(registers)

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

#define rdmsrq_safe	rdmsrl_safe		/* its name from 6.16 on */

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
		this_vfm = VFM_MAKE(X86_VENDOR_INTEL, model >> 8 ?: 6, model & 0xff);
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
