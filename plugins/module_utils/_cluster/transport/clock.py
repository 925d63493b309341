# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long ago something was seen, on a machine that may have slept meanwhile, and the clocks that a run goes by.

time.monotonic stands still while a laptop is suspended, and what was true before may not be any more.
"""

from __future__ import annotations

import time


def now() -> float:
    """Seconds since some moment, those of sleep included; setting the time does not change them."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()  # on macOS it goes on in sleep


class Clock:
    """The clocks of this machine; a simulation has others, on which time passes as it likes."""

    def since_epoch(self) -> float:
        """Seconds since the epoch, by a clock that may be set at any time."""
        return time.time()

    def steady(self) -> float:
        """Seconds since some moment that never run backwards; those of sleep may not count."""
        return time.monotonic()

    def now(self) -> float:
        """As `now` of this file."""
        return now()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
