# SPDX-License-Identifier: GPL-2.0
"""Machine files, guest and reports for the emulated CPU (see ../README.md)."""
