# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where kube-scheduler would put VMIs that have no node yet, one after the other, in the cluster as it is now.

Of several nodes that are equally good kube-scheduler takes any; here it is the first. In a tight cluster that choice
can decide where the next one goes, so what is told is one course of events, not the only one. This is the only file of
the package that needs NumPy.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import CREATED_BY
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.pod import (
    LauncherError,
    launcher_pod,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespaces
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.next_pod import start_refusals
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import title
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import REQUIRED, Lists, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod, pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState, cluster_state
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.verdict import explain
from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.outlook import Outlook, Place

_CLUSTER_VOLUMES = ("persistentVolumeClaim", "dataVolume", "ephemeral")


def with_places(view: Outlook, fresh: Object, name: str, lists: Lists) -> Outlook:
    """The outlook with the scheduler's word on what is to come. name: of the replica set.

    Raises `SelectorError`, `QuantityError`, `MissingLibrary`.
    """
    leaving = {vmi["metadata"]["uid"] for vmi in view.outdated or ()}
    missing, replaced = view.missing, min(len(leaving), view.spec["replicas"])
    new = copies(fresh, name, missing + replaced)
    expected = places(lists, [*view.waiting, *new[:missing]])
    successors = places(lists, new, without=leaving)[missing:] if replaced else []
    return replace(view, expected=expected, successors=successors)


def places(lists: Lists, vmis: Sequence[Object], *, without: Collection[str] = ()) -> list[Place]:
    """One for each VMI; one whose pod has got its node meanwhile stays there.

    `without`: uids of VMIs whose pods are taken away first.

    Raises `SelectorError`, `QuantityError`, `MissingLibrary`.
    """
    staying = [raw for raw in lists["pods"] if _owner(raw) not in without]
    state = cluster_state({**lists, "pods": staying})
    settings, namespaces = configuration(lists), Namespaces(lists)
    placed = {_owner(raw): raw["spec"].get("nodeName") or "" for raw in staying}
    gone, come = [raw for raw in lists["pods"] if _owner(raw) in without], list[Object]()
    found = []
    for vmi in vmis:
        uid = vmi["metadata"]["uid"]
        if placed.get(uid):
            found.append(Place(placed[uid], ""))
            continue
        own = namespaces.of(vmi)
        try:
            new = launcher_pod(vmi, settings, own)
        except LauncherError as error:
            found.append(Place("", str(error)))
            continue
        if uid not in placed:
            if refusals := start_refusals(new, title(vmi), own, gone=gone, come=come):
                found.append(Place("", refusals[0]))
                continue
            come.append(new)
        found.append(_place(pod(new), state))
    return found


def _place(wanted: Pod, state: ClusterState) -> Place:
    """Puts the pod there."""
    answer = explain(wanted, state, scores=True)
    scores: Mapping[str, int] = answer.get("scores") or {}
    node = max(scores, key=lambda name: scores[name], default="")
    if node:
        state.add(wanted.occupant, node)
    return Place(node, answer.get("error") or answer["message"])


def _owner(raw_pod: Object) -> str:
    """The uid of the VMI whose pod it is; empty for other pods."""
    return (raw_pod["metadata"].get("labels") or {}).get(CREATED_BY) or ""


def copies(fresh: Object, name: str, count: int) -> list[Object]:
    """As many new VMIs as are to come of a replica set; `fresh` is one of them as the API server admits it."""
    return [
        {**fresh, "metadata": {**fresh["metadata"], "name": f"{name}-new-{index}", "uid": f"{name}-new-{index}"}}
        for index in range(1, count + 1)
    ]


def uses_storage(spec: Object) -> bool:
    """Whether a VMI of this spec has volumes of the cluster, which bind it to nodes."""
    return any(kind in volume for volume in spec.get("volumes") or () for kind in _CLUSTER_VOLUMES)


def unknown_topology(spec: Object, nodes: Sequence[Object]) -> Iterator[str]:
    """Sentences on keys that the spec's rules count by and no node carries."""
    known = sorted({key for node in nodes for key in node["metadata"].get("labels") or ()})
    for key in dict.fromkeys(_topology_keys(spec)):
        if known and key not in known:
            similar = difflib.get_close_matches(key, known, n=1)
            yield f"No node carries the label {key}, which a rule counts by" + (
                f"; is it {similar[0]}?" if similar else "."
            )


def _topology_keys(spec: Object) -> Iterator[str]:
    for side in ("podAffinity", "podAntiAffinity"):
        for term in ((spec.get("affinity") or {}).get(side) or {}).get(REQUIRED) or ():
            yield term["topologyKey"]
    for constraint in spec.get("topologySpreadConstraints") or ():
        yield constraint["topologyKey"]
