# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a plan is found in the API server's history, and that what came too early is noticed."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import RUN_LABEL

from integration.chronicle import MARK, Event, Span, disorder, find_spans
from integration.departures import Departure, otherwise
from testbed.api import Object

RUN = {RUN_LABEL: "kernel"}


def action(kind: str, name: str, *after: str, **more: Any) -> Object:
    """Of a node, or of what is in namespace `shop`. Its id is as short as can be."""
    place = "" if kind in ("cordon", "maintain", "uncordon") else "shop"
    reference = {"kind": "", "namespace": place, "name": name, "uid": more.pop("uid", name)}
    own = {"id": f"{kind} {name}", "kind": kind, "object": reference, "after": list(after), "node": "n1", "why": ""}
    return {**own, "from": "n1", "to": "n2", **more}


def event(kind: str, version: int, uid: str, *, deleted: bool = False, **parts: Any) -> Event:
    namespace = {} if kind == "Node" else {"namespace": "shop"}
    metadata = {"name": uid, **namespace, "uid": uid, **parts.pop("metadata", {}), "resourceVersion": str(version)}
    return Event(kind, {"metadata": metadata, "spec": {}, **parts}, deleted=deleted)


def node(version: int, *, cordoned: bool, marked: str = "") -> Event:
    metadata = {"annotations": {MARK: marked}} if marked else {}
    return event("Node", version, "n1", metadata=metadata, spec={"unschedulable": True} if cordoned else {})


def vmi(version: int, place: str, phase: str = "Running", uid: str = "web", owner: str = "", **more: Any) -> Event:
    owners = {"ownerReferences": [{"kind": owner, "uid": "owner"}]} if owner else {}
    status = {"nodeName": place, "phase": phase}
    return event("VirtualMachineInstance", version, uid, status=status, metadata={"name": "web", **owners}, **more)


def launcher(version: int, place: str, phase: str = "Running", *, deleted: bool = False) -> Event:
    owners = {"ownerReferences": [{"kind": "VirtualMachineInstance", "uid": "web"}]}
    return event(
        "Pod",
        version,
        f"pod-{place}",
        deleted=deleted,
        metadata=owners,
        spec={"nodeName": place},
        status={"phase": phase},
    )


def migration(version: int, phase: str, *, labels: dict[str, str] | None = None) -> Event:
    state = {"sourceNode": "n1", "targetNode": "n2"} if phase == "Succeeded" else None
    return event(
        "VirtualMachineInstanceMigration",
        version,
        "web-1",
        metadata={"labels": RUN if labels is None else labels},
        spec={"vmiName": "web"},
        status={"phase": phase, "migrationState": state},
    )


NODE = [
    node(1, cordoned=False),
    node(10, cordoned=True),
    node(30, cordoned=True, marked="kernel"),
    node(40, cordoned=False, marked="kernel"),
]
MIGRATED = [
    vmi(2, "n1"),
    launcher(3, "n1"),
    migration(12, "Pending"),
    launcher(13, "n2"),
    vmi(20, "n2"),
    migration(21, "Succeeded"),
    launcher(24, "n1", "Succeeded"),
    launcher(26, "n1", "Succeeded", deleted=True),
]


def test_a_node_is_cordoned_maintained_and_uncordoned() -> None:
    actions = [action(kind, "n1") for kind in ("cordon", "maintain", "uncordon")]
    assert find_spans(actions, NODE, "kernel", {}) == {
        "cordon n1": Span(10, 10),
        "maintain n1": Span(30, 30),
        "uncordon n1": Span(40, 40),
    }
    assert find_spans(actions, NODE[:1], "kernel", {}) == {}
    assert find_spans(actions[1:2], NODE, "other", {}) == {}


def test_a_migration_is_over_when_its_source_is_free() -> None:
    moved = [action("migrate", "web")]
    # However the watches of several kinds came in between each other.
    assert find_spans(moved, MIGRATED[::-1], "kernel", {}) == {"migrate web": Span(12, 24)}
    assert find_spans(moved, [e for e in MIGRATED if e.kind != "Pod"], "kernel", {}) == {"migrate web": Span(12, 20)}
    still_there = [each for each in MIGRATED if each.version < 24]
    assert find_spans(moved, still_there, "kernel", {}) == {}


@pytest.mark.parametrize(
    ("changes", "events"),
    [
        ({"to": "n3"}, MIGRATED),
        ({"from": "n0"}, MIGRATED),
        ({}, [*MIGRATED[:2], migration(12, "Succeeded", labels={}), *MIGRATED[3:5]]),
        ({}, [*MIGRATED[:3], migration(21, "Failed")]),
    ],
)
def test_another_migration_is_not_the_one_that_was_planned(changes: dict[str, str], events: list[Event]) -> None:
    assert find_spans([action("migrate", "web", **changes)], events, "kernel", {}) == {}


def test_what_ends_has_begun_to_when_it_was_asked_to() -> None:
    ending = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    events = [
        event("Pod", 5, "api", spec={"nodeName": "n1"}),
        event("Pod", 15, "api", metadata=ending),
        event("Pod", 18, "api", metadata=ending, deleted=True),
        vmi(4, "n1"),
        launcher(6, "n1"),
        vmi(16, "n1", deleted=True),
        launcher(19, "n1", deleted=True),
    ]
    actions = [action("evict", "api"), action("stop", "web"), action("evict", "stays")]
    departed = {"evict api": "api", "stop web": "web"}
    assert find_spans(actions, events, "kernel", departed) == {"evict api": Span(15, 18), "stop web": Span(16, 19)}


@pytest.mark.parametrize(("owner", "found"), [("VirtualMachine", {"start web": Span(50, 55)}), ("Other", {})])
def test_a_vm_starts_as_another_vmi_of_its_name(owner: str, found: dict[str, Span]) -> None:
    """A replica set has its VMIs made without anybody's doing."""
    events = [
        vmi(4, "n1", owner=owner),
        vmi(16, "n1", owner=owner, deleted=True),
        vmi(50, "", "Pending", uid="new", owner=owner),
        vmi(55, "n1", uid="new", owner=owner),
    ]
    actions = [action("start", "web", "cordon n1", "stop web")]
    assert find_spans(actions, events, "kernel", {"stop web": "web"}) == found
    assert find_spans(actions, events[:2], "kernel", {"stop web": "web"}) == {}


def test_who_does_not_wait_is_noticed() -> None:
    actions = [action("migrate", "b", "migrate a", "cordon n1", "unseen"), action("maintain", "n1", "migrate b")]
    spans = {"migrate a": Span(5, 9), "cordon n1": Span(2, 2), "migrate b": Span(10, 20), "maintain n1": Span(21, 21)}
    assert list(disorder(actions, spans)) == []
    early = {**spans, "migrate b": Span(8, 20)}
    assert list(disorder(actions, early)) == ["migrate b began with write 8, and migrate a ended with 9"]
    late = {**spans, "migrate b": Span(10, 21)}
    assert list(disorder(actions, late)) == ["maintain n1 began with write 21, and migrate b ended with 21"]


def test_who_leaves_otherwise_is_told_with_what_was_planned() -> None:
    actions = [
        action("evict", "api", object={"kind": "Pod", "namespace": "shop", "name": "api", "uid": "api"}),
        action("stop", "web", object={"kind": "VirtualMachineInstance", "namespace": "shop", "name": "web", "uid": ""}),
        action("evict", "stays", object={"kind": "Pod", "namespace": "shop", "name": "stays", "uid": "stays"}),
    ]
    found = [
        Departure("Pod", "shop", "api", "api", "n1"),
        Departure("VirtualMachineInstance", "shop", "web", "anew", "n3"),
        Departure("Pod", "shop", "stranger", "stranger", "n1"),
        Departure("Pod", "shop", "elsewhere", "elsewhere", "n9"),
    ]
    assert [(stray.title, stray.uid, stray.kind) for stray in otherwise(actions, found)] == [
        ("shop/web", "", "stop"),
        ("shop/stays", "stays", "evict"),
        ("shop/stranger", "stranger", ""),
    ]
