# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster and the run that everything is about."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from random import Random
from typing import Any

from faults.proxy import Proxy, proxied
from integration.clusters import KUBEVIRT, MIGRATIONS, VMIS, delete, loaded
from integration.migration.clusters import peaceful
from testbed.api import Api, ApiError, Object, resource_path
from testbed.handle import RunningTestbed
from testbed.scenarios.generator import GeneratorSpec, generate

LEASES = resource_path("coordination.k8s.io/v1", "leases", "medik8s-leases")
CONFIG_MAPS = resource_path("v1", "configmaps", "medik8s-leases")
NODES = "/api/v1/nodes"
# A cluster in which all VMs that can migrate find a node, also without one of the nodes.
FILL, ZONES = 0.4, 3
ENDED = ("Succeeded", "Failed")
# On all that a run creates, with its name.
RUN_LABEL = "virtops.kubevirt/run"


@dataclass
class Scene:
    """run: its name, over `nodes`, so many in a batch. folder: what it writes.

    proxy: through which the run, and nobody else, reaches the API server.

    kubeconfig: of the run. before: uids of the VMIs that were there, by title.

    movable: titles of those that can be migrated. touched: titles of VMs that a disturbance has interrupted itself.
    stopped: those that their owner has switched off. given_back: nodes that somebody has uncordoned.
    extras: paths of objects that were not there before. known: uids of what other runs had left before.
    killed: whether the run was ended at any moment. variables: what the run is given besides. tasks: what the
    maintenance of each node does besides, as a playbook has it. standstills: seconds for which the run will have to
    wait.
    """

    testbed: RunningTestbed
    folder: Path
    run: str
    nodes: tuple[str, ...]
    batch: int
    random: Random
    kubeconfig: Path
    proxy: Proxy
    before: dict[str, str] = field(default_factory=dict)
    movable: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)
    stopped: set[str] = field(default_factory=set)
    given_back: set[str] = field(default_factory=set)
    extras: list[str] = field(default_factory=list)
    killed: bool = False
    variables: dict[str, Any] = field(default_factory=dict)
    tasks: list[Object] = field(default_factory=list)
    standstills: float = 0.0

    @property
    def api(self) -> Api:
        return self.testbed.api

    @property
    def journal(self) -> Path:
        """What the maintenance has noted, a line of JSON each time."""
        return self.folder / "journal"

    def looks(self) -> list[Object]:
        """What the maintenance has noted, in its order."""
        return [json.loads(line) for line in self.journal.read_text().splitlines()] if self.journal.exists() else []

    def vmis(self) -> list[Object]:
        return self.api.items(resource_path(KUBEVIRT, VMIS))

    def migrations(self) -> list[Object]:
        return self.api.items(resource_path(KUBEVIRT, MIGRATIONS))

    def evict(self, vmi: Object) -> str:
        """Ask for the eviction of a VMI's pod; what comes of it, in words."""
        metadata = vmi["metadata"]
        labelled = f"kubevirt.io/created-by={metadata['uid']}"
        pods = resource_path("v1", "pods", metadata["namespace"])
        for pod in self.api.items(pods, labelSelector=labelled):
            if pod["spec"].get("nodeName") != vmi["status"].get("nodeName") or pod["status"].get("phase") in ENDED:
                continue
            name = {"namespace": metadata["namespace"], "name": pod["metadata"]["name"]}
            eviction: Object = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": name}
            try:
                self.api.create(f"{pods}/{name['name']}/eviction", eviction)
            except ApiError as error:
                if error.status not in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.NOT_FOUND):
                    raise
                return f"{title(vmi)} evicted: {error.message}"
            self.touched.add(title(vmi))  # its strategy allows that it just ends
            return f"{title(vmi)} evicted"
        return "nothing: no pod to evict"

    def rotate_token(self) -> None:
        """Write a new token into the run's kubeconfig."""
        token = f"token-{self.random.randrange(10**9)}"
        fresh = self.kubeconfig.with_suffix(".new")
        fresh.write_text(self.kubeconfig.read_text().replace(self.proxy.issued, token))
        fresh.replace(self.kubeconfig)
        self.proxy.issued = token


def title(item: Object) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def can_migrate(vmi: Object) -> bool:
    conditions = (vmi.get("status") or {}).get("conditions") or ()
    return any((entry["type"], entry["status"]) == ("LiveMigratable", "True") for entry in conditions)


@contextmanager
def scene(testbed: RunningTestbed, folder: Path, seed: int, nodes: int, vms: int) -> Iterator[Scene]:
    """A cluster that the seed makes, and a run over some of its nodes."""
    found = generate(GeneratorSpec(nodes=nodes, vmis=vms, zones=ZONES, fill=FILL, seed=seed))
    scenario = replace(found, objects=tuple(map(peaceful, found.objects)))
    chance = Random(seed)  # noqa: S311  # a seed makes it again
    chosen = chance.sample(scenario.nodes, chance.randint(2, min(4, nodes)))
    with loaded(testbed.api, scenario), proxied(testbed.kubeconfig, folder, seed) as (kubeconfig, proxy):
        run, batch = f"faults-{seed}", chance.choice((1, 1, 2))
        made = Scene(testbed, folder, run, tuple(sorted(chosen)), batch, chance, kubeconfig, proxy)
        vmis = made.vmis()
        made.before = {title(vmi): vmi["metadata"]["uid"] for vmi in vmis}
        made.known = {item["metadata"]["uid"] for path in (LEASES, CONFIG_MAPS) for item in testbed.api.items(path)}
        made.movable = {title(vmi) for vmi in vmis if can_migrate(vmi)}
        try:
            yield made
        finally:
            for path in made.extras:
                delete(testbed.api, path)
