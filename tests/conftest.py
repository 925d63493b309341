# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for all tests: Hypothesis tries the same examples in each run, and others only when one searches.

What failed is said at the end in few lines.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

from tools.failures import pytest_addoption, pytest_terminal_summary

__all__ = ["pytest_addoption", "pytest_terminal_summary"]

# A busy machine makes any example slow; what is too slow is for the benchmarks to say.
settings.register_profile(
    "known", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "search", settings.get_profile("known"), derandomize=False, max_examples=2000, print_blob=True
)
settings.load_profile(os.environ.get("VIRTOPS_HYPOTHESIS", "known"))
