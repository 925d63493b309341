# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the filters for a pod over all nodes, and the scores over those that fit.

Follows pkg/scheduler/schedule_one.go, framework/runtime/framework.go, and for the words of a pod that fits nowhere
FitError in framework/types.go.

All nodes are looked at, as if percentageOfNodesToScore were 100: which nodes kube-scheduler samples cannot be known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import BoolArray, IntArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import (
    FilterFailure,
    FilterPlugin,
    PluginError,
    Prepared,
    Rejection,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Scorers
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState

_NO_NODES = "no nodes available to schedule pods"


@dataclass(frozen=True, slots=True)
class FilterVerdict:
    """Which nodes a pod fits, and why it does not fit the others.

    `names`: all nodes. `failures`: of the first plugin that each node failed. `rejection`: the reason that stands for
    all nodes, if the pod was rejected before they were looked at.
    """

    names: tuple[str, ...]
    fits: BoolArray
    failures: tuple[FilterFailure, ...]
    rejection: str | None = None

    @property
    def feasible(self) -> IntArray:
        """Numbers of the nodes that fit."""
        result: IntArray = np.flatnonzero(self.fits)
        return result

    @property
    def message(self) -> str:
        """What kube-scheduler says if no node fits, without its words on preemption; empty if one does."""
        if not self.names:
            return _NO_NODES
        if self.rejection is not None:
            return _rejection_message(len(self.names), self.rejection)
        return "" if self.fits.any() else _fit_error_message(len(self.names), self.failures)

    def reasons_of(self, node: int) -> list[str]:
        """Of one node, given by its number, if it does not fit, in the order of the alphabet."""
        if self.rejection is not None:
            return [self.rejection]
        return sorted(failure.reason for failure in self.failures if failure.nodes[node])

    def reasons(self) -> dict[str, list[str]]:
        """For each node that does not fit, its reasons in the order of the alphabet."""
        found: dict[str, list[str]] = {self.names[node]: [] for node in np.flatnonzero(~self.fits)}
        for failure in sorted(self.failures, key=lambda failure: failure.reason):
            for node in np.flatnonzero(failure.nodes):
                found[self.names[node]].append(failure.reason)
        return found


def _rejection_message(nodes: int, reason: str) -> str:
    return f"0/{nodes} nodes are available: {reason}."


def _fit_error_message(nodes: int, failures: Sequence[FilterFailure]) -> str:
    """How many nodes fail for each reason, sorted as text: "10 …" comes before "2 …"."""
    counts: Counter[str] = Counter()
    for failure in failures:
        counts[failure.reason] += int(failure.nodes.sum())
    histogram = sorted(f"{count} {reason}" for reason, count in counts.items() if count)
    return f"0/{nodes} nodes are available:{' ' if histogram else ''}{', '.join(histogram)}{'.' if histogram else ''}"


def evaluate(pod: Pod, state: ClusterState, plugins: Sequence[FilterPlugin]) -> FilterVerdict:
    """The verdict on a pod. Scheduling gates are not looked at; the state is the same after it as before.

    Raises `PluginError`.
    """
    active: list[tuple[FilterPlugin, Prepared]] = []
    for plugin in plugins:
        prepared = plugin.prepare(pod, state)
        if isinstance(prepared, Rejection):
            return _rejected(state, prepared.reason)
        if prepared is not None:
            active.append((plugin, prepared))
    asking = [plugin for plugin, _prepared in active]
    failures: list[FilterFailure] = []
    left = state.nodes.all()
    for node, promised in _promises(pod, state):
        failures += _run_with(promised, node, pod, state, asking)
    for failure in failures:
        # Refused beside the promised pods, a node is not asked again without them, whatever it would stumble over then.
        left &= ~failure.nodes
    failures += _run(active, state, left)
    fits = state.nodes.all()
    for failure in failures:
        fits &= ~failure.nodes
    return FilterVerdict(state.nodes.names, fits, tuple(failures))


def _rejected(state: ClusterState, reason: str) -> FilterVerdict:
    return FilterVerdict(state.nodes.names, state.nodes.none(), (FilterFailure(state.nodes.all(), reason),), reason)


def _run(active: Sequence[tuple[FilterPlugin, Prepared]], state: ClusterState, asked: BoolArray) -> list[FilterFailure]:
    """The failures of each of the nodes asked about in the first plugin that it fails. Raises `PluginError`."""
    failures = [replace(failure, nodes=failure.nodes & asked) for failure in _left_out(active, state)]
    left = asked
    for failure in failures:
        left = left & ~failure.nodes
    for _plugin, prepared in active:
        if not left.any():
            break
        found = [replace(failure, nodes=failure.nodes & left) for failure in prepared.failures()]
        _raise_fatal(found)
        failures += [failure for failure in found if failure.nodes.any()]
        for failure in found:
            left = left & ~failure.nodes
    return failures


def _raise_fatal(failures: Sequence[FilterFailure]) -> None:
    for failure in failures:
        if failure.fatal and failure.nodes.any():
            raise PluginError(failure.reason)


def _left_out(active: Sequence[tuple[FilterPlugin, Prepared]], state: ClusterState) -> list[FilterFailure]:
    """Nodes that are not looked at, as plugins know beforehand which ones can be right."""
    limits = {plugin.name: prepared.only for plugin, prepared in active if prepared.only is not None}
    if not limits:
        return []
    allowed = state.nodes.named(frozenset.intersection(*limits.values()))
    return [FilterFailure(~allowed, f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(limits))}]")]


def _promises(pod: Pod, state: ClusterState) -> list[tuple[str, list[Pod]]]:
    """Nodes promised to other pods that are as important as this one or more, with those pods."""
    promises = []
    for node, nominated in state.nominated.items():
        others = [
            other for other in nominated if other.priority >= pod.priority and other.occupant.uid != pod.occupant.uid
        ]
        if others and node in state.nodes.index:
            promises.append((node, others))
    return promises


def _run_with(
    promised: Sequence[Pod], node: str, pod: Pod, state: ClusterState, plugins: Sequence[FilterPlugin]
) -> list[FilterFailure]:
    """The failures of a node as if the pods promised to it were there.

    Plugins that had nothing to say are not asked again.
    """
    with state.keeping_promises(promised, node):
        prepared = [(plugin, plugin.prepare(pod, state)) for plugin in plugins]
        active = [(plugin, found) for plugin, found in prepared if isinstance(found, Prepared)]
        return _run(active, state, state.nodes.named([node]))


def total_scores(pod: Pod, state: ClusterState, nodes: IntArray, scorers: Scorers) -> IntArray:
    """The weighted sum of all scores for the feasible nodes of these numbers; 1 for each without any scorer.

    Raises `PluginError`.
    """
    if not scorers or not len(nodes):
        return np.ones(len(nodes), dtype=np.int64)
    total = np.zeros(len(nodes), dtype=np.int64)
    for weight, scorer in scorers:
        points = scorer.score(pod, state, nodes)
        if points is not None:
            total += weight * points
    return total
