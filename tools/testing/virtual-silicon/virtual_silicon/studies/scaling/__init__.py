# SPDX-License-Identifier: GPL-2.0
"""What the kernel's paths cost on few and on many CPUs."""
