/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the kernel sources that are compiled in user space use of the kernel.
 *
 * gcc includes this first (-include). headers.py makes the headers that the
 * sources name: a few are the kernel's own, the others are empty.
 */
#ifndef SHIM_KERNEL_H
#define SHIM_KERNEL_H

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "dup.h"
#include "stubs.h"
#include "custom.h"

#endif
