# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Send a request again: whether, when, and for how long. The one place that decides it.

What a server has never carried out, as it is busy or cannot be reached, is sent again; client-go does the same with
what bears Retry-After, ten times (rest/with_retry.go). What it may have carried out, as no answer came, is never simply
sent again: who asks says how one sees that it was done, and only what was not is asked for once more, guarded by what
makes a second time harmless. Everything else is final.

How one sees that a write was done:

create            an object of that name has all that was asked for; there is one of a name
replace, patch    the object has all that was asked for; with a resourceVersion nobody else's write is lost
delete_only       it is gone or going, or another one of its name is there, which its uid keeps
reviews, tokens   may be done twice, as a dry run may
evacuate/cancel   KubeVirt does not want the VMI to leave that node any more
start, stop, restart, evictions   by the next look of the loop that asks (see verbs/carrying_out.py), and so is whatever
                  has failed for a moment there: it has more to see before it asks anew
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import clock
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure

Answer = TypeVar("Answer")
# By a look: what the answer would have been, if it was done; None if it was not. Raises Failure.
Done: TypeAlias = Callable[[], Any]
Tell: TypeAlias = Callable[[str], None]

# Seconds for which a read is sent again, and for which everything is in a task that has no time of its own.
READING = 120.0
# The same where somebody asks anew after a look, and has other things to do meanwhile.
BRIEF = 5.0
# Between two tries where the server does not ask for more, and the most it may ask for, in seconds.
_FIRST, _LONGEST, _MOST_ASKED_FOR = 0.2, 5.0, 30.0
# Trouble that lasts so many seconds is told.
_TOLD_AFTER = 10.0


def repeatable() -> None:
    """Whether something was done that may as well be done twice: it is simply sent again."""


def nobody(_line: str) -> None:
    """Hears of trouble."""


class Persistence:
    """How long the requests of a task are sent again. Thread-safe.

    seconds: the task's own time, from now on; None if it has none. tell: takes a line for people when trouble lasts.
    brief: whether a request is given up after a moment, as somebody asks anew. may: raises Failure when nothing may be
    sent any more; asked before each further try of what changes something.
    """

    def __init__(
        self,
        seconds: float | None,
        tell: Tell = nobody,
        *,
        brief: bool = False,
        may: Callable[[], None] = lambda: None,
    ) -> None:
        self._end = None if seconds is None else clock.now() + seconds
        self._tell = tell
        self._brief = brief
        self._may = may
        self._lock = threading.Lock()
        self._told = False

    def briefly(self, may: Callable[[], None]) -> Persistence:
        """Of requests that somebody asks for anew, after a look, when they have failed for a moment."""
        return Persistence(None, self._tell, brief=True, may=may)

    def carry(self, send: Callable[[], Answer], done: Done | None, *, reads: bool) -> Answer:
        """The answer. done: None if only somebody else can see whether it was done. Raises Failure."""
        tries, since, end = 0, clock.now(), self._until(reads=reads)
        begun = time.strftime("%H:%M:%S")
        while True:
            tries += 1
            try:
                answer = send()
            except Failure as error:
                left = end - clock.now()
                if left <= 0 or not (error.untouched or (error.passing and done is not None)):
                    if tries == 1:
                        raise
                    raise _tried(error, tries, begun) from error
                self._hear(error, begun, clock.now() - since)
                time.sleep(min(left, _pause(error, tries)))
                if not reads:
                    self._may()
                found: Answer | None = None if error.untouched or done is None else done()
                if found is not None:
                    return found
            else:
                self._told = False
                return answer

    def _until(self, *, reads: bool) -> float:
        patient = clock.now() + READING
        if self._end is None:
            return patient
        return min(patient, self._end) if reads else self._end

    def _hear(self, error: Failure, begun: str, seconds: float) -> None:
        with self._lock:
            if seconds < _TOLD_AFTER or self._told:
                return
            self._told = True
        self._tell(f"API server {_trouble(error)}, trying again since {begun}")


def _pause(error: Failure, tries: int) -> float:
    """Seconds. Many that wait for one server do not come back at the same moment."""
    if error.retry_after is not None and error.retry_after > 0:
        return min(error.retry_after, _MOST_ASKED_FOR)
    return min(_FIRST * 2.0 ** (tries - 1), _LONGEST) * random.uniform(0.5, 1.0)  # noqa: S311  # guards nothing


def _trouble(error: Failure) -> str:
    if error.status is not None:
        return f"{'busy' if error.untouched else 'in trouble'} ({error.status})"
    return f"gives no answer ({error.message.partition(',')[0]})"


def _tried(error: Failure, tries: int, begun: str) -> Failure:
    return error.replaced(message=f"{error.message.rstrip('.')}; tried {tries} times since {begun}")
