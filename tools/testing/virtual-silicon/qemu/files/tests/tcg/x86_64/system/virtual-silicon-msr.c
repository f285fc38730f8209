/*
 * Virtual silicon: which registers there are, and which bits they take.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Intel SDM volume 4; AMD: PPR, and APM volume 2 for CPPC.
 */
#include "virtual-silicon.h"

#define HAS_HWP     1
#define NO_HWP      2
#define HAS_CPPC    4
#define NO_CPPC     8

enum access { READ, WRITE };

struct rule {
    const char *what;
    enum access access;
    uint32_t msr;
    uint64_t val;
    int vector;
    int when;               /* 0: always */
};

static const struct rule common[] = {
    { "an unknown register", READ, 0x12345, 0, GP },
    { "an unknown register", WRITE, 0x12345, 0, GP },
    { "register 0", READ, 0, 0, GP },
    { "register 0", WRITE, 0, 0, GP },
    { "MPERF", WRITE, 0xe7, 5, 0 },
    { "APERF", WRITE, 0xe8, 5, 0 },
    { "MISC_ENABLE, a bit that no part has", WRITE, 0x1a0, 1ull << 1, GP },
};

static const struct rule intel[] = {
    { "PLATFORM_INFO", READ, 0xce, 0, 0 },
    { "PLATFORM_INFO", WRITE, 0xce, 0, GP },
    { "PERF_STATUS", WRITE, 0x198, 0, GP },
    { "PERF_CTL, turbo off", WRITE, 0x199, 1ull << 32 | 0x800, 0 },
    { "PERF_CTL, bit 16", WRITE, 0x199, 1ull << 16, GP },
    { "PERF_CTL, bit 33", WRITE, 0x199, 1ull << 33, GP },
    { "ENERGY_PERF_BIAS", WRITE, 0x1b0, 15, 0 },
    { "ENERGY_PERF_BIAS, bit 4", WRITE, 0x1b0, 16, GP },
    { "PKG_ENERGY_STATUS", READ, 0x611, 0, 0 },
    { "PKG_ENERGY_STATUS", WRITE, 0x611, 0, GP },
    { "CORE_C6_RESIDENCY", READ, 0x3fd, 0, 0 },
    { "CORE_C6_RESIDENCY", WRITE, 0x3fd, 0, GP },
    { "Silvermont's ratios on another part", READ, 0x66a, 0, GP },
    { "AMD's read-only MPERF", READ, 0xc00000e7, 0, GP },
    { "AMD's P-state control", READ, 0xc0010062, 0, GP },
    { "AMD's P-state control", WRITE, 0xc0010062, 0, GP },
    { "AMD's package energy", READ, 0xc001029b, 0, GP },
    { "PM_ENABLE", READ, 0x770, 0, GP, NO_HWP },
    { "PM_ENABLE", WRITE, 0x770, 1, GP, NO_HWP },
    { "HWP_REQUEST", READ, 0x774, 0, GP, NO_HWP },
    { "PM_ENABLE, bit 1", WRITE, 0x770, 2, GP, HAS_HWP },
    { "PM_ENABLE", WRITE, 0x770, 1, 0, HAS_HWP },
    { "PM_ENABLE, off again", WRITE, 0x770, 0, 0, HAS_HWP },
    { "HWP_CAPABILITIES", WRITE, 0x771, 0, GP, HAS_HWP },
    { "HWP_REQUEST", WRITE, 0x774, 0x80002020, 0, HAS_HWP },
};

static const struct rule amd[] = {
    { "read-only MPERF", READ, 0xc00000e7, 0, 0 },
    { "read-only MPERF", WRITE, 0xc00000e7, 0, GP },
    { "P-state limit", READ, 0xc0010061, 0, 0 },
    { "P-state limit", WRITE, 0xc0010061, 0, GP },
    { "P-state control", WRITE, 0xc0010062, 1, 0 },
    { "P-state control, bit 3", WRITE, 0xc0010062, 8, GP },
    { "P-state status", WRITE, 0xc0010063, 0, GP },
    { "definition of P0", WRITE, 0xc0010064, 0, GP },
    { "package energy", READ, 0xc001029b, 0, 0 },
    { "package energy", WRITE, 0xc001029b, 0, GP },
    { "Intel's PLATFORM_INFO", READ, 0xce, 0, GP },
    { "Intel's PERF_CTL", READ, 0x199, 0, GP },
    { "Intel's PERF_CTL", WRITE, 0x199, 0, GP },
    { "Intel's package energy", READ, 0x611, 0, GP },
    { "Intel's PM_ENABLE", READ, 0x770, 0, GP },
    { "CPPC enable", WRITE, 0xc00102b1, 1, GP, NO_CPPC },
    { "CPPC request", READ, 0xc00102b3, 0, GP, NO_CPPC },
    { "CPPC enable", WRITE, 0xc00102b1, 1, 0, HAS_CPPC },
    { "CPPC enable, off again", WRITE, 0xc00102b1, 0, 0, HAS_CPPC },
    { "CPPC capabilities", WRITE, 0xc00102b0, 0, GP, HAS_CPPC },
    { "CPPC request", WRITE, 0xc00102b3, 0x4040, 0, HAS_CPPC },
    { "CPPC status", WRITE, 0xc00102b4, 0, GP, HAS_CPPC },
};

static void test_rules(const struct rule *rules, int n, int has)
{
    for (int i = 0; i < n; i++) {
        const struct rule *r = &rules[i];
        uint64_t before = msr(r->msr), val;
        int vector;

        if (r->when && !(r->when & has)) {
            continue;
        }
        ml_printf("# %s 0x%x: %s\n", r->access == READ ? "RDMSR" : "WRMSR",
                  r->msr, r->vector ? "#GP" : "none");
        vector = r->access == READ ? rdmsr(r->msr, &val)
                                   : wrmsr(r->msr, r->val);
        check(vector == r->vector, r->what);
        if (r->access == WRITE && r->vector && r->msr < 0x600) {
            check(msr(r->msr) == before, "and it holds what it held");
        }
    }
}

/* MPERF goes on from what was written, APERF from where it was. */
static void test_counters(void)
{
    uint64_t aperf;

    wrmsr(0xe7, 0);
    wrmsr(0xe8, 1ull << 60);
    check(msr(0xe7) < 1ull << 40, "MPERF counts from 0");
    aperf = msr(0xe8);
    check(aperf >> 60 == 1 && aperf - (1ull << 60) < 1ull << 40,
          "APERF counts from what it was set to");
    check(msr(0xe8) > aperf, "and counts");
}

static void test_intel(bool hwp)
{
    uint32_t regs[4];

    test_rules(intel, sizeof(intel) / sizeof(*intel), hwp ? HAS_HWP : NO_HWP);
    if (hwp) {
        check(msr(0x770) == 1, "HWP stays on");
    }
    check(wrmsr(0x1a0, msr(0x1a0) | 1ull << 38) == 0, "MISC_ENABLE bit 38");
    cpuid(6, regs);
    check(!(regs[0] >> 1 & 1), "CPUID 6 shows no turbo");
    wrmsr(0x1a0, msr(0x1a0) & ~(1ull << 38));
    cpuid(6, regs);
    check(regs[0] >> 1 & 1, "CPUID 6 shows turbo");
}

static void test_amd(bool cppc)
{
    test_rules(amd, sizeof(amd) / sizeof(*amd), cppc ? HAS_CPPC : NO_CPPC);
    if (cppc) {
        check(msr(0xc00102b1) == 1, "CPPC stays on");
    }
}

int main(void)
{
    uint32_t regs[4];

    setup();
    test_rules(common, sizeof(common) / sizeof(*common), 0);
    cpuid(6, regs);
    check(regs[2] & 1, "CPUID 6 ECX bit 0: APERF and MPERF");
    test_counters();
    cpuid(0, regs);
    if (regs[1] == 0x756e6547) {                        /* GenuineIntel */
        cpuid(6, regs);
        test_intel(regs[0] >> 7 & 1);
    } else {
        cpuid(0x80000008, regs);
        test_amd(regs[1] >> 27 & 1);
    }
    return checked();
}
