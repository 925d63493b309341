# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Follow something that takes time, step by step, and tell of it; a server that is away for a while is waited for."""

from __future__ import annotations

import time
from collections.abc import Sized
from typing import Protocol

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.failure import Failure

_PAUSE_AFTER_TROUBLE = 1.0
# News seldom comes alone, and telling it costs the start of another process.
_GATHERING = 1.0


class Run(Protocol):
    """trouble: why the last step failed. away: whether it has been told already that the server does not answer."""

    trouble: Failure | None
    away: bool

    @property
    def unfinished(self) -> Sized:
        """What has not come to its end."""

    def step(self, seconds: float) -> None:
        """Wait so long at most for something to happen, and do what follows from it. Raises Failure."""

    def news(self) -> list[str]:
        """Lines on what has changed since they were last asked for."""


def follow(run: Run, seconds: float, *, until_news: bool) -> list[str]:
    """Take steps until all has ended, or for so long, or until a moment after the first news; lines on the news.

    While the API server does not answer it is asked again. Raises Failure.
    """
    end = time.monotonic() + seconds
    lines = run.news()
    while len(run.unfinished):
        now = time.monotonic()
        if until_news and lines:
            until_news, end = False, now if run.away else min(end, now + _GATHERING)
        left = end - now
        if left <= 0:
            break
        try:
            run.step(left)
            run.trouble, run.away = None, False
        except Failure as error:
            if not error.passing:
                raise
            lines += endure(run, error, left)
        lines += run.news()
    return lines


def endure(run: Run, error: Failure, seconds: float) -> list[str]:
    """Wait a moment, for so long at most, after the server gave no answer; a line on it the first time."""
    lines = [] if run.away else [f"{error} Trying again."]
    run.trouble, run.away = error, True
    time.sleep(min(seconds, _PAUSE_AFTER_TROUBLE))
    return lines
