# SPDX-License-Identifier: GPL-2.0
"""What is set up badly, a line each with the command that changes it.

Only files under sysfs and proc and the kernel's log are read, below a root that tests
can choose. A check is a function that yields findings; CHECKS lists them.
"""
from __future__ import annotations

import csv
import os
import re
import stat
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
