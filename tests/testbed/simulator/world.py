# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the simulator has seen last of the cluster, and what has to be decided anew because of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

from testbed.api import Object
from testbed.simulator import machine, node_agent
from testbed.simulator.changes import Decision
from testbed.simulator.facts import COMPONENT, Node, Pod, Vmi, node_facts, pod_facts
from testbed.simulator.fault import CONFIG_MAP, Fault, Faults, from_json
from testbed.simulator.node_agent import Surroundings
from testbed.simulator.situation import Host, Situation

HANDLER = "virt-handler"
# A start seen later than this after its time stamp was not seen as it happened.
FRESH = 2.0


class Subject(NamedTuple):
    """Something to decide about: a VMI by its UID, or a node by its name."""

    kind: str
    id: str


class World:
    """Takes objects in as the watches deliver them; `mark` is called for every subject they concern."""

    def __init__(
        self,
        faults: Faults,
        mark: Callable[[Subject], None],
        clock: Callable[[], float],
        warn: Callable[[str], None],
    ) -> None:
        self.faults = faults
        self.noticed: dict[tuple[str, str], Fault | None] = {}  # by key and text in the ConfigMap
        self.mark = mark
        self.clock = clock
        self.warn = warn
        self.vmis: dict[str, Vmi] = {}
        self.pods: dict[str, dict[str, Pod]] = defaultdict(dict)  # of a VMI, by its UID, then by name
        self.handlers: dict[str, dict[str, Pod]] = defaultdict(dict)  # of a node, by its name, then by name
        self.nodes: dict[str, Node] = {}
        self.hosts: dict[str, Host] = {}
        self.began: dict[str, float] = {}  # by UID of the migration
        self.attempts: dict[str, dict[str, None]] = defaultdict(dict)  # UIDs of the migrations of a VMI, in order

    def put(self, obj: Object) -> None:
        """Take in an object unless a newer version of it is known."""
        take = {
            "VirtualMachineInstance": self._put_vmi,
            "Pod": self._put_pod,
            "Node": self._put_node,
            "ConfigMap": self._put_faults,
        }[obj["kind"]]
        take(obj)

    def _put_vmi(self, obj: Object) -> None:
        obj["metadata"].pop("managedFields", None)
        vmi = Vmi(obj)
        known = self.vmis.get(vmi.uid)
        if known and int(known.version) > int(vmi.version):
            return
        self.vmis[vmi.uid] = vmi
        migration = vmi.migration
        if migration and migration.uid:
            self.attempts[vmi.uid].setdefault(migration.uid)
            if migration.started and not migration.done:
                now = self.clock()
                self.began.setdefault(migration.uid, now if now - migration.started < FRESH else migration.started)
            else:
                self.began.pop(migration.uid, None)
        self.mark(Subject("vmi", vmi.uid))

    def _put_pod(self, obj: Object) -> None:
        pod = pod_facts(obj)
        pods = self._pods_beside(pod)
        known = pods.get(pod.name)
        if known and int(known.version) > int(pod.version):
            return
        pods[pod.name] = pod
        if pod.migration_uid:
            self.attempts[pod.vmi_uid].setdefault(pod.migration_uid)
        self._concern(pod)

    def _pods_beside(self, pod: Pod) -> dict[str, Pod]:
        return self.handlers[pod.node] if pod.labels[COMPONENT] == HANDLER else self.pods[pod.vmi_uid]

    def _concern(self, pod: Pod) -> None:
        if pod.labels[COMPONENT] == HANDLER:
            self.refresh_host(pod.node)
            self.mark(Subject("node", pod.node))
        else:
            self.mark(Subject("vmi", pod.vmi_uid))

    def _put_node(self, obj: Object) -> None:
        node = node_facts(obj)
        known = self.nodes.get(node.name)
        if known and int(known.version) > int(node.version):
            return
        self.nodes[node.name] = node
        self.refresh_host(node.name)
        self.mark(Subject("node", node.name))

    def _put_faults(self, obj: Object) -> None:
        """Replace all faults by those of the ConfigMap that can be read."""
        if obj["metadata"]["name"] != CONFIG_MAP:
            return
        entries = (obj.get("data") or {}).items()
        known, self.noticed = self.noticed, {}
        for name, text in entries:
            self.noticed[name, text] = known[name, text] if (name, text) in known else self._read_fault(name, text)
        found = tuple(fault for fault in self.noticed.values() if fault)
        self.faults = Faults(found, self.faults.seed, self.faults.scale)
        self.mark_all()

    def _read_fault(self, name: str, text: str) -> Fault | None:
        try:
            return from_json(name, text).noticed(self.clock())
        except ValueError as error:
            self.warn(str(error))
            return None

    def forget(self, obj: Object) -> None:
        """The object was deleted."""
        match obj["kind"]:
            case "VirtualMachineInstance":
                uid = obj["metadata"]["uid"]
                self.vmis.pop(uid, None)
                self.attempts.pop(uid, None)
                self.mark(Subject("vmi", uid))
            case "Pod":
                pod = pod_facts(obj)
                self._pods_beside(pod).pop(pod.name, None)
                self._concern(pod)
                if not self.pods.get(pod.vmi_uid):
                    self.pods.pop(pod.vmi_uid, None)
            case "Node":
                name = obj["metadata"]["name"]
                self.nodes.pop(name, None)
                self.refresh_host(name)
            case "ConfigMap":
                self._put_faults({**obj, "data": {}})

    def mark_all(self) -> None:
        for name in self.nodes:
            self.refresh_host(name)
            self.mark(Subject("node", name))
        for uid in {*self.vmis, *self.pods}:
            self.mark(Subject("vmi", uid))

    def refresh_host(self, name: str) -> None:
        """Note what became of a node; a change concerns every VM on it and every migration from or to it."""
        around = self.surroundings(name)
        host = around.host() if around else None
        if host == self.hosts.get(name):
            return
        if host:
            self.hosts[name] = host
        else:
            self.hosts.pop(name, None)
        for uid, vmi in self.vmis.items():
            migration = vmi.migration
            if name == vmi.node or (migration and name in {migration.source_node, migration.target_node}):
                self.mark(Subject("vmi", uid))

    def surroundings(self, name: str) -> Surroundings | None:
        node = self.nodes.get(name)
        if not node:
            return None
        handlers = tuple(self.handlers.get(name, {}).values())
        # Where virt-handler runs on other nodes, it comes to this one, too.
        awaited = not handlers and not node.guarded and any(self.handlers.values())
        return Surroundings(node, handlers, self.faults, self.clock(), awaited)

    def decide(self, subject: Subject) -> Decision:
        if subject.kind == "node":
            around = self.surroundings(subject.id)
            return node_agent.decide(around) if around else Decision()
        return machine.decide(self.situation(subject.id))

    def situation(self, uid: str) -> Situation:
        vmi = self.vmis.get(uid)
        migration = vmi.migration if vmi else None
        return Situation(
            vmi=vmi,
            pods=tuple(self.pods.get(uid, {}).values()),
            hosts=self.hosts,
            faults=self.faults,
            now=self.clock(),
            began=self.began.get(migration.uid, 0.0) if migration else 0.0,
            attempt=len(self.attempts.get(uid, ())),
        )

    def replace(self, kind: str, objects: list[Object]) -> None:
        """The whole of a collection: what is not in it is gone."""
        names = {(obj["metadata"].get("namespace", ""), obj["metadata"]["name"]) for obj in objects}
        for gone in self._known(kind):
            if (gone["metadata"].get("namespace", ""), gone["metadata"]["name"]) not in names:
                self.forget(gone)
        for obj in objects:
            # Lists, unlike watches, leave the kind of their items out.
            self.put({**obj, "kind": kind})

    def _known(self, kind: str) -> list[dict[str, Any]]:
        """Enough of each known object of a kind to forget it."""
        if kind == "VirtualMachineInstance":
            return [{"kind": kind, "metadata": vmi.metadata} for vmi in self.vmis.values()]
        if kind == "Node":
            return [{"kind": kind, "metadata": {"name": name}} for name in self.nodes]
        if kind == "ConfigMap":
            return [{"kind": kind, "metadata": {"name": CONFIG_MAP}}]
        pods = [pod for group in (*self.pods.values(), *self.handlers.values()) for pod in group.values()]
        return [
            {
                "kind": kind,
                "metadata": {
                    "name": p.name,
                    "namespace": p.namespace,
                    "labels": p.labels,
                    "resourceVersion": p.version,
                },
                "spec": {"nodeName": p.node},
            }
            for p in pods
        ]
