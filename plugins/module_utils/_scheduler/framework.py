# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the filters for a pod over all nodes. Follows pkg/scheduler/schedule_one.go and framework/runtime/framework.go.

All nodes are looked at, as if percentageOfNodesToScore were 100: which nodes kube-scheduler samples cannot be known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import BoolArray, IntArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import (
    Failure,
    FilterPlugin,
    PluginError,
    Prepared,
    Rejection,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.fit_error import (
    NO_NODES,
    fit_error_message,
    rejection_message,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which nodes a pod fits, and why it does not fit the others.

    `names`: all nodes. `failures`: of the first plugin that each node failed. `rejection`: the reason that stands for
    all nodes, if the pod was rejected before they were looked at.
    """

    names: tuple[str, ...]
    fits: BoolArray
    failures: tuple[Failure, ...]
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
            return NO_NODES
        if self.rejection is not None:
            return rejection_message(len(self.names), self.rejection)
        return "" if self.fits.any() else fit_error_message(len(self.names), self.failures)

    def reasons(self) -> dict[str, list[str]]:
        """For each node that does not fit, its reasons in the order of the alphabet."""
        found: dict[str, list[str]] = {self.names[node]: [] for node in np.flatnonzero(~self.fits)}
        for failure in sorted(self.failures, key=lambda failure: failure.reason):
            for node in np.flatnonzero(failure.nodes):
                found[self.names[node]].append(failure.reason)
        return found


def evaluate(pod: Pod, state: ClusterState, plugins: Sequence[FilterPlugin]) -> Verdict:
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
    failures: list[Failure] = []
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
    return Verdict(state.nodes.names, fits, tuple(failures))


def _rejected(state: ClusterState, reason: str) -> Verdict:
    return Verdict(state.nodes.names, state.nodes.none(), (Failure(state.nodes.all(), reason),), reason)


def _run(active: Sequence[tuple[FilterPlugin, Prepared]], state: ClusterState, asked: BoolArray) -> list[Failure]:
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


def _raise_fatal(failures: Sequence[Failure]) -> None:
    for failure in failures:
        if failure.fatal and failure.nodes.any():
            raise PluginError(failure.reason)


def _left_out(active: Sequence[tuple[FilterPlugin, Prepared]], state: ClusterState) -> list[Failure]:
    """Nodes that are not looked at, as plugins know beforehand which ones can be right."""
    limits = {plugin.name: prepared.only for plugin, prepared in active if prepared.only is not None}
    if not limits:
        return []
    allowed = state.nodes.named(frozenset.intersection(*limits.values()))
    return [Failure(~allowed, f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(limits))}]")]


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
) -> list[Failure]:
    """The failures of a node as if the pods promised to it were there.

    Plugins that had nothing to say are not asked again.
    """
    with state.keeping_promises(promised, node):
        prepared = [(plugin, plugin.prepare(pod, state)) for plugin in plugins]
        active = [(plugin, found) for plugin, found in prepared if isinstance(found, Prepared)]
        return _run(active, state, state.nodes.named([node]))
