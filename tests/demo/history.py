# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All that the API server told of an application while something was done to it."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from testbed.api import Api, Object, resource_path

ENDED = ("Succeeded", "Failed")
CREATED_BY = "kubevirt.io/created-by"
ZONE = "topology.kubernetes.io/zone"
# How long one watch lasts before the next goes on from its last event, and so how long the end may take.
SECONDS = 2.0


class History:
    """Watches the pods and VMIs of a namespace within a `with` statement, in which both change.

    `vmis`: by uid, the states of each in their order. `crowded`: what there ever was of VMs of one application in one
    zone at once, one sentence each. A watch that broke off or told nothing is an error, as something was missed.
    """

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        with Api(kubeconfig) as api:
            nodes = api.items("/api/v1/nodes")
        self.zones = {node["metadata"]["name"]: str(node["metadata"]["labels"].get(ZONE, "")) for node in nodes}
        self.vmis: defaultdict[str, list[Object]] = defaultdict(list)
        self.crowded: set[str] = set()
        self._pods: dict[str, Object] = {}
        self._paths = {
            "pods": resource_path("v1", "pods", namespace),
            "vmis": resource_path("kubevirt.io/v1", "virtualmachineinstances", namespace),
        }
        self._apis = {kind: Api(kubeconfig) for kind in self._paths}
        self._first = {kind: self._apis[kind].get(path) for kind, path in self._paths.items()}
        self._watches: dict[str, Future[None]] = {}
        self._over = threading.Event()
        self._changed: set[str] = set()

    def __enter__(self) -> Self:
        pool = ThreadPoolExecutor(len(self._paths))
        self._watches = {kind: pool.submit(self._watch, kind) for kind in self._paths}
        pool.shutdown(wait=False)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._over.set()
        # Waits for both, whatever ended them.
        gaps = [f"{kind}: {watch.exception()!r}" for kind, watch in self._watches.items() if watch.exception()]
        gaps = gaps or [f"nothing was told of {kind}" for kind in self._paths if kind not in self._changed]
        for api in self._apis.values():
            api.close()
        if gaps and error is None:
            raise AssertionError(f"The history has a gap: {'; '.join(gaps)}.")

    def newcomers(self, app: str) -> list[str]:
        """Names of the VMIs of an application that were not there at first: a VM that starts anew is one."""
        first = {vmi["metadata"]["uid"] for vmi in self._first["vmis"]["items"]}
        return [states[0]["metadata"]["name"] for uid, states in self._of(app) if uid not in first]

    def interruptions(self, app: str) -> list[str]:
        """When a VMI of an application that was there at first did not run, one sentence each."""
        first = {vmi["metadata"]["uid"] for vmi in self._first["vmis"]["items"]}
        return [
            f"{state['metadata']['name']} was {state['status'].get('phase')}"
            for uid, states in self._of(app)
            for state in states
            if uid in first and state["status"].get("phase") != "Running"
        ]

    def _of(self, app: str) -> Iterator[tuple[str, list[Object]]]:
        for uid, states in list(self.vmis.items()):
            if states[0]["metadata"].get("labels", {}).get("app") == app:
                yield uid, states

    def _watch(self, kind: str) -> None:
        see = self._see_pod if kind == "pods" else self._see_vmi
        for item in self._first[kind]["items"]:
            see({"type": "ADDED", "object": item})
        version = self._first[kind]["metadata"]["resourceVersion"]
        last = False
        while not last:
            # One more watch after the end was called tells what came before it.
            last = self._over.is_set()
            for event in self._apis[kind].changes(self._paths[kind], version, SECONDS):
                if event["type"] == "ERROR":
                    raise RuntimeError(event["object"].get("message"))
                see(event)
                self._changed.add(kind)
                version = event["object"]["metadata"]["resourceVersion"]

    def _see_vmi(self, event: Object) -> None:
        self.vmis[event["object"]["metadata"]["uid"]].append(event["object"])

    def _see_pod(self, event: Object) -> None:
        pod = event["object"]
        uid = pod["metadata"]["uid"]
        self._pods.pop(uid, None)
        if event["type"] != "DELETED" and pod["status"].get("phase") not in ENDED and pod["spec"].get("nodeName"):
            self._pods[uid] = pod
        together: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for other in self._pods.values():
            labels = other["metadata"].get("labels", {})
            # Both pods of a VM that migrates are one VM.
            if CREATED_BY in labels:
                together[labels.get("app", ""), self.zones[other["spec"]["nodeName"]]].add(labels[CREATED_BY])
        self.crowded |= {f"{len(vms)} {app} in zone {zone}" for (app, zone), vms in together.items() if len(vms) > 1}
