# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the testbed's command line as `python -m testbed`."""

from __future__ import annotations

import sys

from testbed.cli import main

sys.exit(main())
