# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What befalls a process in one of its steps: it sees little, stands still, dies, or gets no answers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure

from simulation.fates import BITS, BUSY, FATES, TROUBLE, Fate


class Died(BaseException):
    """The process is no more."""


@dataclass
class Chances:
    """lagging: bits of the watches that show nothing new. cut: of those that are told to list anew, as by a 410.

    fates: of the commands, some bits each. failing: which of its questions fails, from 0, in the two lowest bits, and
    how in the others. pausing: how many commands are carried out before it stands
    still right before the next one; 0 for right after its look. halt: stands still.
    """

    lagging: int = 0
    cut: int = 0
    fates: int = 0
    failing: int | None = None
    pausing: int | None = None
    halt: Callable[[], None] | None = None

    def take(self, other: Chances) -> None:
        """Those of the next step."""
        self.lagging, self.cut, self.fates = other.lagging, other.cut, other.fates
        self.failing, self.pausing = other.failing, other.pausing

    def fate(self) -> Fate:
        """Of the next command."""
        fate, self.fates = FATES[self.fates % len(FATES)], self.fates >> BITS
        return fate

    def asks(self) -> None:
        """Of a look, and of whose run and nodes are. Raises Failure."""
        if self.failing is None:
            return
        if self.failing & 3:
            self.failing -= 1
            return
        how, self.failing = self.failing >> 2, None
        raise _TROUBLES[how % len(_TROUBLES)]()

    def stands_still(self) -> bool:
        """Whether it did, and who knows what has happened."""
        if self.pausing is None or self.halt is None:
            return False
        self.pausing -= 1
        if self.pausing >= 0:
            return False
        self.pausing = None
        self.halt()
        return True


def unanswered() -> Failure:
    return Failure("ask", "the model", "no answer came", "Wait.", unanswered=True)


def denied() -> Failure:
    """What time does not mend."""
    words = 'vms is forbidden: User "us" cannot list resource "vms" at the cluster scope'
    return Failure("ask", "the model", words, "Get the right.", status=HTTPStatus.FORBIDDEN)


def _busy() -> Failure:
    return Failure("ask", "the model", BUSY, "Wait.", status=HTTPStatus.TOO_MANY_REQUESTS, retry_after=1.0)


def _failed() -> Failure:
    return Failure("ask", "the model", TROUBLE, "Wait.", status=HTTPStatus.INTERNAL_SERVER_ERROR)


_TROUBLES = (unanswered, _busy, _failed, denied)


class Halting:
    """A step in the middle of which a process may stand still: in a thread, but at any time only one goes on."""

    def __init__(self, step: Callable[[], None]) -> None:
        self.is_over = False
        self._step = step
        self._error: BaseException | None = None
        self._dies = False
        self._turn, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def go_on(self) -> None:
        """Until it stands still, or is over; what it raises is raised."""
        self._turn.release()
        self._back.acquire()
        if self._error is not None:
            raise self._error

    def end(self) -> None:
        """As the process dies."""
        self._dies = True
        self._turn.release()
        self._thread.join()

    def halt(self) -> None:
        """In the step: stand still. Raises Died."""
        self._back.release()
        self._turn.acquire()
        if self._dies:
            raise Died

    def _run(self) -> None:
        self._turn.acquire()
        try:
            self._step()
        except BaseException as error:  # noqa: BLE001 - it is raised where the step was begun
            self._error = error
        self.is_over = True
        self._back.release()
