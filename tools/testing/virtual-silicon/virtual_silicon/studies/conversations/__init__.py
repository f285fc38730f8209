# SPDX-License-Identifier: GPL-2.0
"""Tasks that take turns, with and without chains."""
