/*
 * Virtual silicon: what a reset of the machine does to registers.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The first time it writes registers and asks for a reset; the second time it
 * finds out by memory that it has been there.
 */
#include "virtual-silicon.h"

#define MAGIC   0x5649525453494c49ull

/* No program of QEMU's or the firmware's uses it. */
#define MEMORY  ((uint64_t *)0x3000000)

struct written {
    const char *what;
    uint32_t msr;
    uint64_t val;
};

/* Not there on every part: then neither is what follows from it. */
static const struct written registers[] = {
    { "PERF_CTL is what it was", 0x199, 0x500 },
    { "ENERGY_PERF_BIAS is what it was", 0x1b0, 15 },
    { "IA32_UMWAIT_CONTROL is what it was", 0xe1, 0x1000 },
    { "MISC_ENABLE is what it was", 0x1a0, 1ull << 38 | 1 },
    { "PM_ENABLE is what it was", 0x770, 1 },
    { "HWP_REQUEST is what it was", 0x774, 0x1010 },
    { "P-state control is what it was", 0xc0010062, 1 },
    { "CPPC enable is what it was", 0xc00102b1, 1 },
    { "CPPC request is what it was", 0xc00102b3, 0x1010 },
};

#define REGISTERS   (sizeof(registers) / sizeof(*registers))

static void write_all(void)
{
    for (int i = 0; i < REGISTERS; i++) {
        MEMORY[i + 1] = msr(registers[i].msr);
        if (MEMORY[i + 1] != ~0ull) {
            wrmsr(registers[i].msr, registers[i].val);
            if (msr(registers[i].msr) == MEMORY[i + 1]) {
                check(false, "a write changes it");
            }
        }
    }
    wrmsr(0xe7, 1ull << 60);
    wrmsr(0xe8, 1ull << 60);
}

static void reset(void)
{
    MEMORY[0] = MAGIC;
    asm volatile("out %b0, %w1" : : "a" (6), "d" (0xcf9));
    for (;;) {
        asm volatile("hlt");
    }
}

int main(void)
{
    setup();
    if (MEMORY[0] != MAGIC) {
        write_all();
        if (failures) {
            return checked();
        }
        reset();
    }
    MEMORY[0] = 0;
    for (int i = 0; i < REGISTERS; i++) {
        if (MEMORY[i + 1] != ~0ull) {
            check(msr(registers[i].msr) == MEMORY[i + 1], registers[i].what);
        }
    }
    check(msr(0xe7) < 1ull << 56, "MPERF counts from 0");
    check(msr(0xe8) < 1ull << 56, "APERF counts from 0");
    return checked();
}
