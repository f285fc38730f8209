# SPDX-License-Identifier: GPL-2.0
"""What ends the program with one line."""


class Fail(Exception):
    """A line for the user: what is wrong, and what would be right."""
