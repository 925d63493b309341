# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look again until it is enough, or no time is left; of what gets old by itself a watch tells nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import clock
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure

Seen = TypeVar("Seen")


def until(
    look: Callable[[], Seen],
    is_enough: Callable[[Seen], bool],
    wait_seconds: float,
    pause: float,
    wanting: Callable[[Seen], object],
) -> Seen:
    """What was seen that is enough, or else at last: the time is over then.

    look: raises Failure. One that may pass is no reason not to look again.
    pause: seconds between two looks. wanting: hears what was seen and was not enough. Raises Failure: at once what does
    not pass, and in the end how the last look has failed, with all the tries since something was seen.
    """
    end = clock.now() + wait_seconds
    trouble: Failure | None = None
    while True:
        try:
            seen, trouble = look(), None
            if is_enough(seen):
                return seen
            wanting(seen)
            if end <= clock.now():
                return seen
        except Failure as error:
            if not error.passing:
                raise
            trouble = error.following(trouble)
            if end <= clock.now():
                raise
        time.sleep(max(0.0, min(pause, end - clock.now())))
