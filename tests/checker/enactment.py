# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an action does to the cluster at its beginning and at its end, and whether it is legal at that moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import blockers
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import MIGRATION_JOB
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.vmi import (
    NOT_CREATED,
    uid_of_successor,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.successors import (
    is_leaving,
    next_launcher,
    replacement,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import (
    title,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.drained_pod import of_a_machine, stays
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VM,
    VMI,
    VMI_REPLICA_SET,
    Object,
    controller,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import pod as parsed
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import FORETOLD, Action, ActionKind, Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import LEAVING

from checker.cluster import LEAVING_SINCE, CarriedCluster
from checker.landing import Landing, Newcomer, owned_by
from checker.order import Choice
from checker.violation import Fault, TellFlaw


@dataclass(slots=True)
class _Flight:
    """An action that has begun. old: pods that go, by their names. vmi: which leaves, or starts.

    arriving: the pod of a migration on the target, with what is needed to make it if it is not there yet. newcomer:
    the pod that the scheduler places. held: a pod whose eviction is refused for now. waits: since this version of the
    cluster it cannot go on.
    """

    action: Action
    old: tuple[str, ...] = ()
    vmi: Object | None = None
    arriving: tuple[Object, Pod] | None = None
    newcomer: Newcomer | None = None
    held: Object | None = None
    waits: int | None = None


class Enactment:
    """`hurries`: whether the scheduler places a pod while the one that it replaces is still going."""

    def __init__(
        self,
        cluster: CarriedCluster,
        plan: Plan,
        tell: TellFlaw,
        choice: Choice | None = None,
        foreseen: Mapping[str, str] | None = None,
    ) -> None:
        self.hurries = True
        self._cluster, self._plan, self._tell = cluster, plan, tell
        self._landing = Landing(cluster, plan, tell, choice, foreseen)
        self._flights: dict[str, _Flight] = {}
        self._busy: dict[tuple[str, str], str] = {}
        self._off: dict[str, tuple[Object, Object | None, tuple[str, ...]]] = {}
        self._out: dict[str, int] = {}
        self._batch = 0

    @property
    def came(self) -> Mapping[str, str]:
        """Where those came that the scheduler has placed, by ids of actions."""
        return self._landing.came

    def follow(self, plan: Plan, choice: Choice | None = None) -> None:
        """Go on by another plan; what has begun goes on as it has."""
        self._plan = plan
        self._landing.follow(plan, choice)

    def serve(self) -> None:
        """Let whoever waits for a node have one that fits."""
        for flight in self._flights.values():
            if flight.action.kind is ActionKind.EVICT and flight.newcomer is not None and flight.newcomer.node is None:
                self._landing.place(flight.newcomer, parting=True)
        self._landing.serve()

    def ending(self) -> Iterator[Object]:
        """VMIs that are being shut down: they are there until their pods have gone."""
        for flight in self._flights.values():
            if flight.vmi is not None and flight.old and flight.action.kind in (ActionKind.STOP, ActionKind.RESTART):
                yield {**flight.vmi, "metadata": {**flight.vmi["metadata"], "deletionTimestamp": LEAVING_SINCE}}

    def fail(self, action: Action) -> None:
        """A migration that is in flight comes to nothing."""
        flight = self._flights.pop(action.id)
        del self._busy[action.object.kind, action.object.title]
        if flight.vmi is not None and flight.arriving is not None:
            self._cluster.take(title(flight.arriving[0]))
            self._cluster.end_migrations(flight.vmi)

    def begin(self, action: Action) -> None:
        flight = self._flights[action.id] = _Flight(action)
        subject = action.object.kind, action.object.title
        if subject in self._busy:
            self._tell(Fault.BUSY, action.id, f"{self._busy[subject]} has not ended")
            return
        self._busy[subject] = action.id
        if action.kind in LEAVING or action.kind is ActionKind.START:
            self._begin_to_leave(flight)
        elif action.object.name not in self._cluster:
            self._tell(Fault.UNKNOWN, action.id, f"there is no node {action.object.name}")
        elif action.kind is ActionKind.CORDON:
            self._cordon(action)
        elif action.kind is ActionKind.UNCORDON:
            self._cluster.uncordon(action.node)
            self._out.pop(action.node, None)
            self._landing.try_again()
        else:
            self._maintain(action)

    def may_end(self, action: Action) -> bool:
        """Whether something has changed since it could not go on."""
        return self._flights[action.id].waits != self._cluster.version

    def end(self, action: Action) -> bool:
        """Go on with an action; whether it is over."""
        flight = self._flights[action.id]
        over = self._end(flight)
        if over:
            del self._flights[action.id]
            subject = action.object.kind, action.object.title
            if self._busy.get(subject) == action.id:
                del self._busy[subject]
            self._landing.try_again()
        return over

    def give_up(self, action: Action) -> None:
        """Say why an action never ends, unless the plan does not say that it does."""
        flight = self._flights[action.id]
        if flight.held is not None:
            refusal = self._cluster.disruptions.refusal(flight.held)
            self._tell(Fault.BUDGET, action.id, refusal.reason if refusal else "its eviction is refused")
        elif flight.newcomer is not None and action.target is not None:
            words = self._cluster.refusal(flight.newcomer.pod)
            self._tell(Fault.NO_PLACE, action.id, f"it never finds a node, {action.target} neither: {words}")

    def finish(self) -> Mapping[str, str]:
        """When all is over. Returns where those have come, by ids of actions, whose node the plan does not tell."""
        self._landing.settle()
        return self._landing.landed

    # Nodes.

    def _cordon(self, action: Action) -> None:
        if action.batch > self._batch:
            if self._batch:
                self._landing.settle()
            self._batch = action.batch
        others = sorted(name for name, batch in self._out.items() if batch != action.batch)
        if others:
            self._tell(Fault.OUT_OF_TURN, action.id, f"{', '.join(others)} of another batch is still out of service")
        self._out[action.node] = action.batch
        self._cluster.cordon(action.node)

    def _maintain(self, action: Action) -> None:
        if not self._cluster.is_cordoned(action.node):
            self._tell(Fault.IN_SERVICE, action.id, f"{action.node} is not cordoned")
        there = [pod for pod in self._cluster.pods_on(action.node) if not (stays(pod) or self._may_stay(pod))]
        if there:
            names = ", ".join(sorted(map(title, there)))
            self._tell(Fault.OCCUPIED, action.id, f"{action.node} still has {names}")

    def _may_stay(self, pod: Object) -> bool:
        """Whether the plan says that it cannot leave."""
        owner, namespace = controller(pod) or {}, pod["metadata"].get("namespace") or "default"
        blocked = {(entry.object.kind, entry.object.title) for entry in self._plan.blocked}
        if owner.get("kind") == VMI:
            return (VMI, f"{namespace}/{owner['name']}") in blocked
        return of_a_machine(pod) or ("Pod", title(pod)) in blocked

    # Who leaves, and comes.

    def _begin_to_leave(self, flight: _Flight) -> None:
        action = flight.action
        if action.kind is ActionKind.START:
            self._start(flight)
        elif action.kind is ActionKind.EVICT:
            pod = self._cluster.pod(action.object.title)
            if pod is not None and self._is_there(action, pod, pod["spec"].get("nodeName")):
                self._evict(flight, pod)
            elif pod is None:
                self._tell(Fault.ABSENT, action.id, "there is no such pod")
        else:
            vmi = self._cluster.vmi(action.object.title)
            if vmi is None:
                self._tell(Fault.ABSENT, action.id, "there is no such VMI, or it is off")
            elif self._is_there(action, vmi, (vmi.get("status") or {}).get("nodeName")):
                (self._migrate if action.kind is ActionKind.MIGRATE else self._interrupt)(flight, vmi)

    def _is_there(self, action: Action, item: Object, node: str | None) -> bool:
        uid = str(item["metadata"].get("uid") or "")
        own = "" if FORETOLD in uid or uid.startswith(NOT_CREATED) else uid
        if node != action.source:
            self._tell(Fault.ABSENT, action.id, f"it is on {node or 'no node'}, not on {action.source}")
        elif own != action.object.uid:
            self._tell(Fault.ABSENT, action.id, "it is another one of that name")
        else:
            return True
        return False

    def _migrate(self, flight: _Flight, vmi: Object) -> None:
        action, cluster = flight.action, self._cluster
        pods, under_way = cluster.pods_of(vmi), cluster.migration_of(vmi)
        flight.vmi, flight.old = vmi, tuple(map(title, pods))
        if under_way is not None and under_way.node_selector == dict(action.selector):
            there = cluster.target_pod_of(vmi, under_way)
            if there is not None:
                flight.arriving = there, parsed(there)
                return
        asked = cluster.around.candidate(vmi, dict(action.selector))
        against = [
            entry.problem
            for entry in blockers(asked)
            if entry.forbids and not (under_way is not None and entry.id == "migration-in-flight")
        ]
        if not isinstance(asked.target_pod, Mapping) or not pods or against:
            self._tell(Fault.REFUSED, action.id, "; ".join(against) or "it has no pod to migrate from")
            return
        uid = under_way.uid if under_way else cluster.begin_migration(vmi, action.selector, self._plan.run)
        flight.arriving = self._arrive(action, _target(pods[0], asked.target_pod, uid))

    def _arrive(self, action: Action, raw: Object) -> tuple[Object, Pod]:
        pod, target = parsed(raw), action.target or ""
        fits = self._cluster.fits(pod)
        if fits != (target,):
            words = f"it goes to {', '.join(fits)}" if fits else self._cluster.refusal(pod)
            self._tell(Fault.NO_PLACE, action.id, f"{target or 'no node'} cannot take it at its moment: {words}")
        if target in self._cluster:
            self._cluster.put(raw, pod, target)
        return raw, pod

    def _evict(self, flight: _Flight, pod: Object) -> None:
        """Of a pod that is being deleted already, nobody asks for more."""
        flight.old = (title(pod),)
        if is_leaving(pod):
            return
        refusal = self._cluster.disruptions.refusal(pod)
        if refusal is not None:
            flight.held, flight.waits = pod, self._cluster.version
            return
        flight.held = flight.waits = None
        self._cluster.disruptions.leave(pod)
        new = replacement(pod)
        self._cluster.end(title(pod))
        if new is not None:
            flight.newcomer = self._landing.newcomer(flight.action, new, parsed(new), None)
            if title(new) != title(pod):
                self._hurry(flight.newcomer)

    def _interrupt(self, flight: _Flight, vmi: Object) -> None:
        """A replica set makes another VMI at once, a VM when the former one is gone."""
        action, pods = flight.action, self._cluster.pods_of(vmi)
        flight.vmi, flight.old = vmi, tuple(map(title, pods))
        if not pods:
            self._tell(Fault.ABSENT, action.id, "it has no pod")
            return
        self._off[title(vmi)] = vmi, *self._next_pod(vmi, pods[0])
        self._cluster.shut_down(vmi)
        for name in flight.old:
            self._cluster.end(name)
        if action.kind is ActionKind.RESTART:
            flight.newcomer = self._successor(action)
            if flight.newcomer is not None and (controller(vmi) or {}).get("kind") == VMI_REPLICA_SET:
                self._hurry(flight.newcomer)

    def _start(self, flight: _Flight) -> None:
        action = flight.action
        if action.object.title not in self._off:
            self._tell(Fault.ABSENT, action.id, "nothing has stopped it")
            return
        flight.newcomer = self._successor(action)
        if flight.newcomer is not None:
            self._hurry(flight.newcomer)

    def _successor(self, action: Action) -> Newcomer | None:
        vmi, raw, refusals = self._off[action.object.title]
        if raw is None:
            self._tell(Fault.REFUSED, action.id, "nothing starts it again")
            return None
        if refusals:
            self._tell(Fault.REFUSED, action.id, refusals[0])
        uid = uid_of_successor(vmi)
        new = {**vmi, "metadata": {**vmi["metadata"], "uid": uid}} if uid else vmi
        whole = owned_by(new, raw)
        return self._landing.newcomer(action, whole, parsed(whole), new)

    def _next_pod(self, vmi: Object, source: Object) -> tuple[Object | None, tuple[str, ...]]:
        """That of its next start, None if nothing starts it, and why the API server refuses it.

        Asked while it still runs: what quotas tell of as used is as before the plan, with the pod that goes.
        """
        if (controller(vmi) or {}).get("kind") not in (VM, VMI_REPLICA_SET):
            return None, ()
        _pod, raw, refusals = next_launcher(vmi, source, self._cluster.around)
        return raw, refusals

    def _hurry(self, newcomer: Newcomer) -> None:
        if self.hurries:
            self._landing.place(newcomer, parting=True)

    def _end(self, flight: _Flight) -> bool:
        action = flight.action
        if flight.held is not None:
            self._evict(flight, flight.held)
            return False
        if action.kind is ActionKind.MIGRATE:
            return self._end_migration(flight)
        for name in flight.old:
            self._cluster.take(name)
        flight.old = ()
        newcomer = flight.newcomer
        if newcomer is None or newcomer.node is not None or self._landing.place(newcomer, parting=False):
            return True
        if action.kind is ActionKind.EVICT or (action.kind is ActionKind.START and action.target is None):
            self._landing.wait(newcomer)
            return True
        flight.waits = self._cluster.version
        return False

    def _end_migration(self, flight: _Flight) -> bool:
        """Also one that was refused is over, without any effect."""
        action, cluster, vmi = flight.action, self._cluster, flight.vmi
        if vmi is None or flight.arriving is None or action.target not in cluster:
            return True
        for name in flight.old:
            cluster.take(name)
        cluster.run(vmi, action.target or "")
        cluster.end_migrations(vmi)
        return True


def _target(source: Object, raw: Object, migration: str) -> Object:
    """The pod of a migration, with a name that no pod can have, so that it is not another's by accident."""
    metadata = raw["metadata"]
    labels = {**metadata["labels"], MIGRATION_JOB: migration}
    return {**raw, "metadata": {**metadata, "name": f"{source['metadata']['name']}/target", "labels": labels}}
