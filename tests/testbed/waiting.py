# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait for a condition with a deadline and a sentence that says what was waited for."""

from __future__ import annotations

import time
from collections.abc import Callable

import httpx

from testbed.api import ApiError
from testbed.home import TestbedError

# How many times longer than expected something may take. Tests set more, so that only a hang meets a limit.
patience = 1.0


def wait_for(what: str, check: Callable[[], bool], timeout: float = 60, interval: float = 0.1) -> None:
    """Return when `check` is true; an API that cannot be reached or says no counts as not yet. Seconds throughout."""
    timeout *= patience
    deadline = time.monotonic() + timeout
    last = ""
    while True:
        try:
            if check():
                return
        except (httpx.TransportError, ApiError) as error:
            last = f" Last answer: {error}"
        if time.monotonic() >= deadline:
            raise TestbedError(f"Waited {timeout:.0f} s in vain for {what}.{last}")
        time.sleep(interval)
