# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Migrations tried in the scheduler's model: which VMIs have nowhere to go, and what it is that stands against it.

A cause is found by leaving it out: if the target pod then fits a node, that was it. Causes are tried in an order in
which the more specific come first, and taints, which are there for others' sake, come last. Where no single one is
enough, all are left out: then it takes several of them, or there is no other node at all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import NoTargetPod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import (
    CPU_FEATURE,
    CPU_MODEL,
    CPU_VENDOR,
    CREATED_BY,
    HOST_MODEL_MIGRATION,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.migration_target import target_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespace, Namespaces
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import Workloads, title
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import LintedObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.workloads import Workload
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import affinity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migratability import is_live_migratable
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import HOSTNAME, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod, pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import FilterPlugin, PluginError
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.registry import FILTERS
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.framework import evaluate
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState

_CPU = (CPU_FEATURE, CPU_MODEL, CPU_VENDOR, HOST_MODEL_MIGRATION)
# Labels that no two VMIs share.
_OWN_LABELS = frozenset({CREATED_BY, "vm.kubevirt.io/name", "vmi.kubevirt.io/id"})


class Cause(Enum):
    """What keeps a VMI where it is, in the order in which it is looked for."""

    OWN_POD = "its own pod"
    CPU = "the CPU that the guest was started with"
    PARTNER = "required pod affinity"
    ROOM = "free resources"
    SPREAD = "topology spread constraints"
    NEIGHBOURS = "anti-affinity between pods"
    VOLUMES = "where its volumes can be used"
    SELECTION = "the node selector or node affinity"
    TAINTS = "taints that it does not tolerate"
    SEVERAL = "several of these together"
    NO_OTHER = "none of these: no other node is there for VMs like it"


@dataclass(frozen=True, slots=True)
class MigrationAttempt:
    """A migration that could begin: `source` is the running pod, on `source_node`, `target` the one to be made."""

    workload: Workload
    vmi: Object
    source: Object
    source_node: Object
    configuration: Configuration
    namespace: Namespace
    target: Pod

    @property
    def node(self) -> str:
        return str(self.source_node["metadata"]["name"])

    @property
    def title(self) -> str:
        return title(self.vmi)

    @property
    def source_key(self) -> str:
        return title(self.source)


@dataclass(frozen=True, slots=True)
class Trial:
    """An attempt that has nowhere to go. `message`: what kube-scheduler says of the target pod."""

    attempt: MigrationAttempt
    message: str
    cause: Cause


def stuck(attempts: Iterable[MigrationAttempt], state: ClusterState) -> Iterator[Trial]:
    """Those that no node has a place for."""
    free: dict[Hashable, bool] = {}
    for attempt in attempts:
        if not _surely_free(attempt, state, free):
            yield from _try(attempt, state)


def attempt(
    workload: Workload, vmi: Object, index: Workloads, configuration: Configuration, namespaces: Namespaces
) -> MigrationAttempt | None:
    """The migration of a VMI; None if it cannot begin now."""
    source = index.source_pod(vmi)
    running = (vmi.get("status") or {}).get("phase") == "Running"
    if source is None or not running or not is_live_migratable(vmi) or len(index.active_pods(vmi)) != 1:
        return None
    node = index.node(source["spec"].get("nodeName") or "")
    namespace = namespaces.of(vmi)
    target = None if node is None else target_pod(vmi, source, node, configuration, namespace)
    if node is None or target is None or isinstance(target, NoTargetPod):
        return None
    return MigrationAttempt(workload, vmi, source, node, configuration, namespace, pod(target))


def targeted(attempt: MigrationAttempt, vmi: Object) -> Object | None:
    """The target pod if the VMI were another than it is."""
    target = target_pod(vmi, attempt.source, attempt.source_node, attempt.configuration, attempt.namespace)
    return None if isinstance(target, NoTargetPod) else target


def _surely_free(attempt: MigrationAttempt, state: ClusterState, known: dict[Hashable, bool]) -> bool:
    """Whether a VMI like this fits two nodes or more, whichever it runs on. Answers are kept for VMIs that are alike.

    Only of pods that do not look at others can that be said for all of a kind at once.
    """
    target = attempt.target
    occupant = target.occupant
    own = [term for term in occupant.anti_affinity.required if not _is_kubevirts(term)]
    if own or occupant.affinity.required or target.spread or occupant.volumes.claims or occupant.ports:
        return False
    labels = frozenset((key, value) for key, value in occupant.labels.items() if key not in _OWN_LABELS)
    requests = frozenset(target.requests.items())
    kind = occupant.namespace, labels, target.node_affinity, target.tolerations, requests, target.priority
    if kind not in known:
        alone = replace(target, occupant=replace(occupant, anti_affinity=affinity.NONE))
        known[kind] = len(_fits(alone, state)) > 1
    return known[kind]


def _try(attempt: MigrationAttempt, state: ClusterState) -> Iterator[Trial]:
    try:
        verdict = evaluate(attempt.target, state, FILTERS)
    except PluginError:
        return
    if not verdict.fits.any():
        yield Trial(attempt, verdict.message, _cause(attempt, state))


def _cause(attempt: MigrationAttempt, state: ClusterState) -> Cause:
    def opens(without: Callable[[MigrationAttempt, ClusterState], Sequence[str]]) -> bool:
        return bool(set(without(attempt, state)) - {attempt.node})

    for cause, without in _WITHOUT.items():
        if opens(without):
            return cause
    return Cause.SEVERAL if opens(_without_any) else Cause.NO_OTHER


def _without_own_pod(attempt: MigrationAttempt, state: ClusterState) -> Sequence[str]:
    key = attempt.source_key
    if key not in state:
        return ()
    change = state.remove(key)
    try:
        return _fits(attempt.target, state)
    finally:
        state.undo(change)


def _without_cpu(attempt: MigrationAttempt, state: ClusterState) -> Sequence[str]:
    return _fits(_of_any_cpu(attempt.target), state)


def _of_any_cpu(target: Pod) -> Pod:
    wishes = target.node_affinity
    kept = tuple(requirement for requirement in wishes.selector if not requirement.key.startswith(_CPU))
    return replace(target, node_affinity=replace(wishes, selector=kept))


def _without_partner(attempt: MigrationAttempt, state: ClusterState) -> Sequence[str]:
    target = attempt.target
    return _fits(replace(target, occupant=replace(target.occupant, affinity=affinity.NONE)), state)


def _without_selection(attempt: MigrationAttempt, state: ClusterState) -> Sequence[str]:
    target = _unselected(attempt)
    return () if target is None else _fits(target, state)


def _unselected(attempt: MigrationAttempt) -> Pod | None:
    spec = attempt.vmi["spec"]
    others = {side: terms for side, terms in (spec.get("affinity") or {}).items() if side != "nodeAffinity"}
    target = targeted(attempt, {**attempt.vmi, "spec": {**spec, "nodeSelector": {}, "affinity": others}})
    return None if target is None else pod(target)


# What kube-scheduler's plugins stand for.
_PLUGINS: dict[Cause, frozenset[str]] = {
    Cause.ROOM: frozenset({"NodeResourcesFit"}),
    Cause.SPREAD: frozenset({"PodTopologySpread"}),
    Cause.NEIGHBOURS: frozenset({"InterPodAffinity"}),
    Cause.VOLUMES: frozenset({"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"}),
    Cause.TAINTS: frozenset({"TaintToleration"}),
}


def _without_plugins(cause: Cause) -> Callable[[MigrationAttempt, ClusterState], Sequence[str]]:
    plugins = _all_but([cause])
    return lambda attempt, state: _fits(attempt.target, state, plugins)


def _all_but(causes: Iterable[Cause]) -> tuple[FilterPlugin, ...]:
    left_out = frozenset[str]().union(*(_PLUGINS[cause] for cause in causes))
    return tuple(plugin for plugin in FILTERS if plugin.name not in left_out)


_WITHOUT: dict[Cause, Callable[[MigrationAttempt, ClusterState], Sequence[str]]] = {
    Cause.OWN_POD: _without_own_pod,
    Cause.CPU: _without_cpu,
    Cause.PARTNER: _without_partner,
    Cause.ROOM: _without_plugins(Cause.ROOM),
    Cause.SPREAD: _without_plugins(Cause.SPREAD),
    Cause.NEIGHBOURS: _without_plugins(Cause.NEIGHBOURS),
    Cause.VOLUMES: _without_plugins(Cause.VOLUMES),
    Cause.SELECTION: _without_selection,
    Cause.TAINTS: _without_plugins(Cause.TAINTS),
}


def _without_any(attempt: MigrationAttempt, state: ClusterState) -> Sequence[str]:
    """Own pod and partner are gone with the neighbours."""
    target = _unselected(attempt)
    return () if target is None else _fits(_of_any_cpu(target), state, _all_but(_PLUGINS))


def _fits(target: Pod, state: ClusterState, plugins: Sequence[FilterPlugin] = FILTERS) -> Sequence[str]:
    """Names of the nodes that fit; none where kube-scheduler would stumble."""
    try:
        return [state.nodes.names[number] for number in evaluate(target, state, plugins).feasible]
    except PluginError:
        return ()


def _is_kubevirts(term: affinity.AffinityTerm) -> bool:
    """Whether a term is the one that KubeVirt adds to keep the target pod off the source node."""
    return term.topology_key == HOSTNAME and {entry.key for entry in term.selector.requirements} == {CREATED_BY}


def by_workload(trials: Iterable[Trial]) -> list[list[Trial]]:
    """Trials of the same subject together, each list with at least one."""
    found: defaultdict[LintedObject, list[Trial]] = defaultdict(list)
    for trial in trials:
        found[trial.attempt.workload.subject].append(trial)
    return list(found.values())


def running(trials: Iterable[Trial]) -> tuple[str, ...]:
    """namespace/name of their VMIs, sorted."""
    return tuple(sorted(trial.attempt.title for trial in trials))


def stays_pending(trial: Trial) -> str:
    """What follows, with kube-scheduler's words, as the end of a sentence."""
    return f"a migration stays Pending ({trial.message.rstrip('.')})"
