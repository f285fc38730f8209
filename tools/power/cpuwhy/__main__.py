# SPDX-License-Identifier: GPL-2.0
"""python3 -m cpuwhy"""
import sys

from .cli import main

sys.exit(main())
