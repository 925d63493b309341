# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Words that several rules share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.eviction import EXTERNAL, LIVE_MIGRATE

# How many names a sentence gives.
_MOST = 3


def names(given: Iterable[str]) -> str:
    """Sorted names, of many only the first."""
    listed = sorted(given)
    more = f" and {len(listed) - _MOST} more" if len(listed) > _MOST else ""
    return ", ".join(listed[:_MOST]) + more


def count(number: int, one: str, many: str = "") -> str:
    """`1 VM`, `2 VMs`."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def who(running: Sequence[str]) -> str:
    """The VMs that a sentence is about."""
    return f"VM {running[0]}" if len(running) == 1 else f"{len(running)} VMs ({names(running)})"


def unmovable_on_drain(strategy: str) -> str:
    """What a drain does to a VM that cannot be live-migrated, as the end of a sentence."""
    if strategy == LIVE_MIGRATE:
        return "each eviction is refused, so a drain of its node never ends"
    if strategy == EXTERNAL:
        return "each eviction is refused until somebody else moves it, so a drain of its node waits"
    return "a drain of its node shuts it down"
