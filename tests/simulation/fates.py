# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What may become of a command, and what is heard of it, as `_cluster` tells it."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

from hypothesis import strategies as st

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Answer, Command

FORBIDDEN, BUSY, TROUBLE = "a webhook forbids it", "the server has too much to do", "the server fails"
CHANGED = "it has been changed meanwhile"
# What time mends.
PASSING = (BUSY, TROUBLE, CHANGED)


# So many tell a fate.
BITS = 5


class Fate(Enum):
    """LOST, LOST_BEFORE: no answer came, after it was carried out or before. FAILED, FAILED_BEFORE: so, but a 5xx came.

    NEVER_ASKED: another one had no answer. THROTTLED: a 429. CONFLICT: a 409. DENIED: who asks may do nothing of the
    kind any more. DIES, DIES_AFTER: who asks, before or after it was done.
    """

    DONE = auto()
    LOST = auto()
    LOST_BEFORE = auto()
    FAILED = auto()
    FAILED_BEFORE = auto()
    NEVER_ASKED = auto()
    THROTTLED = auto()
    CONFLICT = auto()
    FORBIDDEN = auto()
    DENIED = auto()
    DIES = auto()
    DIES_AFTER = auto()

    @property
    def told(self) -> str:
        return f"a command: {self.name.lower().replace('_', ' ')}"


# Of eight commands, by their bits: bytes are drawn evenly, and numbers are mostly small ones.
DRAWN = st.binary(min_size=BITS, max_size=BITS).map(lambda drawn: int.from_bytes(drawn, "big"))
_OFTEN = [fate for fate in Fate if fate not in (Fate.DONE, Fate.DENIED)] * 2
# Of which the bits choose one.
FATES = (*[Fate.DONE] * (2**BITS - len(_OFTEN) - 1), Fate.DENIED, *_OFTEN)
CARRIED_OUT = frozenset({Fate.DONE, Fate.LOST, Fate.FAILED, Fate.DIES_AFTER})
# No answer came to it, or it was not asked as none came to another one.
UNANSWERED = frozenset({Fate.LOST, Fate.LOST_BEFORE, Fate.NEVER_ASKED})
_UNDONE = {
    Fate.LOST_BEFORE: ("", False, True),
    Fate.FAILED_BEFORE: (TROUBLE, True, True),
    Fate.THROTTLED: (BUSY, True, False),
    Fate.CONFLICT: (CHANGED, True, False),
    Fate.FORBIDDEN: (FORBIDDEN, False, False),
}


def answer_of(command: Command, fate: Fate, carry_out: Callable[[Command], Answer]) -> Answer | None:
    """None if who asks hears nothing at all."""
    if fate in CARRIED_OUT:
        answer = carry_out(command)
        if fate is Fate.LOST:
            return Answer(command, lost=True)
        if fate is Fate.FAILED:
            return Answer(command, TROUBLE, passing=True, lost=True)
        return answer if fate is Fate.DONE else None
    if fate is Fate.NEVER_ASKED:
        return Answer(command, unasked=True)
    if fate not in _UNDONE:
        return None
    refused, passing, lost = _UNDONE[fate]
    return Answer(command, refused, passing, lost)
