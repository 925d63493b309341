# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the findings say, happening on a real cluster; and what happens instead once a finding is mended.

Each proof raises AssertionError, or TestbedError when it has waited in vain. It leaves no migration behind.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import Finding

from integration.clusters import (
    KUBEVIRT,
    MIGRATIONS,
    cordoned,
    evict,
    launchers,
    migrate,
    pods,
    refreshed,
    scheduling_message,
    vmis,
    wait_for_phase,
)
from integration.lint.case import Case, Proof
from integration.lint.cases import WINDOW
from testbed.api import Api, ApiError, Object, resource_path
from testbed.waiting import wait_for

BUDGET = "violate the pod's disruption budget"
# Simulated seconds in one.
TIME_SCALE = 60.0
TIMEOUT = 60.0


@dataclass(frozen=True)
class Scene:
    """A case on a cluster, and what the linter said of it; nothing once it is mended."""

    api: Api
    case: Case
    finding: Finding | None = None

    def vmis(self) -> list[Object]:
        return sorted(vmis(self.api, self.case.namespace), key=lambda vmi: str(vmi["metadata"]["name"]))

    def vmis_on(self, node: str) -> list[Object]:
        return [vmi for vmi in self.vmis() if vmi["status"].get("nodeName") == node]

    def pods(self) -> list[Object]:
        return pods(self.api, self.case.namespace, "app")

    def check(self, message: str) -> None:
        """That the cluster says what the finding quotes, or what the case expects."""
        assert self.finding
        said = self.finding.problem.consequence
        expected, given = (self.case.words, message) if self.case.words else (message.rstrip("."), said)
        assert expected in given, f"{expected!r} is not in {given!r}"


def migration_pending(scene: Scene) -> None:
    assert scene.finding
    concerned = scene.finding.problem.vmis
    vmi = next(vmi for vmi in scene.vmis() if f"{scene.case.namespace}/{vmi['metadata']['name']}" in concerned)
    stays_pending(scene, vmi)


def stays_pending(scene: Scene, vmi: Object, node: str = "") -> None:
    migration = migrate(scene.api, vmi, node)
    try:
        scene.check(scheduling_message(scene.api, vmi))
    finally:
        # Else it holds a place that other cases wait for.
        cancel(scene.api, migration, vmi)


def migrates(scene: Scene) -> None:
    for vmi in scene.vmis():
        moves(scene, vmi)


def moves(scene: Scene, vmi: Object, node: str = "") -> None:
    wait_for_phase(scene.api, migrate(scene.api, vmi, node), "Succeeded")
    wait_for("the source pod to end", lambda: len(launchers(scene.api, vmi)) == 1, TIMEOUT)


def cancel(api: Api, migration: Object, vmi: Object) -> None:
    metadata = migration["metadata"]
    api.delete(resource_path(KUBEVIRT, MIGRATIONS, metadata["namespace"], metadata["name"]))
    wait_for("the target pod to go", lambda: len(launchers(api, vmi)) == 1, TIMEOUT)


def node_not_emptied(scene: Scene) -> None:
    *first, last = scene.vmis_on(scene.case.nodes[0])
    for vmi in first:
        moves(scene, vmi)
    stays_pending(scene, last)


def node_emptied(scene: Scene) -> None:
    node = scene.case.nodes[0]
    for vmi in scene.vmis_on(node):
        moves(scene, vmi)
    assert scene.vmis_on(node) == []


def drain_stops(scene: Scene) -> None:
    with cordoned(scene.api, scene.case.nodes[0]):
        node_not_emptied(scene)


def drain_ends(scene: Scene) -> None:
    with cordoned(scene.api, scene.case.nodes[0]):
        node_emptied(scene)


def node_never_reached(scene: Scene) -> None:
    stays_pending(scene, scene.vmis()[0], scene.case.nodes[-1])


def node_reached(scene: Scene) -> None:
    vmi, node = scene.vmis()[0], scene.case.nodes[-1]
    # It may have started there.
    if vmi["status"]["nodeName"] != node:
        moves(scene, vmi, node)
    assert [vmi["metadata"]["name"] for vmi in scene.vmis_on(node)] == [vmi["metadata"]["name"]]


def pod_pending(scene: Scene) -> None:
    scene.check(scheduling_message(scene.api, scene.vmis()[0]))


def pod_ignored(scene: Scene) -> None:
    (pod,) = launchers(scene.api, scene.vmis()[0])
    assert "nodeName" not in pod["spec"]
    assert "PodScheduled" not in [condition["type"] for condition in pod["status"].get("conditions", ())]


def all_run(scene: Scene) -> None:
    assert {vmi["status"]["phase"] for vmi in scene.vmis()} == {"Running"}


def shared_node(scene: Scene) -> None:
    assert max(_population(scene).values()) > 1


def no_shared_node(scene: Scene) -> None:
    assert max(_population(scene).values()) == 1


def _population(scene: Scene) -> Counter[str]:
    return Counter(pod["spec"]["nodeName"] for pod in scene.pods() if "nodeName" in pod["spec"])


def eviction_kills(scene: Scene) -> None:
    vmi = scene.vmis()[0]
    evict(scene.api, launchers(scene.api, vmi)[0])

    def is_gone() -> bool:
        return all(
            other["metadata"]["uid"] != vmi["metadata"]["uid"] or other["status"]["phase"] != "Running"
            for other in scene.vmis()
        )

    wait_for("the end of the evicted VM", is_gone, TIMEOUT)


def eviction_refused(scene: Scene) -> None:
    assert scene.case.words in _refusal(scene, HTTPStatus.TOO_MANY_REQUESTS)


def evacuates(scene: Scene) -> None:
    vmi = scene.vmis()[0]
    assert "Eviction triggered evacuation" in _refusal(scene, HTTPStatus.TOO_MANY_REQUESTS)

    def has_moved() -> bool:
        return bool(refreshed(scene.api, vmi)["status"]["nodeName"] != vmi["status"]["nodeName"])

    wait_for("the evacuation", has_moved, TIMEOUT)


def budget_refuses(scene: Scene) -> None:
    assert BUDGET in _refusal(scene, HTTPStatus.TOO_MANY_REQUESTS)


def api_refuses(scene: Scene) -> None:
    assert scene.case.words in _refusal(scene, HTTPStatus.INTERNAL_SERVER_ERROR)


def _refusal(scene: Scene, status: HTTPStatus) -> str:
    with pytest.raises(ApiError) as refused:
        evict(scene.api, scene.pods()[0])
    assert refused.value.status == status
    return refused.value.message


def eviction_allowed(scene: Scene) -> None:
    """As soon as the budget has been counted anew."""

    def is_allowed() -> bool:
        evict(scene.api, scene.pods()[0])
        return True

    wait_for("the budget to allow an eviction", is_allowed, TIMEOUT)


def migration_fails(scene: Scene) -> None:
    wait_for_phase(scene.api, migrate(scene.api, scene.vmis()[0]), "Failed")


def drain_takes_long(scene: Scene) -> None:
    leaving = scene.vmis_on(scene.case.nodes[0])
    began = time.monotonic()
    migrations = [migrate(scene.api, vmi) for vmi in leaving]
    for migration in migrations:
        wait_for_phase(scene.api, migration, "Succeeded")
    assert (time.monotonic() - began) * TIME_SCALE > WINDOW


# What shows the consequence, and what shows that it is gone.
PROOFS: dict[Proof, tuple[Callable[[Scene], None], Callable[[Scene], None]]] = {
    Proof.MIGRATION_PENDING: (migration_pending, migrates),
    Proof.NODE_NOT_EMPTIED: (node_not_emptied, node_emptied),
    Proof.DRAIN_STOPS: (drain_stops, drain_ends),
    Proof.NODE_NEVER_REACHED: (node_never_reached, node_reached),
    Proof.POD_PENDING: (pod_pending, all_run),
    Proof.POD_IGNORED: (pod_ignored, all_run),
    Proof.SHARED_NODE: (shared_node, no_shared_node),
    Proof.EVICTION_KILLS: (eviction_kills, evacuates),
    Proof.EVICTION_REFUSED: (eviction_refused, evacuates),
    Proof.BUDGET_REFUSES: (budget_refuses, eviction_allowed),
    Proof.API_REFUSES: (api_refuses, eviction_allowed),
    Proof.EVICTION_ALLOWED: (eviction_allowed, budget_refuses),
    Proof.MIGRATION_FAILS: (migration_fails, migrates),
    Proof.DRAIN_TAKES_LONG: (drain_takes_long, migrates),
}
