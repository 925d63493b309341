# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where can this pod run, and why not elsewhere: plain lists in, plain data out."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Lists, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod, pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import PluginError
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.registry import FILTERS
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.framework import evaluate, total_scores
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import SCORERS, Profile
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState, cluster_state


def verdict(
    lists: Lists,
    raw_pod: Object,
    scores: bool = False,
    profile: str | Profile = Profile.LOW_NODE_UTILIZATION,
) -> JsonObject:
    """Shape: `{"fit": [names], "unfit": {name: [reasons]}, "message": text}`.

    `message` is empty when a node fits. `gated` names scheduling gates, if there are any; the rest is answered as if
    they were gone. `unevaluated` names what kube-scheduler looks at and this does not, if the pod uses it.
    `scores`: add the total score of each node that fits. `error`: what kube-scheduler itself stumbles over; it then
    places the pod nowhere. Raises `SelectorError`, `QuantityError`.
    """
    return explain(pod(raw_pod), cluster_state(lists), scores=scores, profile=Profile(profile))


def explain(
    pod: Pod, state: ClusterState, *, scores: bool = False, profile: Profile = Profile.LOW_NODE_UTILIZATION
) -> JsonObject:
    """The same for a parsed pod, in a state that is kept."""
    answer: JsonObject = {"fit": [], "unfit": {}, "message": ""}
    if pod.gates:
        answer["gated"] = list(pod.gates)
    if left_out := unevaluated(pod):
        answer["unevaluated"] = left_out
    try:
        found = evaluate(pod, state, FILTERS)
        fit = [state.nodes.names[node] for node in found.feasible]
        answer |= {"fit": fit, "unfit": found.reasons(), "message": found.message}
        if scores:
            totals = total_scores(pod, state, found.feasible, SCORERS[profile])
            answer["scores"] = {name: int(total) for name, total in zip(fit, totals, strict=True)}
    except PluginError as error:
        answer["error"] = str(error)
    return answer


def unevaluated(pod: Pod) -> list[str]:
    """What kube-scheduler looks at and verdicts do not, if the pod uses it."""
    return [f"ResourceClaim {name} of the pod (plugin DynamicResources)" for name in pod.claims]
