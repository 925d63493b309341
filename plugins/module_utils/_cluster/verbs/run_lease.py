# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hold a run: take its Lease for one invocation, renew it, see that it is still ours, and release it.

As leader election does, nobody's clock but our own is trusted: a Lease of another invocation is taken only after it was
watched, unchanged, for as long as it lasts. A holder that lives renews it three times in that time. So a run whose
controller has died is free about half a minute after somebody asks for it, and however far two clocks are apart, two
invocations never hold it together. Each write is made on the version that was looked at.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import clock
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.conflicts import (
    retry_on_conflict,
    retry_on_newest,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.processes import Process
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.leases import Leases
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.nodes import FIELD_MANAGER
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.leases import (
    RENEWAL,
    RENEWER,
    Invocation,
    RunLease,
    held_run_lease,
    parse_run_lease,
    run_lease_name,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject

RUN_HELD, RUN_LOST = "RunHeld", "RunLost"
# Seconds for which a look at the Lease may stand for another one.
FRESH = 5.0
_PAUSE = 1.0


@dataclass(frozen=True, slots=True)
class Taken:
    """`before`: what was held when it was first looked at, None if it was free. `taken_over`: from a dead one."""

    before: RunLease | None
    lease: RunLease
    taken_over: bool = False


class RunHold:
    """One run and the invocation that holds it or wants to. Methods raise Failure."""

    def __init__(
        self, client: Client, run: str, invocation: Invocation, namespace: str, *, dry_run: bool = False
    ) -> None:
        self.run = run
        self.invocation = invocation
        self.namespace = namespace
        self._client = client
        query = {"fieldManager": FIELD_MANAGER, **({"dryRun": "All"} if dry_run else {})}
        self._leases = Leases(client, namespace, query)
        self._seen = float("-inf")

    def briefly(self) -> RunHold:
        """The same, for who asks anew later when a look has failed for a moment."""
        return RunHold(self._client.briefly(), self.run, self.invocation, self.namespace)

    def look(self) -> RunLease | None:
        """Who holds it now, whether alive or dead; None if nobody does."""
        return self._look()[1]

    def take(self, wait_seconds: float, *, force: bool = False) -> Taken:
        """Hold it from now on. Waits so long for a holder that looks dead to prove it.

        force: take it from whoever holds it.
        """
        turns = self._turns(wait_seconds, force=force)

        def write(turn: tuple[JsonObject | None, RunLease | None, bool]) -> Taken:
            lease, before, taken_over = turn
            return Taken(before, self._put(lease), taken_over)

        # Who was quicker is a holder like any other, to be watched before the next attempt.
        return retry_on_newest(next(turns), write, lambda _conflict: next(turns))

    def _turns(self, wait_seconds: float, *, force: bool) -> Iterator[tuple[JsonObject | None, RunLease | None, bool]]:
        """Each time that it may be taken, as it was not written the last time: the Lease as it is, and as of Taken.

        Raises Failure where it may not.
        """
        lease, holder = self._look()
        before, watched = holder, holder
        began = since = time.monotonic()
        taken_over = False
        while True:
            now = time.monotonic()
            unchanged = holder is not None and watched is not None and holder.version == watched.version
            dead = holder is not None and unchanged and now - since >= holder.seconds
            if holder is None or self.owns(holder) or force or dead:
                # It may be ours by now, though what we heard is that somebody was quicker.
                taken_over = taken_over or (dead and not force and not self.owns(holder))
                yield lease, before, taken_over
            elif not unchanged:
                raise self._held(holder, "it is renewed, so that invocation is alive")
            elif now - began >= wait_seconds:
                raise self._held(holder, f"it was not renewed for {round(now - since)} s, which proves nothing yet")
            else:
                time.sleep(max(0.0, min(_PAUSE, since + holder.seconds - now, began + wait_seconds - now)))
            asked = time.monotonic()
            lease, holder = self._look()
            if (away := time.monotonic() - asked) > RENEWAL:
                # While a server is away its holder cannot renew, and nobody watches it: it has all its time again.
                began, since = began + away, asked + away

    def renew(self, renewer: str | None = None) -> RunLease:
        """`renewer`: who does so from now on. Fails with reason RunLost if another invocation, or nobody, holds it."""
        return retry_on_conflict(lambda: self._renew(renewer))

    def require(self, *, anew: bool = False) -> None:
        """See that this invocation holds the run, before something that cannot be taken back. Reason RunLost if not.

        A look of a moment ago is good enough, unless it is to be seen `anew`. Where nobody renews the Lease any more,
        this does: nobody else has taken it, or the write fails.
        """
        begun = clock.now()
        if begun - self._seen < FRESH and not anew:
            return
        _lease, holder = self._look()
        if holder is None or not self.owns(holder):
            raise self._lost(holder)
        if _age(holder) > 2 * RENEWAL:
            self.renew()
        self._seen = begun

    def release(self) -> RunLease | None:
        """Let go of it, and say what was held; a Lease of another invocation stays.

        Who renews it for this invocation is dismissed before, as a Lease that is gone is a run that is lost to him.
        """
        lease, holder = self._look()
        if lease is None or holder is None or not self.owns(holder):
            return None
        renewer = Process.told(holder.renewer)
        if renewer and renewer.pid != os.getpid():
            renewer.dismiss(renewal_of(self.run))
        self._leases.release(lease)
        return holder

    def owns(self, holder: RunLease | None) -> bool:
        return holder is not None and (holder.run, holder.invocation) == (self.run, self.invocation.id)

    def _look(self) -> tuple[JsonObject | None, RunLease | None]:
        lease = self._leases.find(run_lease_name(self.run))
        return lease, parse_run_lease(lease) if lease else None

    def _renew(self, renewer: str | None) -> RunLease:
        lease, holder = self._look()
        if lease is None or holder is None or not self.owns(holder):
            raise self._lost(holder)
        if renewer:
            lease["metadata"]["annotations"][RENEWER] = renewer
        return self._put(lease)

    def _put(self, lease: JsonObject | None) -> RunLease:
        now = datetime.now(timezone.utc)
        body = held_run_lease(lease, self.namespace, self.run, self.invocation, now)
        held = parse_run_lease(self._leases.write(body, there=lease is not None))
        if held is None:  # an admission webhook's doing
            raise self._lost(None)
        return held

    def _held(self, holder: RunLease, why: str) -> Failure:
        return Failure(
            f"hold run {self.run}",
            self._client.server,
            f"it is held by {holder.who}, last renewed {holder.renewed or 'never'}; {why}",
            "Let that invocation end, or end it and start this one again.",
            reason=RUN_HELD,
            details={"holder": holder.facts()},
        )

    def _lost(self, holder: RunLease | None) -> Failure:
        now = f"it is held by {holder.who}" if holder else "nobody holds it, as it was released or aborted"
        return Failure(
            f"go on with run {self.run}",
            self._client.server,
            f"this invocation does not hold the run any more, {now}",
            "Nothing more is done here. Look at what the other invocation does, or start the same command again.",
            reason=RUN_LOST,
            details={"holder": holder.facts()} if holder else {},
        )


def require_run(client: Client, run: str, invocation: str, namespace: str) -> RunHold:
    """See that the invocation holds the run, and return what sees it again. Raises Failure with reason RunLost."""
    hold = RunHold(client, run, Invocation(invocation), namespace)
    hold.require()
    return hold


def renewal_of(run: str) -> str:
    """The first line of the program that renews a run, by which it is told from any other process."""
    return f"# virtops.kubevirt holds run {run}\n"


def _age(holder: RunLease) -> float:
    """Seconds since it was renewed, by this machine's clock, which is the one that wrote the time."""
    return holder.age(datetime.now(timezone.utc))
