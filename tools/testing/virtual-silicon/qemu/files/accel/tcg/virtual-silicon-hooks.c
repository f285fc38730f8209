/*
 * The places where the rest of QEMU tells the model what happens.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "exec/virtual-silicon.h"

const VirtualSiliconModel *virtual_silicon;

static int64_t clock_now(void)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

void virtual_silicon_finish(void)
{
    if (virtual_silicon) {
        virtual_silicon->ops->finish(virtual_silicon, clock_now());
    }
}

void virtual_silicon_rest(CPUState *cs)
{
    if (virtual_silicon && cs->halted) {
        virtual_silicon->ops->rest(cs, clock_now());
    }
}

void virtual_silicon_wake(CPUState *cs)
{
    if (virtual_silicon && !virtual_silicon->deterministic) {
        virtual_silicon->ops->wake(cs, clock_now());
    }
}
