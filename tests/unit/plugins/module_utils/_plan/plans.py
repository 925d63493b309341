# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migratability import REFUSED
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    CAUSE,
    Action,
    ActionKind,
    Blocked,
    ObjectReference,
    Plan,
    PlannedCluster,
    PlannedFrom,
    Totals,
    Verdict,
    action_id,
)


def vm(name: str, uid: str = "") -> ObjectReference:
    return ObjectReference("VirtualMachineInstance", "shop", name, uid or f"uid-{name}")


def pod(name: str) -> ObjectReference:
    return ObjectReference("Pod", "shop", name, f"uid-{name}")


def action(
    kind: ActionKind, reference: ObjectReference, source: str, target: str | None = None, *after: Action, batch: int = 1
) -> Action:
    return Action(
        id=action_id(batch, kind, reference),
        kind=kind,
        batch=batch,
        node=source,
        object=reference,
        source=source,
        target=target,
        selector={"kubernetes.io/hostname": target} if target and kind is ActionKind.MIGRATE else {},
        after=tuple(other.id for other in after),
        seconds=6,
        why="Of 3 nodes that fit it is the best.",
    )


def refused(interruption: Action) -> Action:
    """Of a VM of which KubeVirt said, when it was planned, that it cannot be migrated."""
    return replace(interruption, why=f"It is shut down.{CAUSE}{REFUSED} because a disk is its node's.")


def plan(*actions: Action, blocked: tuple[Blocked, ...] = (), verdict: Verdict = Verdict.FEASIBLE) -> Plan:
    """Its batches are as the actions say; a node alone in each where they say nothing."""
    numbers = sorted({entry.batch for entry in actions}) or [1]
    batches = [
        tuple(dict.fromkeys(entry.node for entry in actions if entry.batch == number)) or ("n1",) for number in numbers
    ]
    return Plan(
        run="patch",
        cluster=PlannedCluster("uid-of-cluster", "v1.36.3", "v1.8.4"),
        snapshot=PlannedFrom("abc", "2026-11-22T02:00:00Z"),
        options={"policies": []},
        verdict=verdict,
        batches=tuple(batches),
        actions=actions,
        blocked=blocked,
        totals=Totals(migrations=len(actions), batch_seconds=(6,) * len(batches)),
    )


_NAMES = st.text("abcdefgh-0123456789", min_size=1, max_size=8)
_NODES = st.sampled_from(["n1", "n2", "n3"])


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Any plans that do not contradict themselves."""
    actions: list[Action] = []
    for name in draw(st.lists(_NAMES, unique=True, max_size=6)):
        kind = draw(st.sampled_from([ActionKind.MIGRATE, ActionKind.EVICT, ActionKind.STOP, ActionKind.RESTART]))
        after = draw(st.lists(st.sampled_from(actions), unique_by=lambda entry: entry.id)) if actions else []
        reference = draw(st.sampled_from([vm, pod]))(name)
        actions.append(action(kind, reference, draw(_NODES), draw(st.none() | _NODES), *after))
    nodes = st.sampled_from([entry.node for entry in actions] or ["n1"])
    entries = st.builds(Blocked, st.builds(vm, _NAMES), nodes, st.lists(st.text()).map(tuple), st.booleans())
    blocked = tuple(draw(st.lists(entries, max_size=2)))
    return plan(*actions, blocked=blocked, verdict=draw(st.sampled_from(Verdict)))
