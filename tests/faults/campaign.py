# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run: begun, disturbed, begun again until it ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path

from faults import aftermath, messages
from faults.disturbances.registry import ALL
from faults.history import History
from faults.invocation import begin
from faults.outcome import Outcome
from faults.scene import NODES, Scene, scene
from testbed.api import Api, Object
from testbed.handle import RunningTestbed
from testbed.home import TestbedError
from testbed.waiting import wait_for

DEPLOYMENTS = "/apis/apps/v1/deployments"
VIRT_CONTROLLER = "/apis/coordination.k8s.io/v1/namespaces/kubevirt/leases/virt-controller"
ATTEMPTS, SECONDS = 10, 400.0
# When disturbances happen, in seconds after the run has begun.
_FIRST, _LAST = 2.0, 70.0
# What a run ends with that cannot be carried out as it is wanted.
_UNTOUCHED = "as things are now; nothing was touched"
Schedule = list[tuple[float, str]]


def disturbed(
    testbed: RunningTestbed,
    folder: Path,
    seed: int,
    nodes: int,
    vms: int,
    only: Sequence[str] = (),
    schedule: Schedule | None = None,
    prepare: Callable[[Scene], object] = lambda _scene: None,
    batch: int | None = None,
) -> Outcome:
    """only: names of disturbances to choose from. schedule: what happens when, in seconds; else it is chosen.

    prepare: called before the run begins. batch: how many nodes go together; None to leave it to the seed.
    """
    outcome, begun = Outcome(seed, nodes, vms), time.monotonic()
    with scene(testbed, folder, seed, nodes, vms) as made:
        chance, names = made.random, only or list(ALL)
        chosen = [(chance.uniform(_FIRST, _LAST), chance.choice(names)) for _number in range(chance.randint(1, 4))]
        made.batch = batch or made.batch
        prepare(made)
        with History(made) as history:
            started = time.monotonic()
            _drive(made, outcome, sorted(chosen if schedule is None else schedule))
            outcome.running = time.monotonic() - started
            outcome.requests, outcome.grief = made.proxy.requests, dict(made.proxy.done)
            testbed.inject("clear")
            if outcome.attempts[-1] == 0:
                _settle(made)
        looked = {look["node"]: look["at"] for look in made.looks()}
        vain = list(history.migrations.in_vain(made.nodes, looked, made.touched | made.given_back))
        outcome.migrations = {**history.migrations.ended(), "superfluous": len(vain)}
        wrong = [*outcome.wrong, *vain, *history.wrong, *aftermath.interrupted(made, history.lost)]
        if outcome.attempts[-1] != 0:
            wrong.append(f"the run did not end in {len(outcome.attempts)} attempts")
        else:
            wrong += [*aftermath.left_behind(made), *aftermath.off(made), *aftermath.maintained(made)]
        for log in [*folder.glob("second-*.log"), *folder.glob("other-*.log")]:
            said = log.read_text(errors="replace")
            outcome.messages += messages.failures(said)
            wrong += messages.useless(said, 0, excused="PLAY RECAP" not in said)
        outcome.wrong = sorted(set(wrong))
    outcome.seconds = time.monotonic() - begun
    return outcome


def _settle(made: Scene) -> None:
    """Wait a moment for what ends by itself; what stays is named afterwards."""
    try:
        wait_for("the end", lambda: not [*aftermath.left_behind(made), *aftermath.off(made)], 20)
    except Exception as error:  # noqa: BLE001  # the aftermath says what it is
        print(error, file=sys.stderr)


def _come_to_itself(made: Scene) -> None:
    """Wait, as whoever starts a run again does, until nodes that an outage has made unready can take VMs again.

    Where the server stood still for long, also until controllers are at work: a run that is given half a minute would
    be over before. After other disturbances it has to bear that they are not.
    """
    since = datetime.now(timezone.utc)
    try:
        if made.standstills:
            wait_for("virt-controller to be at work", lambda: _is_led(made.api, since), 120, 0.5)
        wait_for("the nodes to be well", lambda: all(map(_is_well, made.api.items(NODES))), 20, 0.5)
        if made.standstills:
            # Else a disruption budget holds a pod for one that is still to come, where it finds a node.
            wait_for("all replicas to be ready", lambda: all(map(_is_whole, made.api.items(DEPLOYMENTS))), 20, 0.5)
    except TestbedError as error:
        print(error, file=sys.stderr)


def _is_led(api: Api, since: datetime) -> bool:
    """One that has lost its Lease has ended, and the next one waits until that has run out."""
    renewed = api.get(VIRT_CONTROLLER)["spec"].get("renewTime") or "1970-01-01T00:00:00Z"
    return datetime.fromisoformat(renewed.replace("Z", "+00:00")) >= since


def _is_whole(deployment: Object) -> bool:
    return bool(deployment["status"].get("readyReplicas", 0) >= deployment["spec"]["replicas"])


def _is_well(node: Object) -> bool:
    conditions = {entry["type"]: entry["status"] for entry in node["status"].get("conditions", ())}
    # virt-handler's word, on nodes that have one.
    may_take_vms = node["metadata"].get("labels", {}).get("kubevirt.io/schedulable", "true")
    return (conditions.get("Ready"), may_take_vms) == ("True", "true")


def _drive(made: Scene, outcome: Outcome, schedule: Schedule) -> None:
    begun = time.monotonic()
    for number in range(ATTEMPTS):
        log = made.folder / f"attempt-{number}.log"
        going, excused = begin(made, made.run, log), False
        limit = time.monotonic() + SECONDS + made.standstills
        while going.poll() is None and time.monotonic() < limit:
            if schedule and time.monotonic() - begun >= schedule[0][0]:
                killed, made.killed = made.killed, False
                _at, name = schedule.pop(0)
                done = ALL[name](made, going)
                outcome.names.append(name)
                outcome.disturbances.append(f"{time.monotonic() - begun:.0f} s: {done}")
                excused, made.killed = excused or made.killed, killed or made.killed
            time.sleep(0.1)
        code = going.end()
        outcome.attempts.append(code)
        said = log.read_text(errors="replace")
        outcome.messages += messages.failures(said)
        outcome.wrong += messages.useless(said, code, excused=excused)
        if code == 0:
            return
        if _UNTOUCHED in said and made.batch > 1:
            # As it says: what each node allows may be too much for two at once.
            made.batch = 1
            outcome.disturbances.append(f"{time.monotonic() - begun:.0f} s: refused, and begun with one node at a time")
        if time.monotonic() >= limit:
            outcome.wrong.append(f"attempt {number + 1} did not end: {log}")
        _come_to_itself(made)
