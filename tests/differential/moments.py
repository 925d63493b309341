# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The moments at which the checker asks its scheduler while it carries plans out, as cases that both sides judge.

At such a moment others are in flight, have left, or have come elsewhere, as the order has it that is drawn among those
that `after` allows.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Lists, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import PLACED
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile

from checker.cluster import CarriedCluster
from checker.landing import Landing, Newcomer
from checker.order import ByLot, DrainedTogether, MuchAtOnce, Order, by_points
from checker.replay import Replay
from differential import ours, upstream
from differential.compare import differences

Json = dict[str, Any]
Planned = Callable[[int], tuple[Lists, Plan]]
# Beside these a case has what only KubeVirt knows.
_LISTS = ("nodes", "pods", "pvcs", "pvs")


@dataclass(frozen=True)
class Moment:
    """A pod is asked about. `node`: where the checker has it come; None: to it no node can take the pod.

    pinned: whether it is a migration's, for which there is one node. chosen: whether the scheduler takes the node by
    points, which it does unless the pod is moved to where the plan has it, as a run would mend that instead.
    """

    title: str
    case: Json
    node: str | None
    pinned: bool
    chosen: bool


@dataclass(frozen=True)
class Carried:
    """A plan that was carried out. astray: ids of those that came elsewhere than it says without a reservation."""

    moments: list[Moment]
    astray: list[str]


def carried(seed: int, orders: int, planned: Planned) -> Carried:
    """The plan of a cluster in some orders: the first with as much at once as may be, others by lot.

    Whom the scheduler places comes to any of the nodes with the most points, by the collection's scores.
    """
    lists, plan = planned(seed)
    sure = [action for action in plan.actions if action.kind in PLACED and action.target and not action.assumed]
    found = Carried([], [])
    for number in range(orders):
        lot, title = random.Random(number).randrange, f"cluster {seed}, order {number}"  # noqa: S311 - repeatable by design
        order: Order = DrainedTogether(ByLot(lot) if number else MuchAtOnce())
        replay = Replay(lists, plan, order, choice=by_points(lot, Profile.LOW_NODE_UTILIZATION))
        with _noticed(title, found.moments):
            replay.run()
        elsewhere = (action for action in sure if replay.came.get(action.id, action.target) != action.target)
        found.astray.extend(f"{title}: {action.id}" for action in elsewhere)
    return found


def disagreements(moments: Iterable[Moment]) -> Iterator[str]:
    """A line for each moment at which kube-scheduler says otherwise than the checker, or than the collection."""
    found = list(moments)
    cases = list(upstream.store([moment.case for moment in found]))
    for moment, case, (theirs,) in zip(found, cases, upstream.judge(cases), strict=True):
        (mine,) = ours.answers(case)
        problems = [*_misplaced(moment, theirs), *differences(theirs, mine)]
        if problems:
            yield f"{moment.title}, pod {case['asked'][0]['metadata']['name']}: {'; '.join(problems)}"


def _misplaced(moment: Moment, theirs: Json) -> Iterator[str]:
    fits, scores = theirs["fit"], theirs.get("scores") or {}
    if moment.node is None:
        if fits:
            yield f"{', '.join(fits)} can take it, and to the checker no node can"
    elif moment.node not in fits:
        yield f"it comes to {moment.node}, which cannot take it: {theirs['unfit'].get(moment.node)}"
    elif moment.pinned and len(fits) > 1:
        yield f"it is to go to {moment.node}, and may go to {', '.join(fits)}"
    elif moment.chosen and scores.get(moment.node) != max(scores.values(), default=None):
        yield f"it comes to {moment.node}, which has not the most points: {scores}"


@contextmanager
def _noticed(title: str, moments: list[Moment]) -> Iterator[None]:
    """Note each pod that comes to a node, and who waits as none can take it, once for each state of the cluster."""
    put, place = CarriedCluster.put, Landing.place
    waiting, placed = set[tuple[str, int]](), list[str]()

    def note(cluster: CarriedCluster, raw: Object, node: str | None) -> None:
        name = str(raw["metadata"]["name"])
        lists = cluster.lists()
        case = {"lists": {name: lists[name] for name in _LISTS if name in lists}, "asked": [raw], "scores": True}
        moments.append(Moment(title, _valid(case), node, pinned=name.endswith("/target"), chosen=name in placed))

    def putting(cluster: CarriedCluster, raw: Object, pod: Pod, node: str) -> None:
        # A migration is carried out also where it is not legal, as when others have come elsewhere than planned.
        note(cluster, raw, node if node in cluster.fits(pod) else None)
        put(cluster, raw, pod, node)

    def placing(landing: Landing, newcomer: Newcomer, *, parting: bool) -> bool:
        placed.append(newcomer.raw["metadata"]["name"])
        found, cluster = place(landing, newcomer, parting=parting), landing._cluster
        placed.pop()
        if not found and (newcomer.action.id, cluster.version) not in waiting:
            waiting.add((newcomer.action.id, cluster.version))
            note(cluster, newcomer.raw, None)
        return found

    with mock.patch.object(CarriedCluster, "put", putting), mock.patch.object(Landing, "place", placing):
        yield


def _valid(case: Json) -> Json:
    """As an API server would take it: with other names than those that no object can have, and with images."""
    text = json.dumps(case)
    for part in ("target", "restart", "replacement"):
        text = text.replace(f"/{part}", f"-{part}")
    found: Json = json.loads(text)
    for pod in (*found["lists"]["pods"], *found["asked"]):
        for container in _containers(pod):
            container.setdefault("image", "image")
    return found


def _containers(pod: Json) -> Iterator[Json]:
    for name in ("initContainers", "containers"):
        yield from pod["spec"].get(name) or ()
