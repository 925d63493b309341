# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection says of migrations before they are tried, and trying them."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import NoTargetPod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import CREATED_BY
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.migration_target import target_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespaces
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import Workloads, title
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import KINDS
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import cluster_state
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.verdict import explain

from integration.clusters import HOST, KUBEVIRT, MIGRATIONS, UNSCHEDULABLE_TIMEOUT
from integration.migration.hosts import ZONE
from integration.migration.target_pods import watched_target_pods
from testbed.api import Api, Object, resource_path
from testbed.scenarios.settle import unready_nodes
from testbed.waiting import wait_for

TIMEOUT = 300.0
_FINAL = ("Succeeded", "Failed")
_LIVING = "status.phase!=Succeeded,status.phase!=Failed"
PARALLEL = 4


@dataclass(frozen=True, eq=False)
class Verdict:
    """Of the migration of `vmi` (namespace/name), pinned by labels to `added`: nodes that fit, or the message."""

    vmi: str
    added: Mapping[str, str]
    fit: frozenset[str]
    message: str
    group: str


class Seer:
    """A cluster's lists, as a snapshot keeps them, and what they let foretell."""

    def __init__(self, api: Api) -> None:
        self.lists = {
            kind.name: [kind.project(item) for item in api.items(kind.path) if kind.keep(item)] for kind in KINDS
        }
        self._workloads = Workloads(self.lists)
        self._configuration = configuration(self.lists)
        self._namespaces = Namespaces(self.lists)
        self._state = cluster_state(self.lists)
        self.nodes = [node["metadata"] for node in self.lists["nodes"]]

    def migratable(self) -> list[Object]:
        return [vmi for vmi in self.lists["vmis"] if migratable(vmi)]

    def verdict(self, vmi: Object, added: Mapping[str, str]) -> Verdict:
        source = self._workloads.source_pod(vmi)
        assert source is not None, title(vmi)
        node = self._workloads.node(vmi["status"]["nodeName"])
        target = target_pod(vmi, source, node, self._configuration, self._namespaces.of(vmi), added)
        assert not isinstance(target, NoTargetPod), target
        said = explain(pod(target), self._state)
        assert "error" not in said, said
        return Verdict(title(vmi), added, frozenset(said["fit"]), said["message"], vmi["metadata"]["labels"]["group"])


def migratable(vmi: Object) -> bool:
    conditions = {one["type"]: one["status"] for one in vmi["status"].get("conditions", ())}
    return vmi["status"].get("phase") == "Running" and conditions.get("LiveMigratable") == "True"


@dataclass
class Tally:
    """Verdicts that were tried: how many of each kind, with which reasons, and those that were not what happened.

    `repeated`: those of the refused that came true at the second attempt only, or not at all.
    """

    refused: int = 0
    repeated: int = 0
    fulfilled: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    @property
    def tried(self) -> int:
        return self.refused + self.fulfilled


def questions(seer: Seer, vmi: Object) -> list[Verdict]:
    """Migrations to wherever it may be, to each zone, and to each node."""
    zones = sorted({node["labels"][ZONE] for node in seer.nodes if ZONE in node["labels"]})
    added: list[dict[str, str]] = [{}, *({ZONE: zone} for zone in zones)]
    added += [{HOST: node["labels"][HOST]} for node in seer.nodes]
    return [seer.verdict(vmi, one) for one in added]


def try_refused(api: Api, most: int, tally: Tally) -> None:
    """Try migrations that fit no node, until the tally has so many; they change nothing, so that all verdicts hold."""
    _wait_for_nodes(api)
    seer = Seer(api)
    left = [[verdict for verdict in questions(seer, vmi) if not verdict.fit] for vmi in seer.migratable()]
    while tally.refused < most and any(left):
        # A VM has one migration at a time.
        with_more = [of_one for of_one in left if of_one]
        asked = [_rarest(of_one, tally.reasons) for of_one in with_more[: most - tally.refused]]
        tally.refused += len(asked)
        wrong = _refuse(api, asked)
        if wrong:
            _wait_for_nodes(api)
            tally.repeated += len(wrong)
            wrong = _refuse(api, wrong)
        tally.wrong += [f"{_described(one)}: said {one.message!r}, was told {told!r}" for one, told in wrong.items()]


def _wait_for_nodes(api: Api) -> None:
    """On a busy machine a node misses its heartbeats and is tainted for a while, which nobody can foresee."""
    wait_for("all nodes to be Ready", lambda: not any(unready_nodes(api)), TIMEOUT)


def _refuse(api: Api, asked: Iterable[Verdict]) -> dict[Verdict, str | None]:
    """Try them side by side: those with another message, and that one; None if a node was found."""
    with watched_target_pods(api) as pods:
        jobs = _begin(api, asked)
        _outcomes(api, jobs)
    told = {verdict: pods.told.get(job) for job, verdict in jobs.items()}
    return {verdict: message for verdict, message in told.items() if message != verdict.message}


def _rarest(verdicts: list[Verdict], seen: Counter[str]) -> Verdict:
    """Take the verdict with the reason that has been seen least."""
    chosen = min(verdicts, key=lambda verdict: min(seen[reason] for reason in _reasons(verdict.message)))
    verdicts.remove(chosen)
    seen.update(_reasons(chosen.message))
    return chosen


def try_fulfilled(api: Api, most: int, tally: Tally) -> None:
    """Try migrations that fit, each to one node, until the tally has so many.

    Those of one time are of different groups of VMs and to different nodes: of a generated cluster's VMs only such have
    nothing to do with each other, so that all verdicts hold. Then all is asked anew.
    """
    moved: Counter[str] = Counter()
    while tally.fulfilled < most:
        _wait_for_nodes(api)
        seer = Seer(api)
        batch = _independent(seer, moved)[: most - tally.fulfilled]
        if not batch:
            return
        jobs = _begin(api, batch)
        ended = _outcomes(api, jobs)
        there = {title(vmi): vmi["status"].get("nodeName", "") for vmi in Seer(api).lists["vmis"]}
        for job, verdict in jobs.items():
            tally.fulfilled += 1
            moved[verdict.vmi] += 1
            # A replica set may replace a VMI as soon as it has moved: then only the migration's own word is left.
            on = there.get(verdict.vmi, "somewhere")
            if ended[job] != "Succeeded" or (verdict.vmi in there and on not in verdict.fit):
                tally.wrong.append(f"{_described(verdict)}: {ended[job]}, is on {on}")


def _independent(seer: Seer, moved: Mapping[str, int]) -> list[Verdict]:
    """Of each group the VM that has moved least, to a node that nobody else is going to."""
    found: list[Verdict] = []
    groups: set[str] = set()
    taken: set[str] = set()
    for vmi in sorted(seer.migratable(), key=lambda vmi: (moved[title(vmi)], title(vmi))):
        if vmi["metadata"]["labels"]["group"] in groups:
            continue
        for verdict in questions(seer, vmi):
            if HOST in verdict.added and len(verdict.fit) == 1 and not verdict.fit & taken:
                found.append(verdict)
                groups.add(verdict.group)
                taken |= verdict.fit
                break
    return found


def _begin(api: Api, asked: Iterable[Verdict]) -> dict[str, Verdict]:
    """Create the migrations; by their uid."""

    def create(verdict: Verdict) -> tuple[str, Verdict]:
        namespace, name = verdict.vmi.split("/")
        migration = {
            "apiVersion": KUBEVIRT,
            "kind": "VirtualMachineInstanceMigration",
            # Given up soon after the scheduler has found no node, and not for what it has not heard of for a moment.
            "metadata": {
                "name": f"{name}-{uuid.uuid4().hex[:8]}",
                "namespace": namespace,
                "annotations": {UNSCHEDULABLE_TIMEOUT: "5"},
            },
            "spec": {"vmiName": name, "addedNodeSelector": dict(verdict.added)},
        }
        created = api.create(resource_path(KUBEVIRT, MIGRATIONS, namespace), migration)
        return created["metadata"]["uid"], verdict

    with ThreadPoolExecutor(PARALLEL) as pool:
        return dict(pool.map(create, asked))


def _outcomes(api: Api, jobs: Iterable[str]) -> dict[str, str]:
    """Wait until the migrations of these uids have ended, and with them the pods that they leave behind; how it was."""
    ended: dict[str, str] = {}

    def resting() -> bool:
        found = api.items(resource_path(KUBEVIRT, MIGRATIONS))
        ended.update({one["metadata"]["uid"]: one.get("status", {}).get("phase", "") for one in found})
        if any(ended[job] not in _FINAL for job in jobs):
            return False
        living = api.items("/api/v1/pods", labelSelector="kubevirt.io=virt-launcher", fieldSelector=_LIVING)
        return max(Counter(pod["metadata"]["labels"][CREATED_BY] for pod in living).values()) == 1

    wait_for("the end of all migrations", resting, TIMEOUT, interval=0.5)
    return ended


def _reasons(message: str) -> list[str]:
    """`1 Insufficient memory, 2 node(s) ...` without the numbers."""
    _head, _colon, reasons = message.partition(": ")
    return [reason.strip().partition(" ")[2].rstrip(".") for reason in reasons.split(", ")]


def _described(verdict: Verdict) -> str:
    return f"{verdict.vmi} to {dict(verdict.added)}"
