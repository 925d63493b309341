# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Send a request again: whether, when, and for how long. The one place that decides it.

What a server has never carried out, as it is busy, cannot ask a webhook that has a say, or cannot be reached, is sent
again; client-go does the same with what bears Retry-After, ten times (rest/with_retry.go). What it may have carried
out, as no answer came, or a page of a proxy in place of one, is never simply sent again: who asks says how one sees
that it was done, and only what was not is asked for once more, guarded by what makes a second time harmless. Everything
else is final.

How one sees that a request of client.py was done; verbs/__init__.py says it of each write:

create        an object of that name has all that was asked for; there is one of a name
replace       the object is just what was asked for; of a version it is replaced once
patch         the object has all that was asked for; with a resourceVersion nobody else's write is lost
delete_only   it is gone or going, or another one of its name is there, which its uid keeps; where it is there by its
              uid, nothing was done, as no deletion is taken back
post, act     as who asks says: by a look of his own, as `repeatable`, or only by the next look of the loop that asks
              (see verbs/carrying_out.py), where so is whatever has failed for a moment: it has more to see before it
              asks anew
dry runs      are never looked for, as nothing of them is to be seen; they may be done twice
"""

from __future__ import annotations

import contextlib
import copy
import random
import time
from collections.abc import Callable, Iterator
from threading import Lock, Timer
from typing import Any, TypeAlias, TypeVar

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import clock
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure

_Sent = TypeVar("_Sent")
# By a look: what the answer would have been, if it was done; None if it was not, as far as is to be seen; UNDONE if it
# certainly was not. Raises Failure.
Done: TypeAlias = Callable[[], Any]
Tell: TypeAlias = Callable[[str], None]
UNDONE = object()
# Raises Failure when nothing may be sent any more.
May: TypeAlias = Callable[[], None]

# Seconds for which a read is sent again, and for which everything is in a task that has no time of its own.
READING = 120.0
# The same where somebody asks anew after a look, and has other things to do meanwhile.
BRIEF = 5.0
# Between two tries where the server does not ask for more, and the most it may ask for, in seconds.
_FIRST, _LONGEST, _MOST_ASKED_FOR = 0.2, 5.0, 30.0
# So often a pause is doubled at most, whatever it begins with.
_DOUBLED = 10
# Trouble that lasts so many seconds is told, and so is that no answer has come for as long.
TOLD_AFTER = 10.0


def repeatable() -> None:
    """Whether something was done that may as well be done twice: it is simply sent again."""


def nobody(_line: str) -> None:
    """Hears of trouble."""


def always() -> None:
    """Nothing stands against it."""


class _Trouble:
    """Since when a server has answered none of a task's requests. Thread-safe.

    Many that fail side by side, or one after the other, share the time that is given, and one of them tells of it. That
    a try hangs is told from a thread beside them, which ends within ten seconds when nothing is under way any more: to
    begin and end one with each request takes longer than all else that is done here.
    """

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._lock = Lock()
        self._since, self._begun = float("inf"), ""
        self._not_before = 0.0
        self._error: Failure | None = None
        self.is_told = False
        self._teller: _Request | None = None
        self._under_way: dict[_Request, None] = {}
        self._timer: Timer | None = None

    @contextlib.contextmanager
    def watching(self, request: _Request) -> Iterator[None]:
        """While it is under way, trouble that lasts is told once, until the server answers and who told it is over."""
        with self._lock:
            self._under_way[request] = None
            if self._timer is None and self._tell is not nobody:
                self._watch()
        try:
            yield
        finally:
            with self._lock:
                del self._under_way[request]
                if self._teller is request:
                    self._teller = None

    def goes_on(self, request: _Request, error: Failure) -> float:
        """When it began."""
        now = clock.now()
        with self._lock:
            if now < self._since:
                self._since, self._begun = now, request.begun
            request.troubled = self._begun if self._since < request.since else ""
            self._error = error
            self._not_before = now + min(error.retry_after or 0.0, _MOST_ASKED_FOR)
            began = self._began(request)
            if now - began >= TOLD_AFTER:
                self._tell_of(request, error, request.troubled or request.begun)
        return began

    def rest(self) -> float:
        """Seconds for which the server has asked to be left alone, where that is not waited for in a request."""
        now = clock.now()
        return min(self._not_before - now, BRIEF) if now - self._since >= BRIEF else 0.0

    def is_over(self) -> None:
        """The server has answered."""
        with self._lock:
            self._since, self._error, self.is_told = float("inf"), None, False

    def _began(self, request: _Request) -> float:
        return min(self._since, request.since)

    def _late_at(self, request: _Request) -> float:
        """When its trouble has lasted; if it had before, when it has been under way for as long itself."""
        late_at = self._began(request) + TOLD_AFTER
        return late_at if late_at > request.since else request.since + TOLD_AFTER

    def _watch(self) -> None:
        """Until the next one is late. Those that are already are looked at again, when who tells of it may be over."""
        left = (self._late_at(request) - clock.now() for request in self._under_way)
        self._timer = Timer(min(seconds if seconds > 0.0 else TOLD_AFTER for seconds in left), self._look)
        self._timer.daemon = True
        try:
            self._timer.start()
        except RuntimeError:  # there is no thread for it now; the next request asks for one
            self._timer = None

    def _look(self) -> None:
        with self._lock:
            self._timer = None
            for request in self._under_way:
                if clock.now() < self._late_at(request):
                    continue
                # A look for it may be what is refused, before its first try or after one.
                begun = self._begun if self._since < request.since else request.begun
                self._tell_of(request, request.refusal or self._error, begun)
            if self._under_way:
                self._watch()

    def _tell_of(self, request: _Request, error: Failure | None, begun: str) -> None:
        """With the lock, so that no line comes after the request is over. error: None while its first try hangs."""
        if self.is_told or self._teller is not None:
            return
        self.is_told, self._teller = True, request
        if error is None:
            self._tell(f"no answer from the API server, or no credentials for it, waiting since {begun}")
        else:
            self._tell(f"API server {_words(error)}, trying again since {begun}")


class _Request:
    """tries: so often it was sent. pauses: that were made. maybe_done: one of the tries may have been carried out.

    troubled: since when the server had answered nothing before it was sent at all, empty if it was in no trouble.
    refusal: how it failed. unseen: whether nobody has looked yet if a try was carried out.
    """

    def __init__(self, reads: bool) -> None:
        self.reads = reads
        self.since, self.begun = clock.now(), time.strftime("%H:%M:%S")
        self.troubled = ""
        self.tries = self.pauses = 0
        self.maybe_done = self.unseen = False
        self.refusal: Failure | None = None

    def fails(self, error: Failure) -> None:
        """What is told is how the request itself has failed, and not the look after it."""
        self.refusal = self.refusal if self.unseen and self.refusal and error.passing else error
        self.unseen = self.unseen or error.ambiguous
        self.maybe_done = self.maybe_done or (self.unseen and not self.reads)


class Persistence:
    """How long the requests of a task are sent again. Thread-safe.

    seconds: the task's own time, from now on; None if it has none. tell: takes a line for people when trouble lasts.
    """

    def __init__(self, seconds: float | None, tell: Tell = nobody) -> None:
        self._end = None if seconds is None else clock.now() + seconds
        self._trouble = _Trouble(tell)
        self._brief = self._sets_aside = False
        # Asked before each try of what changes something.
        self._may: May = always

    def briefly(self, may: May) -> Persistence:
        """Of requests that somebody asks for anew, after a look, when they have failed for a moment; `may` as below."""
        other = self.guarded(may)
        other._brief = True
        return other

    def guarded(self, may: May) -> Persistence:
        """As long as this one. may: asked before each try of what changes something, after what was before."""
        other = copy.copy(self)  # it shares what is known of the server
        other._may = _both(self._may, may)
        return other

    def setting_aside(self) -> Persistence:
        """As long as this one, but for what no webhook can be asked about: who asks does the rest first."""
        other = copy.copy(self)
        other._sets_aside = True
        return other

    def carry(self, send: Callable[[], _Sent], done: Done | None, *, reads: bool) -> _Sent:
        """The answer. done: None if only somebody else can see whether it was done.

        Raises Failure, with `maybe_done` if what was to be changed has perhaps been changed.
        """
        request = _Request(reads)
        with self._trouble.watching(request):
            if self._brief and (rest := self._trouble.rest()) > 0.0:
                time.sleep(rest)
            while True:
                held = error = self._unasked(request)
                if error is None:
                    try:
                        return self._answered(request, self._sent(request, send, done))
                    except Failure as failed:
                        request.fails(failed)
                        error = failed
                again = held is not None or error.untouched or (error.ambiguous and done is not None)
                brief = self._brief or (self._sets_aside and held is None and error.unadmitted)
                left = self._left(self._trouble.goes_on(request, error), reads=reads, brief=brief) if again else 0.0
                if left <= 0.0:
                    raise self._given_up(request, error) from (None if request.refusal in (None, error) else error)
                request.pauses += 1
                time.sleep(min(left, _pause(error, request.pauses)))

    @staticmethod
    def _sent(request: _Request, send: Callable[[], _Sent], done: Done | None) -> _Sent:
        """The answer; before a further try it is looked whether the one before has done it. Raises Failure."""
        if request.unseen and done is not None:
            found: Any = done()
            if found is UNDONE:
                request.maybe_done = False
            elif found is not None:
                answer: _Sent = found
                return answer
            request.unseen = False
        request.tries += 1
        return send()

    def _unasked(self, request: _Request) -> Failure | None:
        """Why it cannot be asked for now whether a try may be sent. Raises Failure if it may not.

        Before the first one as well: what was read for it may have taken as long as anything that is sent again. Who is
        stopped has to know what an earlier try may have done as well.
        """
        if request.reads:
            return None
        try:
            self._may()
        except Failure as error:
            if error.passing:
                return error
            error.status, error.unasked, error.maybe_done = None, True, request.maybe_done
            raise
        return None

    def _given_up(self, request: _Request, error: Failure) -> Failure:
        if not error.passing:
            self._trouble.is_over()
        refusal = request.refusal or error
        # Who asks anew tells what is new, and how often that was is none. In the end he tells that, and since when.
        told = _dated(refusal, request) if self._brief else _tried(refusal, request)
        told.maybe_done, told.announced = request.maybe_done, self._trouble.is_told
        return told

    def _answered(self, request: _Request, answer: _Sent) -> _Sent:
        self._trouble.is_over()
        return answer

    def _left(self, since: float, *, reads: bool, brief: bool) -> float:
        """Seconds for which a request is sent again whose trouble began then."""
        if brief or self._end is None:
            end = since + (BRIEF if brief else READING)
        else:
            end = min(since + READING, self._end) if reads else self._end
        return end - clock.now()


def _both(first: May, then: May) -> May:
    def both() -> None:
        first()
        then()

    return both


def _pause(error: Failure, tries: int) -> float:
    """Seconds. Many that wait for one server do not come back at the same moment."""
    if error.retry_after is not None and error.retry_after > 0:
        return min(max(error.retry_after, _FIRST), _MOST_ASKED_FOR)
    # A number that doubles for hours is one too large for a float.
    growing = min(_FIRST * 2.0 ** min(tries - 1, _DOUBLED), _LONGEST)
    return growing * random.uniform(0.5, 1.0)  # noqa: S311  # guards nothing


def _words(error: Failure) -> str:
    if error.status is not None:
        is_busy = error.untouched and not error.unadmitted
        return f"{'busy' if is_busy else 'in trouble'} ({error.status})"
    return f"gives no answer ({error.message.partition(',')[0]})"


def _dated(refusal: Failure, request: _Request) -> Failure:
    refusal.since = (request.troubled or request.begun) if refusal.passing else ""
    refusal.tries = request.tries
    return refusal


def _tried(refusal: Failure, request: _Request) -> Failure:
    """The same, and it says so; who asks on all the same adds it up."""
    took_long = refusal.passing and clock.now() - request.since >= TOLD_AFTER
    if request.tries <= 1 and not request.troubled and not took_long:
        return refusal
    refusal.since = request.begun if request.tries > 1 else request.troubled or request.begun
    refusal.tries = request.tries
    told = refusal.replaced(message=f"{refusal.bare.rstrip('.')}; {refusal.in_vain}")
    told.bare = refusal.bare
    return told
