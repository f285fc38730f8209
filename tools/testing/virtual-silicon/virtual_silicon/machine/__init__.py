# SPDX-License-Identifier: GPL-2.0
"""Machine files, what they describe, and what registers, tables and the emulator make of it."""
