# SPDX-License-Identifier: GPL-2.0
"""What is measured with guests: a directory each, with its loads, its text and its results."""
