# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One clock for all steps of a load: how long they may still take, and progress lines that tell how long they took."""

from __future__ import annotations

import time


class Deadline:
    def __init__(self, timeout: float) -> None:
        """`timeout` in seconds from now on."""
        self.timeout = timeout
        self.start = time.monotonic()
        self.said = ""

    @property
    def passed(self) -> bool:
        return self.elapsed >= self.timeout

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.start

    def report(self, text: str) -> None:
        """Print a line of progress, unless it says the same as the one before."""
        if text != self.said:
            print(f"{self.elapsed:6.1f} s  {text}", flush=True)
            self.said = text
