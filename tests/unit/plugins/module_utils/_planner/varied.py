# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small clusters with what keeps VMs and pods from leaving beside rules; the same seed gives the same one.

CPUs and devices that run out, taints, disks of a zone, quotas, disruption budgets, pods with data of their own or
without an owner, and VMs of each eviction strategy and run strategy, of which some cannot be migrated.
"""

from __future__ import annotations

import copy
import random
from collections import Counter, defaultdict

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.quota import usage
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity

from unit.plugins.module_utils._planner.scene import FIXED, HOST, ZONE, Json, Lists, Scene, apart, apart_but_own, node

DEVICE, ROLE = "example.org/card", "example.org/role"
_TAINT = {"key": ROLE, "value": "batch", "effect": "NoSchedule"}
_TOLERATION = {"key": ROLE, "operator": "Equal", "value": "batch", "effect": "NoSchedule"}
# Of a launcher pod, beside the guest's memory and a tenth of its CPUs.
_OVERHEAD_MIB, _OVERHEAD_CPU = 330, 5
_SIZES_MIB, _CORES = (512, 1024, 2048), (1, 2, 4)
_STRATEGIES = ("Always", "RerunOnFailure", "Manual", "Once")
_EVICTIONS = ("LiveMigrate", "LiveMigrateIfPossible", "None", "External")
_BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def varied_cluster(seed: int, nodes: int = 4, machines: int = 7, pods: int = 3) -> Lists:
    return _Making(seed, nodes).made(machines, pods)


class _Making:
    """`room`: of each node what is left, in MiB, thousandths of CPUs, and devices."""

    def __init__(self, seed: int, nodes: int) -> None:
        self._dice = random.Random(seed)
        zones = self._dice.choice((2, 3))
        made = [self._node(f"n{number}", f"z{number % zones}") for number in range(nodes)]
        empty: Lists = {kind: [] for kind in ("pvcs", "pvs", "resourcequotas", "pdbs")}
        self._scene = Scene(*made, **empty)
        self._zone = {raw["metadata"]["name"]: raw["metadata"]["labels"][ZONE] for raw in made}
        self._tainted = {raw["metadata"]["name"] for raw in made if raw["spec"].get("taints")}
        self._room: dict[str, Counter[str]] = {
            raw["metadata"]["name"]: self._free(raw["status"]["allocatable"]) for raw in made
        }

    def made(self, machines: int, pods: int) -> Lists:
        for number in range(machines):
            self._vm(number)
        for number in range(pods):
            self._pod(number)
        if self._chance(0.6):
            self._budget()
        if self._chance(0.4):
            self._quota()
        return self._scene.lists

    def _chance(self, share: float) -> bool:
        return self._dice.random() < share

    def _node(self, name: str, zone: str) -> Json:
        found = node(name, zone)
        found["status"]["allocatable"]["cpu"] = self._dice.choice(("900m", "1200m", "2"))
        if self._chance(0.5):
            found["status"]["allocatable"][DEVICE] = str(self._dice.choice((1, 2)))
        if self._chance(0.25):
            found["spec"]["taints"] = [{**_TAINT, "effect": self._dice.choice(("NoSchedule", "PreferNoSchedule"))}]
        return found

    @staticmethod
    def _free(allocatable: Json) -> Counter[str]:
        memory = quantity.parse(allocatable["memory"]) // quantity.NANO // 2**20
        cpu = quantity.milli(quantity.parse(allocatable["cpu"]))
        return Counter({"memory": memory, "cpu": cpu, DEVICE: int(allocatable.get(DEVICE, 0))})

    def _place(self, wanted: Counter[str], *, tolerates: bool) -> str | None:
        """A node that has room for somebody, who takes it; None if none has."""
        fitting = [
            name
            for name, left in self._room.items()
            if all(left[kind] >= amount for kind, amount in wanted.items()) and (tolerates or name not in self._tainted)
        ]
        if not fitting:
            return None
        on = self._dice.choice(fitting)
        self._room[on].subtract(wanted)
        return on

    def _vm(self, number: int) -> None:
        app = f"g{self._dice.randrange(3)}"
        name = f"{app}-{number}"
        size, cores = self._dice.choice(_SIZES_MIB), self._dice.choice(_CORES)
        card, tolerates = self._chance(0.2), self._chance(0.4)
        wanted = Counter({"memory": size + _OVERHEAD_MIB, "cpu": 100 * cores + _OVERHEAD_CPU, DEVICE: int(card)})
        on = self._place(wanted, tolerates=tolerates)
        if on is None:
            return
        devices: Json = {"interfaces": [{"name": "default", "masquerade": {}}]}
        domain = {"cpu": {"cores": cores}, "memory": {"guest": f"{size}Mi"}, "machine": {"type": "q35"}}
        rules: Json = {"evictionStrategy": self._dice.choice(_EVICTIONS), "domain": {**domain, "devices": devices}}
        if card:
            rules["domain"]["resources"] = {"requests": {DEVICE: "1"}, "limits": {DEVICE: "1"}}
        if tolerates:
            rules["tolerations"] = [_TOLERATION]
        if self._chance(0.3):
            rules["affinity"] = self._dice.choice((apart, apart_but_own))(HOST, app)
        fixed = self._chance(0.15)
        if self._chance(0.3):
            rules["volumes"] = [self._disk(name, on, shared=not fixed)]
            devices["disks"] = [{"name": "disk", "disk": {"bus": "virtio"}}]
        self._scene.vm(name, on, rules=rules, status=FIXED if fixed else None)
        self._scene.lists["vms"][-1]["spec"]["runStrategy"] = self._dice.choice(_STRATEGIES)

    def _pod(self, number: int) -> None:
        tolerates, card = self._chance(0.3), self._chance(0.2)
        wanted = Counter({"memory": 100, "cpu": 100, DEVICE: int(card)})
        on = self._place(wanted, tolerates=tolerates)
        if on is None:
            return
        app = self._dice.choice(("web", "job"))
        name = f"{app}-{number}"
        volumes = [{"name": "scratch", "emptyDir": {}}] if self._chance(0.3) else []
        if self._chance(0.3):
            volumes.append(self._disk(name, on, shared=False))
        requests = {"memory": "100Mi", "cpu": "100m", **({DEVICE: "1"} if card else {})}
        resources = {"requests": requests, "limits": {DEVICE: "1"} if card else {}}
        self._scene.pod(
            name,
            on,
            owner="" if app == "job" and self._chance(0.3) else "ReplicaSet",
            containers=[{"name": "c", "resources": resources}],
            volumes=volumes,
            tolerations=[_TOLERATION] if tolerates else [],
            affinity=apart(HOST, app) if self._chance(0.3) else {},
        )

    def _disk(self, name: str, on: str, *, shared: bool) -> Json:
        """A volume with a claim of its own, which only nodes of one zone reach."""
        modes, size = ["ReadWriteMany" if shared else "ReadWriteOnce"], {"storage": "1Gi"}
        claim = {"kind": "PersistentVolumeClaim", "namespace": "shop", "name": name, "uid": f"claim-{name}"}
        match = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [self._zone[on]]}]}]
        self._scene.lists["pvs"].append(
            {
                "metadata": {"name": f"disk-{name}", "uid": f"pv-{name}"},
                "spec": {
                    "accessModes": modes,
                    "capacity": size,
                    "claimRef": claim,
                    "csi": {"driver": "csi.example.org", "volumeHandle": name},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": match}},
                },
                "status": {"phase": "Bound"},
            }
        )
        self._scene.lists["pvcs"].append(
            {
                "metadata": {"namespace": "shop", "name": name, "uid": f"claim-{name}", "annotations": {**_BOUND}},
                "spec": {"accessModes": modes, "resources": {"requests": size}, "volumeName": f"disk-{name}"},
                "status": {"phase": "Bound", "capacity": size, "accessModes": modes},
            }
        )
        return {"name": "disk", "persistentVolumeClaim": {"claimName": name}}

    def _budget(self) -> None:
        """Of the pods of one app; it lets none go, or one at a time."""
        labels = {"app": "web"}
        expected = sum(pod["metadata"]["labels"].get("app") == "web" for pod in self._scene.lists["pods"])
        allowed = min(expected, self._dice.choice((0, 1, 1)))
        healthy = {"expectedPods": expected, "currentHealthy": expected, "desiredHealthy": expected - allowed}
        self._scene.lists["pdbs"].append(
            {
                "metadata": {"namespace": "shop", "name": "web"},
                "spec": {"selector": {"matchLabels": labels}, "maxUnavailable": allowed},
                "status": {**healthy, "disruptionsAllowed": allowed},
            }
        )

    def _quota(self) -> None:
        """It leaves little room for the second pods of VMs that migrate, or just enough for one."""
        used: defaultdict[str, int] = defaultdict(int)
        for pod in self._scene.lists["pods"]:
            for name, amount in usage(pod).items():
                used[name] += amount
        name, beyond = self._dice.choice((("pods", 0), ("pods", 2), ("requests.memory", 1400 * 2**20)))
        amounts = (used[name] + beyond * quantity.NANO, used[name])
        hard, now = ({name: quantity.text(nanos, binary=name != "pods")} for nanos in amounts)
        metadata = {"namespace": "shop", "name": "quota"}
        self._scene.lists["resourcequotas"].append(
            {"metadata": metadata, "spec": {"hard": hard}, "status": {"hard": copy.copy(hard), "used": now}}
        )
