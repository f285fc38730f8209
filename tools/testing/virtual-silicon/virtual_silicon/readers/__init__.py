# SPDX-License-Identifier: GPL-2.0
"""What guests and the model leave behind: traces, sysfs, turbostat's tables; and pictures."""
