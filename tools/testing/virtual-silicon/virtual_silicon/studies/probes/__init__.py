# SPDX-License-Identifier: GPL-2.0
"""Machines that others have probed: what the model makes of them."""
