# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring pods and VMs back to where their soft rules want them: lists of a cluster in, a plan out.

Who moves, with those who have to follow, is found by improvement.py. The rest is the drain's: mover.py, board.py,
ways.py, waves.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import Surroundings, surroundings
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import (
    title,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.drained_pod import needs
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    POD,
    VMI,
    JsonObject,
    Lists,
    Object,
    controller,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import pod as parsed
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.replacement import is_ready
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Snapshot
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    Action,
    ActionKind,
    Plan,
    PlannedCluster,
    PlannedFrom,
    action_id,
    plan_of,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.actions import reference_of, tied
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.assumptions import assumptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.board import Board
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.improvement import Change, Improvement
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.mover import Mover, pin
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.pace import pace
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.residents import residents
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.waves import Caps, pack
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.ways import eviction, migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState, parsed_cluster


@dataclass(frozen=True, slots=True)
class RebalancingMove:
    """An ordinary pod that is evicted, or a VMI that is live-migrated.

    `target_node`: for a pod, where its replacement will land. `gain`: points by which its soft rules are met better;
    of those who only follow others, it may be negative. `why`: a sentence.
    """

    kind: str
    namespace: str
    name: str
    source_node: str
    target_node: str
    wave: int
    gain: int
    why: str


@dataclass(frozen=True, slots=True)
class RebalancingPlan:
    """`plan`: what is carried out. `moves`: the same for people, in its order, with what each gains.

    message: the plan in a sentence.
    """

    plan: Plan
    moves: tuple[RebalancingMove, ...]
    message: str

    def to_json(self) -> JsonObject:
        return {"moves": [asdict(move) for move in self.moves], "message": self.message}


def plan_rebalance(
    snapshot: Snapshot, run: str = "", *, max_moves: int, profile: Profile = Profile.LOW_NODE_UTILIZATION
) -> RebalancingPlan:
    """Moves that are legal in their order, of which each betters its own rules or follows one that does.

    run: its name, empty outside a run. Only what can be moved without downtime moves: VMs that can be live-migrated,
    and pods that their controller makes anew and has another ready one of, that keep no data of their own, do not end
    by themselves, and whose disruption budgets allow it.
    Greedy and bounded: it need not be the best plan. Raises `SelectorError`, `QuantityError`, `MissingLibrary`.
    """
    cluster = snapshot.once(surroundings)
    pods = {title(pod): pod for pod in snapshot.lists.get("pods") or ()}
    actions, moves = list[Action](), list[RebalancingMove]()
    span, wave = 0, list[Action]()
    waves, assumed, is_cut = _waves(snapshot, cluster, max_moves, profile)
    for number, changes in enumerate(waves, start=1):
        # Who waits for the wave before waits by that for all before it.
        after = tuple(action.id for action in wave)
        wave = [_action(change, cluster, pods, after, assumed.get(change.step.mover.id, ())) for change in changes]
        actions += wave
        moves += [_move(change, number) for change in changes]
        span += max(action.seconds or 0 for action in wave)
    plan = plan_of(actions)
    found = replace(
        plan,
        run=run,
        cluster=PlannedCluster.of(snapshot.header),
        snapshot=PlannedFrom.of(snapshot.header),
        options={"max_moves": max_moves, "profile": profile.value},
        totals=replace(plan.totals, seconds=span),
    )
    return RebalancingPlan(found, tuple(moves), _message(moves, max_moves, is_cut=is_cut))


def _waves(
    snapshot: Snapshot, cluster: Surroundings, max_moves: int, profile: Profile
) -> tuple[list[list[Change]], dict[str, tuple[str, ...]], bool]:
    """What moves together, and by ids of movers what is taken for granted of the nodes that the scheduler chooses.

    And whether more would move if more might.
    """
    lists, state = snapshot.lists, snapshot.once(parsed_cluster).state()
    movers = sorted(_movers(lists, cluster, state), key=lambda mover: (mover.chosen, mover.key))
    board = Board(state, frozenset())
    improvement = Improvement(board, movers, profile)
    changes = improvement.find(max_moves)
    board.reset(movers)
    waves = pack(board, [change.step for change in changes], Caps.of(cluster.configuration.migrations), profile)
    steps = {step.mover.id: step for wave in waves for step in wave}
    by_id = {change.step.mover.id: replace(change, step=steps[change.step.mover.id]) for change in changes}
    found = ([by_id[step.mover.id] for step in wave] for wave in waves)
    pods = lists.get("pods") or ()
    owners, serving = {title(pod): _owner(pod) for pod in pods}, _serving(pods)
    parts = [part for wave in found for part in _staggered(wave, owners, serving)]
    order = [[change.step.mover.id for change in part] for part in parts]
    waits = {name: before for before, names in zip([[], *order], order, strict=False) for name in names}
    assumed = assumptions(board, [steps[name] for names in order for name in names], waits, profile)
    return parts, assumed, improvement.is_cut or len(changes) == max_moves


def _staggered(wave: Sequence[Change], owners: Mapping[str, str], serving: Mapping[str, int]) -> Iterator[list[Change]]:
    """In parts, of which each leaves a pod to serve for every controller.

    owners: uids of controllers by pods' namespace/name. serving: as of `_serving`, a `Counter`.
    """
    rest = wave
    while rest:
        going, part, later = Counter[str](), list[Change](), list[Change]()
        for change in rest:
            owner = "" if change.step.mover.chosen else owners[change.step.mover.id]
            waits = bool(owner) and 0 < going[owner] >= serving[owner] - 1
            going[owner] += not waits
            (later if waits else part).append(change)
        yield part
        rest = later


def _action(
    change: Change,
    cluster: Surroundings,
    pods: Mapping[str, Object],
    after: tuple[str, ...],
    assumed: tuple[str, ...],
) -> Action:
    mover, node = change.step.mover, change.step.node
    vmi = cluster.workloads.vmi(mover.key) if mover.chosen else None
    reference = reference_of(POD, pods[mover.id]) if vmi is None else reference_of(VMI, vmi)
    kind = ActionKind.EVICT if vmi is None else ActionKind.MIGRATE
    known = None if node is None else cluster.workloads.node(node)
    return Action(
        id=action_id(1, kind, reference),
        kind=kind,
        batch=1,
        node=mover.source,
        object=reference,
        source=mover.source,
        target=node,
        selector=pin(known["metadata"]["labels"]) if vmi is not None and known is not None else {},
        after=after,
        seconds=None if vmi is None else pace(vmi, cluster).seconds,
        why=change.why,
        assumed=(*(tied(node, change.step.choices) if vmi is None else ()), *assumed),
    )


def _movers(lists: Lists, cluster: Surroundings, state: ClusterState) -> Iterator[Mover]:
    """All that has rules which could ask for a move; who cannot be moved without downtime may go nowhere."""
    nodes = lists.get("nodes") or ()
    shunned = {node["metadata"]["name"] for node in nodes if _is_shunned(node)}
    known = {node["metadata"]["name"] for node in nodes}
    bound = [pod for pod in lists.get("pods") or () if pod["spec"].get("nodeName") in known]
    found = residents(bound, cluster.workloads)
    for machine in found.machines:
        if machine.unknown or _has_rules(machine.vmi) or machine.node in shunned:
            way = migration(machine, cluster, state, None)
            yield from [way] if isinstance(way, Mover) else _anchor(machine.source_pod, machine.node, state)
    serving = _serving(bound)
    for resident in found.pods:
        pod = resident.pod
        if title(pod) in state and (_has_rules(pod) or resident.node in shunned):
            # Of a single one there is none until its replacement is ready.
            spared = resident.stays or any(needs(pod)) or not is_ready(pod) or serving[_owner(pod)] == 1
            free = not (spared or _is_to_end(pod)) and cluster.budgets.refusal(pod) is None
            yield from [eviction(resident, state)] if free else _anchor(pod, resident.node, state)


def _anchor(pod: Object, node: str, state: ClusterState) -> Iterator[Mover]:
    """A pod that stays, and with it those beside which it has to be; no mover if there are none."""
    occupant = state.placement(title(pod)).occupant
    if occupant.affinity.required:
        spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
        newcomer = parsed({**pod, "spec": spec})
        yield Mover(title(pod), node, leaving=(occupant,), newcomer=newcomer, chosen=True, only=frozenset())


def _has_rules(item: Object) -> bool:
    """Whether a pod or VMI asks for something that depends on the node."""
    return bool(item["spec"].get("affinity") or item["spec"].get("topologySpreadConstraints"))


def _is_to_end(pod: Object) -> bool:
    """Whether it does some work and ends, which would begin anew, as that of a Job; what serves is always restarted."""
    return (pod["spec"].get("restartPolicy") or "Always") != "Always"


def _is_shunned(node: Object) -> bool:
    taints = (node.get("spec") or {}).get("taints") or ()
    return any(taint["effect"] == "PreferNoSchedule" for taint in taints)


def _serving(pods: Iterable[Object]) -> Counter[str]:
    """How many pods of each controller serve, by its uid."""
    return Counter(_owner(pod) for pod in pods if is_ready(pod))


def _owner(pod: Object) -> str:
    """The uid of its controller, empty if there is none."""
    return str((controller(pod) or {}).get("uid") or "")


def _move(change: Change, wave: int) -> RebalancingMove:
    mover = change.step.mover
    namespace, _slash, name = mover.key.partition("/")
    return RebalancingMove(
        kind=VMI if mover.chosen else POD,
        namespace=namespace,
        name=name,
        source_node=mover.source,
        target_node=change.step.node or "",
        wave=wave,
        gain=change.gain,
        why=change.why,
    )


def _message(moves: Sequence[RebalancingMove], max_moves: int, *, is_cut: bool) -> str:
    if not moves:
        if is_cut:
            return f"Nothing moves: who gains by it has to move with others, and these are more than {max_moves}."
        return "Every pod and virtual machine that can be moved is where its rules want it."
    more = "; as no more moves are allowed, there may be more to do" if is_cut else ""
    machines = sum(move.kind == VMI for move in moves)
    migrate = _counted(machines, "VM migrates", "VMs migrate")
    evicted = _counted(len(moves) - machines, "pod is evicted", "pods are evicted")
    return f"{', '.join([*migrate, *evicted])}{more}."


def _counted(number: int, one: str, several: str) -> list[str]:
    return [f"{number} {one if number == 1 else several}"] if number else []
