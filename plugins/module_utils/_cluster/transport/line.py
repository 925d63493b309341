# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection under all requests, and its credentials, which may be read anew.

Nothing repeats a request down here.
"""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.dialling import (
    LATE,
    Dialled,
    Dialler,
    without_user,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import (
    NAME_UNKNOWN,
    NAME_UNRESOLVED,
    Failure,
)


class Line:
    """The connection itself. Thread-safe.

    dialler: reads credentials anew. dialled: the connection by those that are in use. was_away: whether the server gave
    no answer since they were read for the last time. was_reached: whether it has ever answered. To connect may need no
    answer, as what a server offers is remembered.
    """

    def __init__(self, dialler: Dialler, dialled: Dialled) -> None:
        self.dialled = dialled
        self.was_away = self.was_reached = False
        self._dialler = dialler
        self._lock = threading.Lock()

    @property
    def configuration(self) -> Any:
        return self.dialled.configuration

    @property
    def server(self) -> str:
        return without_user(str(self.configuration.host))

    def hurry(self, seconds: float) -> None:
        """Let reading credentials take no longer from now on."""
        self._dialler.patience = seconds

    def ready(self, seconds: float) -> Dialled:
        """What is to be asked by, renewed if it has run out and can be.

        What takes longer than `seconds` is not waited for: a token is taken for one that has run out minutes before the
        server does.
        """
        dialled = ready = self.dialled
        with contextlib.suppress(Failure):
            ready = dialled.ready(seconds)
        if ready is not dialled:
            with self._lock:
                if self.dialled is dialled:
                    self.dialled = ready
        return self.dialled

    def renewed(self, refused: Dialled, refusal: Failure, seconds: float) -> Dialled:
        """By other credentials than those that were refused. Raises Failure: the refusal, if there are none.

        refused: by which the request went out; others may have renewed its credentials since.
        Where they can only not be read for now, nothing was carried out, and a little later they may be.
        """
        with self._lock:
            if self.dialled is not refused:
                return self.dialled
            if self.was_away:  # what hung on the same network may not do so now
                self.was_away = False
                self._dialler.begin_anew()
            renewed = self._dialled(refused, refusal, seconds)
            if not _has_credentials(renewed):
                raise _adding(refusal, "read anew, there are no credentials")
            if _credentials(renewed) == _credentials(refused):
                raise refusal
            self.dialled = renewed
        return renewed

    def met(self, failed: Failure) -> Failure:
        """What to tell of a request that has failed on this line."""
        self.was_away = self.was_away or failed.unanswered
        self.was_reached = self.was_reached or (failed.status is not None and not failed.unsent)
        return _by_known_name(failed) if self.was_reached else failed

    def _dialled(self, refused: Dialled, refusal: Failure, seconds: float) -> Dialled:
        """Raises Failure.

        What came late may be what a plugin had until its own time was over: none, or the former ones.
        """
        while True:
            try:
                renewed = self._dialler.dialled(seconds)
            except Failure as error:
                failed = _for_now(error) if error.reason == LATE else _by_known_name(error)
                if failed.passing or not self._dialler.gave_leftover:
                    raise _unread(refusal, failed) from error
            else:
                if not self._dialler.gave_leftover or _are_others(renewed, refused):
                    return renewed


def _for_now(error: Failure) -> Failure:
    """Credentials that have not come in time may come later: what they come from is away for a moment, as a server is.

    Not when a task connects, as then it may as well be somebody who is to type a password.
    """
    return Failure(
        error.attempted, error.where, error.message, error.remedy, reason=error.reason, unanswered=True, unsent=True
    )


def _by_known_name(failed: Failure) -> Failure:
    """The same; a name that led to the server may do so again: without a VPN other name servers know nothing of it."""
    if failed.reason == NAME_UNKNOWN:
        failed.reason = NAME_UNRESOLVED
    return failed


def _unread(refusal: Failure, error: Failure) -> Failure:
    """What to tell where credentials were refused, and then an error came in the way of reading them anew."""
    if not error.passing:
        return _adding(refusal, f"with credentials read anew, {error.message}")
    return Failure(
        refusal.attempted,
        refusal.where,
        f"the credentials have run out and cannot be used anew, {error.message}",
        error.remedy,
        reason=error.reason,
        unanswered=True,
        unsent=True,
        retry_after=error.retry_after,
    )


def _adding(refusal: Failure, more: str) -> Failure:
    return refusal.replaced(message=f"{refusal.message.rstrip('.')}; {more}")


def _has_credentials(dialled: Dialled) -> bool:
    """A token has its kind before it, also if it is empty."""
    used = dialled.configuration
    return bool(used.username or used.cert_file or any(key.partition(" ")[2].strip() for key in used.api_key.values()))


def _are_others(renewed: Dialled, refused: Dialled) -> bool:
    return _has_credentials(renewed) and _credentials(renewed) != _credentials(refused)


def _credentials(dialled: Dialled) -> tuple[object, ...]:
    used = dialled.configuration
    return (dict(used.api_key), used.username, used.password, _content(used.cert_file), _content(used.key_file))


def _content(path: str | None) -> bytes:
    """Empty if it cannot be read any more."""
    with contextlib.suppress(OSError):
        return Path(path).read_bytes() if path else b""
    return b""
