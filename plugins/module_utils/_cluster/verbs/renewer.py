# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renew the Leases of a run for as long as its ansible-playbook lives, whatever task it is at.

A process of its own, as tasks of the user's may last an hour and know nothing of Leases. It is bound to that
ansible-playbook: when that ends, however it ends, it releases the run, so that the same command can go on at once, and
ends as well. Who releases the run dismisses it before. When the run is another's, or nobody's any more, or cannot be
held as another cluster answers, or the API server has refused to renew it for as long as the Lease lasts, it ends its
ansible-playbook: the collection's tasks see all that by themselves, but the user's may be about to restart a node that
is not their run's any more. So it is where a server answers, and credentials for it do not come. A server that is away
is asked on, as nobody can tell it from a network that is, and so is one whose name is not known here any more. It never
takes a Lease, so one that was lost while the machine slept stays lost. What it needs of the cluster's credentials comes
through a pipe and stays in its memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import clock, persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import (
    Client,
    connect_by,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.dialling import (
    LATE,
    UNREAD,
    without_user,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.identity import (
    OTHER_CLUSTER,
    require_cluster,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import Persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.processes import (
    Process,
    can_dismiss,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.leases import NodeLeases
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.nodes import FIELD_MANAGER
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_lease import (
    RUN_LOST,
    RunHold,
    renewal_of,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.leases import (
    DURATION,
    RENEWAL,
    Invocation,
    is_due,
    renewed_lease,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import RUN_LABEL
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import sentence

# In seconds: how often to see whether ansible-playbook lives; how long the last word to the API may take, so that
# nothing outlives a run by more than a moment; between two tries of an API server that is away; of one request; and to
# read credentials anew, so that what hangs leaves time for a second try.
_POLL, _LAST_WORD, _RETRY, _REQUEST, _CREDENTIALS = 0.5, 1.0, 2.0, 5.0, 15.0
# Refusals that lie so many seconds apart, as the server was away, have nothing to do with each other.
_APART = 2.0 * DURATION
_READY = "ready"
# Options and variables that name files.
_OPTIONS = {"kubeconfig", "ca_cert", "ssl_ca_cert", "client_cert", "cert_file", "client_key", "key_file"}
_FILES = {"KUBECONFIG"} | _OPTIONS | {f"K8S_AUTH_{name.upper()}" for name in _OPTIONS}
# What a new interpreter needs before it can find this file. Its grandchild works on, as nobody's child, so that nobody
# has to wait for it.
_BEGIN = """\
import json, os, sys
given = json.load(sys.stdin)
if os.fork():
    os._exit(0)
sys.path[:] = given["path"]
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.renewer import main
main(given)
"""


class Renewer:
    """What the process does. cluster: the run's, by its uid. client: as patient as it may be until it has begun."""

    def __init__(self, run: str, invocation: str, namespace: str, cluster: str, me: Process, client: Client) -> None:
        self._run, self._cluster = run, cluster
        self._me = json.dumps(asdict(me), sort_keys=True)
        self._woken, self._is_over = threading.Event(), False
        # Why the run is lost, if it is: a clause.
        self.lost = ""
        # When it was last renewed; and since when it cannot be, by an answer that time does not mend, the last of which
        # came then.
        self._renewed, self._refused, self._last_refused = clock.now(), float("inf"), float("-inf")
        self._client = client
        self._patient = RunHold(client, run, Invocation(invocation), namespace)
        # What fails for longer is asked again when the time to renew has come.
        self._brief = client.briefly()
        self._hold = RunHold(self._brief, run, Invocation(invocation), namespace)
        self._nodes = NodeLeases(self._brief, namespace, {"fieldManager": FIELD_MANAGER})

    def begin(self) -> bool:
        """Renew the run in this process's name; False if another process of the invocation does. Raises Failure."""
        holder = self._patient.look()
        if holder and self._patient.owns(holder) and _lives(holder.renewer):
            return False
        self._patient.renew(self._me)
        self._client.hurry_credentials(_CREDENTIALS)
        return True

    def work(self) -> None:
        """Until told to end, or there is nothing to renew any more. What nobody expects is raised, and a loss."""
        try:
            self._work()
        except Exception as error:
            self.lost = f"{_unheld()}; what renews it has failed: {error!r}"
            raise

    def _work(self) -> None:
        while (pause := self._renew()) is not None:
            self._woken.wait(pause)
            self._woken.clear()
            if self._is_over:
                with contextlib.suppress(Failure):  # by a time of its own, as that of `begin` is over
                    hold, client = self._patient, self._client.within(_LAST_WORD)
                    RunHold(client, hold.run, hold.invocation, hold.namespace).release()
                return

    def hurry(self) -> None:
        """Let `work` not wait any longer: more time has passed than it knows."""
        self._woken.set()

    def end(self) -> None:
        """Let `work` release the run and return."""
        self._is_over = True
        self._woken.set()

    def renew_nodes(self, now: datetime) -> bool:
        """Those of the run's nodes whose Lease has lost a third of its time; the run in between, as each may take long.

        False if the run is not this process's to renew any more. Raises Failure if it was to be renewed and was not.
        """
        for lease in self._due_nodes(now):
            if clock.now() - self._renewed >= RENEWAL and not self._renew_run():
                return False
            with contextlib.suppress(Failure):  # somebody else writes it, or the next time will do
                self._nodes.write(renewed_lease(lease, now), there=True)
        return True

    def _due_nodes(self, now: datetime) -> list[JsonObject]:
        """None of them if they cannot be listed: the next time will do."""
        with contextlib.suppress(Failure):
            found = self._nodes.labelled(RUN_LABEL, self._run)
            return [lease for lease in found if is_due(lease, self._run, now)]
        return []

    def _renew(self) -> float | None:
        """Seconds until the next time; None if the run is not this process's to renew any more."""
        try:
            goes_on = self._renew_run() and self.renew_nodes(datetime.now(timezone.utc))
        except Failure as error:
            return self._failed(error)
        return RENEWAL if goes_on else None

    def _renew_run(self) -> bool:
        """False if another process of the invocation does. Raises Failure."""
        begun = clock.now()
        if self._hold.renew().renewer != self._me:
            return False
        self._renewed, self._last_refused = begun, float("-inf")
        return True

    def _failed(self, error: Failure) -> float | None:
        """The same of a run that was not renewed."""
        if error.reason == RUN_LOST:
            self.lost = self._why(error)
            return None
        # Of a server that is away nobody takes the run; where credentials alone do not come, others may have theirs.
        if not error.passing or error.reason in (LATE, UNREAD):
            now = clock.now()
            if now - self._last_refused > _APART:
                self._refused = now
            self._last_refused = now
            if (seconds := now - self._refused) > DURATION:
                failed = f"for {seconds:.0f} s it has failed to {error.attempted}"
                self.lost = f"{_unheld(error.where)}; {failed}: {error.message.rstrip('.')}"
                return None
        return _RETRY

    def _why(self, lost: Failure) -> str:
        """Why the run is lost whose Lease is gone, or another's: a clause, empty if that may be no loss.

        Behind the same address may be another cluster. Where that cannot be seen nothing is waited for, as meanwhile
        the user's tasks go on.
        """
        try:
            require_cluster(self._brief, self._cluster)
        except Failure as error:
            if error.reason == OTHER_CLUSTER:
                return f"its run cannot be held at {error.where} any more; {error.message}"
        # Where it cannot be dismissed a Lease that is gone may have been released by its own playbook.
        return lost.message if "holder" in lost.details or can_dismiss() else ""


def start(connection: Mapping[str, Any], hold: RunHold, cluster: str, playbook: Process, seconds: float) -> None:
    """Have the run renewed from now on as long as `playbook` lives. Raises Failure if that did not come about in time.

    connection: options of kubernetes.core. The run has to be held. cluster: in which, by its uid. seconds: for all
    that is not waiting for a server that is away or busy, as reading credentials.
    """
    given = {
        "path": [entry for entry in sys.path if entry],
        "connection": _found_anywhere(connection),
        "playbook": asdict(playbook),
        "run": hold.run,
        "invocation": hold.invocation.id,
        "namespace": hold.namespace,
        "cluster": cluster,
        "patience": persistence.READING,
        "for_credentials": seconds,
    }
    command = [sys.executable, "-I", "-c", f"{renewal_of(hold.run)}{_BEGIN}"]
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    # A module's run_command waits for the end of what it starts, and this is to live on.
    with subprocess.Popen(  # pylint: disable=ansible-bad-function
        command, stdin=pipe, stdout=pipe, stderr=nowhere, start_new_session=True, env=_found_anywhere(os.environ)
    ) as child:
        try:
            # Its output ends with the answer, as the process that renews lets go of it then.
            said = child.communicate(json.dumps(given).encode(), timeout=seconds + persistence.READING)
            answer = said[0].decode().strip()
        except subprocess.TimeoutExpired:
            child.kill()
            answer = "it did not answer in time"
    if answer != _READY:
        raise Failure(
            f"keep run {hold.run} held",
            without_user(str(connection.get("host") or "the server of the kubeconfig")),
            f"the process that is to renew its Lease did not begin: {answer or 'it ended at once'}",
            "Remove the cause and start the same command again.",
            reason="NotRenewed",
        )


def main(given: Mapping[str, Any]) -> None:
    """The process's life, in the grandchild of `start`."""
    signal.signal(signal.SIGTERM, _end)
    playbook = Process(**given["playbook"])
    try:
        renewer = Renewer(
            given["run"],
            given["invocation"],
            given["namespace"],
            given["cluster"],
            Process.of(os.getpid()),
            connect_by(
                given["connection"],
                _REQUEST,
                Persistence(given["patience"]),
                for_credentials=given["for_credentials"],
            ),
        )
        begun = renewer.begin()
    except Failure as error:
        _say(" ".join(str(error).split()))
        return
    _say(_READY)
    _leave()
    if begun:
        _accompany(renewer, playbook)


def _accompany(renewer: Renewer, playbook: Process) -> None:
    work = threading.Thread(target=renewer.work, daemon=True)
    work.start()
    seen = clock.now()
    while work.is_alive() and playbook.alive:
        work.join(_POLL)
        if clock.now() - seen > RENEWAL:  # the machine slept, or this process stood still
            renewer.hurry()
        seen = clock.now()
    if renewer.lost:
        playbook.end(sentence(f"ansible-playbook is ended, as {renewer.lost}."))
    renewer.end()
    work.join(_LAST_WORD)


def _unheld(where: str = "") -> str:
    at = f" at {where}" if where else ""
    return f"its run cannot be held{at} any more, so that somebody else may take it"


def _end(_signal: int, _frame: object) -> None:
    """In a way that removes the files of the client library."""
    raise SystemExit


def _say(answer: str) -> None:
    """To who started this, which is no module whose output is read."""
    sys.stdout.write(f"{answer}\n")
    sys.stdout.flush()


def _leave() -> None:
    """Hold on to nothing of who started this: whoever reads its output must not wait for this process."""
    os.chdir("/")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _found_anywhere(settings: Mapping[str, Any]) -> JsonObject:
    """Options or variables, with files that are found from every folder: they are read anew in another one."""
    named = {name: value for name, value in settings.items() if name in _FILES and isinstance(value, str)}
    return {**settings, **{name: _absolute(name, value) for name, value in named.items()}}


def _absolute(name: str, value: str) -> str:
    """A kubeconfig may be several files, and in the user's home."""
    paths = value.split(os.pathsep) if name.lower().endswith("kubeconfig") else [value]
    return os.pathsep.join(str(Path(path).absolute()) if path and path[0] != "~" else path for path in paths)


def _lives(renewer: str) -> bool:
    """Whether the process that the Lease names lives; one on another machine does as far as can be told."""
    process = Process.told(renewer)
    return process is not None and process.alive
