# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An API server that also plays virt-controller: a migration takes its next step whenever somebody watches.

What KubeVirt really does is proved on the testbed; here its answers come in any order and with any trouble that a test
asks for, at once.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from unit.plugins.support.fake_api import Answer, Object, Request, refusal
from unit.plugins.support.object_api import NODES, ObjectApi

# Seconds for which a watch goes on without a step, and between two looks for one.
_STREAM, _PAUSE = 0.2, 0.005

KUBEVIRT = "/apis/kubevirt.io/v1"
MIGRATIONS = "virtualmachineinstancemigrations"
WEBHOOK = "migration-create-validator.kubevirt.io"
NOT_DECODED = (
    'VirtualMachineInstanceMigration in version "v1" cannot be handled as a VirtualMachineInstanceMigration: '
    "strict decoding error: "
)
HOSTNAME = "kubernetes.io/hostname"
SUCCESS = ("Pending", "Scheduling", "Running", "Succeeded")
FAILURE = ("Pending", "Scheduling", "Running", "Failed")
NO_NODE = "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."
SCHEDULER_WORDS = f"{NO_NODE} no new claims to deallocate, preemption: 0/2 nodes are available: 2 No victims found."


def vmi_path(name: str, namespace: str = "shop") -> str:
    return f"{KUBEVIRT}/namespaces/{namespace}/virtualmachineinstances/{name}"


def migrations_path(namespace: str = "shop") -> str:
    return f"{KUBEVIRT}/namespaces/{namespace}/{MIGRATIONS}"


@dataclass
class MigratingApi(ObjectApi):
    """`courses`: the phases of each migration to come, the last one for all further ones. own_courses: of single VMIs.

    brought_back: how often somebody brings a VMI back as soon as its migration has succeeded, by its name.
    homeless: target pods find no node. forgotten: they are removed before anybody sees them, and only events tell.
    stubborn: deleted migrations stay. reason: what failures are put down to. step_seconds: how long each phase takes.
    known: what the schema of migrations has in their spec; KubeVirt before 1.6 had no addedNodeSelector.
    """

    courses: list[tuple[str, ...]] = field(default_factory=lambda: [SUCCESS])
    own_courses: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)
    brought_back: dict[str, int] = field(default_factory=dict)
    homeless: bool = False
    forgotten: bool = False
    stubborn: bool = False
    reason: str = "Live migration aborted"
    step_seconds: float = 0.0
    known: tuple[str, ...] = ("vmiName", "addedNodeSelector", "priority", "sendTo", "receive")
    _ticks: Iterator[int] = field(default_factory=itertools.count)
    _playing: dict[str, Iterator[str]] = field(default_factory=dict)
    _stage: threading.Lock = field(default_factory=threading.Lock)

    def add_vmi(self, name: str, node: str = "n1", namespace: str = "shop", **spec: Any) -> Object:
        status = {"phase": "Running", "nodeName": node, "conditions": [{"type": "LiveMigratable", "status": "True"}]}
        metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": "1"}
        vmi: Object = {"metadata": metadata, "spec": {"architecture": "amd64", **spec}, "status": status}
        self.objects[vmi_path(name, namespace)] = vmi
        self.objects[f"/api/v1/namespaces/{namespace}"] = {"metadata": {"name": namespace}}
        return vmi

    def add_migration(
        self,
        name: str,
        vmi: str,
        run: str = "",
        phase: str = "Running",
        node: str = "n2",
        course: tuple[str, ...] = ("Succeeded",),
    ) -> Object:
        """One in flight away from n1, begun by an earlier run or, without one, by somebody else."""
        labels = {"virtops.kubevirt/run": run, "virtops.kubevirt/source-node": "n1"} if run else {}
        metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": "1", "labels": labels}
        spec = {"vmiName": vmi, "addedNodeSelector": {HOSTNAME: node}}
        item: Object = {"metadata": metadata, "spec": spec, "status": {}}
        path = f"{migrations_path()}/{name}"
        self.objects[path] = item
        self._playing[path] = iter(course)
        self._reach(item, phase)
        return item

    def finish(self, migration: Object) -> None:
        """Let it succeed when somebody watches next."""
        metadata = migration["metadata"]
        self._playing[f"{migrations_path(metadata['namespace'])}/{metadata['name']}"] = iter(("Succeeded",))

    def created(self) -> list[Object]:
        """The migrations asked for so far, dry runs left out."""
        return [request.body for request in self.writes() if is_creation(request)]

    def _list(self, request: Request) -> Answer:
        if request.path == NODES:
            return self._items(self._nodes(request.query["labelSelector"]))
        if request.path.endswith(f"/{MIGRATIONS}") and request.method == "GET":
            return self._migrations(request.query)
        if request.path.endswith("/pods"):
            return self._items(self._homeless_pods() if self.homeless and not self.forgotten else [])
        if request.path.endswith("/events"):
            return self._items(self._events(request.query["fieldSelector"]) if self.homeless else [])
        if request.path.endswith("/evacuate/cancel"):
            return self._withdraw(request)
        if request.method == "DELETE" and "dryRun" in request.query:
            return Answer(200, {})
        if request.method == "DELETE" and self.stubborn:
            self.objects[request.path]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            return Answer(200, {})
        if request.path not in self.objects and request.method != "POST":
            return refusal(404, "NotFound", f"{request.path} not found")
        return super()._list(request)

    def _withdraw(self, request: Request) -> Answer:
        """Follows EvacuateCancelHandler in pkg/virt-api/rest/evacuate_cancel.go."""
        path = request.path.removesuffix("/evacuate/cancel").replace("/subresources.", "/")
        status = self.objects[path]["status"]
        if status.get("evacuationNodeName") != request.body["evacuationNodeName"]:
            return refusal(500, "InternalError", "the server rejected our request due to an error in our request")
        if "dryRun" not in request.body:
            del status["evacuationNodeName"]
        return Answer(200, b"")

    def _create(self, request: Request) -> Answer:
        is_migration = request.path.endswith(f"/{MIGRATIONS}")
        unknown = [name for name in request.body["spec"] if name not in self.known] if is_migration else []
        if unknown and request.query.get("fieldValidation") == "Strict":
            return refusal(
                400, "BadRequest", NOT_DECODED + ", ".join(f'unknown field "spec.{name}"' for name in unknown)
            )
        for name in unknown:  # as a structural schema has it
            del request.body["spec"][name]
        denial = self._denial(request.path, request.body["spec"]["vmiName"]) if is_migration else ""
        if denial:
            # As virt-api's webhook does, which the API server asks before it looks for the name.
            return refusal(400, "", f'admission webhook "{WEBHOOK}" denied the request: {denial}')
        answer = super()._create(request)
        if is_migration and answer.status == 201 and isinstance(answer.body, dict):
            answer.body["metadata"]["uid"] = f"uid-{answer.body['metadata']['name']}"
            courses = self.own_courses.get(request.body["spec"]["vmiName"], self.courses)
            course = courses.pop(0) if len(courses) > 1 else courses[0]
            self._playing[f"{request.path}/{answer.body['metadata']['name']}"] = iter(course)
        return answer

    def _denial(self, path: str, vmi: str) -> str:
        """Follows pkg/virt-api/webhooks/validating-webhook/admitters/migration-create-admitter.go."""
        found = self.objects.get(f"{path.rpartition('/')[0]}/virtualmachineinstances/{vmi}")
        if found is None:
            return f'the VMI "shop/{vmi}" does not exist'
        if found["status"]["phase"] in ("Succeeded", "Failed"):
            return "Cannot migrate VMI in finalized state."
        for condition in found["status"].get("conditions", ()):
            if condition["type"] == "LiveMigratable" and condition["status"] == "False":
                return f"Cannot migrate VMI, Reason: {condition.get('reason')}, Message: {condition.get('message')}"
        for item in self.migrations():
            is_unfinished = item.get("status", {}).get("phase") not in ("Succeeded", "Failed")
            if item["spec"]["vmiName"] == vmi and is_unfinished:
                job = (
                    f"Active migration job ({item['metadata']['uid']}) is currently already in progress for VMI {vmi}."
                )
                return f"in-flight migration detected. {job}"
        return ""

    def migrations(self) -> list[Object]:
        return [item for _path, item in self._migrations_by_path()]

    def _migrations_by_path(self) -> list[tuple[str, Object]]:
        return [(path, item) for path, item in list(self.objects.items()) if f"/{MIGRATIONS}/" in path]

    def _nodes(self, selector: str) -> list[Object]:
        wanted = dict(pair.split("=") for pair in selector.split(","))
        nodes = [item for path, item in list(self.objects.items()) if path.startswith(f"{NODES}/")]
        return [node for node in nodes if wanted.items() <= node["metadata"]["labels"].items()]

    def _items(self, items: list[Object]) -> Answer:
        return Answer(200, {"metadata": {"resourceVersion": str(next(self._versions))}, "items": items})

    def _migrations(self, query: dict[str, str]) -> Answer:
        selector = query.get("labelSelector", "")
        if "watch" in query:
            shown = [item for item in self._news(query["resourceVersion"]) if matches(selector, item)]
            events = (json.dumps({"type": "MODIFIED", "object": item}).encode() + b"\n" for item in shown)
            return Answer(200, b"".join(events))
        return self._items([item for item in self.migrations() if matches(selector, item)])

    def _news(self, version: str) -> list[Object]:
        """What has changed since a version, as a server tells each who watches at once; else the next step is played.

        It is waited for a moment, as a server keeps a watch open: one that ends at once is opened again at once. The
        watch of a task that has ended may still be open: it takes nothing from those of the next one.
        """
        end = time.monotonic() + _STREAM
        while True:
            news = [item for item in self.migrations() if int(item["metadata"]["resourceVersion"]) > int(version)]
            if news or time.monotonic() > end:
                return news
            if self._play() is None:
                time.sleep(_PAUSE)

    def _play(self) -> Object | None:
        """The first migration that has a next step, after it."""
        with self._stage:  # else one watch could show the last step before another shows the one before it
            for path, course in list(self._playing.items()):
                phase = next(course, None)
                if phase and path in self.objects:
                    time.sleep(self.step_seconds)
                    self._reach(self.objects[path], phase)
                    return self.objects[path]
        return None

    def _reach(self, item: Object, phase: str) -> None:
        """What virt-controller and virt-handler write when a migration comes to a phase."""
        status = item.setdefault("status", {})
        time = f"2026-01-01T00:00:{next(self._ticks) % 60:02}Z"
        status["phase"] = phase
        reached = {"phase": phase, "phaseTransitionTimestamp": time}
        status["phaseTransitionTimestamps"] = [*status.get("phaseTransitionTimestamps", ()), reached]
        item["metadata"]["resourceVersion"] = str(next(self._versions))
        vmi = self.objects.get(vmi_path(item["spec"]["vmiName"], item["metadata"]["namespace"]))
        if vmi and phase == "Succeeded" and self.brought_back.get(vmi["metadata"]["name"]):
            self.brought_back[vmi["metadata"]["name"]] -= 1
        elif vmi and phase == "Succeeded":
            vmi["status"]["nodeName"] = item["spec"].get("addedNodeSelector", {}).get(HOSTNAME, "n2")
        elif vmi and phase == "Failed" and not self.homeless:
            uid = item["metadata"]["uid"]
            vmi["status"]["migrationState"] = {"migrationUid": uid, "failureReason": self.reason}

    def _homeless_pods(self) -> list[Object]:
        """The target pods there are: one for each migration that is Scheduling, none before."""
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": SCHEDULER_WORDS}
        status = {"phase": "Pending", "conditions": [condition]}
        placing = [item for item in self.migrations() if item.get("status", {}).get("phase") == "Scheduling"]
        labels = [{"kubevirt.io/migrationJobUID": item["metadata"]["uid"]} for item in placing]
        return [{"metadata": {"name": "virt-launcher", "labels": each}, "status": status} for each in labels]

    def _events(self, selector: str) -> list[Object]:
        """On the migration or, by the scheduler, on a pod of it and on one of another."""
        if selector != "reason=FailedScheduling":
            return [_event("migration", "Created migration target pod virt-launcher-db")]
        return [_event("virt-launcher-db", SCHEDULER_WORDS), _event("virt-launcher-other", "0/2 nodes: others")]


def is_creation(request: Request) -> bool:
    """Dry runs create nothing."""
    return request.method == "POST" and "dryRun" not in request.query


def matches(selector: str, item: Object) -> bool:
    """Whether an object has the labels of a selector made of `key=value` and `key in (value,value)`."""
    labels = item["metadata"].get("labels") or {}
    for key, _operator, values in re.findall(r"([^,=\s]+)\s*(=| in )\s*(\([^)]*\)|[^,]*)", selector):
        if labels.get(key) not in values.strip("()").split(","):
            return False
    return True


def _event(name: str, message: str) -> Object:
    return {"metadata": {"resourceVersion": "1"}, "involvedObject": {"name": name}, "message": message}


def shop() -> MigratingApi:
    fake = MigratingApi()
    stock(fake)
    return fake


def stock(fake: MigratingApi) -> None:
    """VMIs `db` on n1 and `web` on n2, of two nodes in zones a and b."""
    fake.add_node("n1", {HOSTNAME: "n1", "zone": "a"})
    fake.add_node("n2", {HOSTNAME: "n2", "zone": "b"})
    fake.add_vmi("db", node="n1")
    fake.add_vmi("web", node="n2")
