# SPDX-License-Identifier: GPL-2.0
"""What runs on the stick: base and patched kernel compared on any machine."""
