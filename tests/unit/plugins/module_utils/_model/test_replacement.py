# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many pods of a controller are to serve before what follows one of them may move."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.replacement import Replacement

OWNER = {"kind": "ReplicaSet", "name": "cache", "uid": "set", "controller": True}


def pod(name: str, *, ready: bool = True, going: bool = False, phase: str = "Running") -> Object:
    metadata: dict[str, Any] = {"name": name, "namespace": "shop", "uid": name, "ownerReferences": [OWNER]}
    if going:
        metadata["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    condition = {"type": "Ready", "status": str(ready)}
    return {"metadata": metadata, "spec": {}, "status": {"phase": phase, "conditions": [condition]}}


def of(name: str, *pods: Object, former: Sequence[str] = ()) -> Replacement:
    found = Replacement.of(next(each for each in pods if each["metadata"]["name"] == name), pods, former=former)
    assert found
    return found


@pytest.mark.parametrize(
    ("looks", "ready"),
    [
        ([["a", "b", "c"], ["a", "b"]], 2),  # it was told to have fewer
        ([["a", "b", "c"], ["a", "b", "c?"]], 3),  # c does not serve for a moment
        ([["a", "b"], ["a?", "b"]], 2),
        ([["a", "b", "c?", "d?"], ["a", "b", "c", "d?"], ["a", "b", "c?", "d"]], 4),  # two that come and go
        ([["a", "b"], ["a", "b", "c"], ["a", "b"]], 2),  # as an autoscaler has it
        ([["a", "b", "c"], ["a", "b", "d?"]], 3),  # somebody deletes c, and another one comes
        ([["a", "b"], ["a"], ["a", "b"]], 2),
    ],
)
def test_as_long_as_none_is_evicted_its_controller_says_how_many(looks: list[list[str]], ready: int) -> None:
    first, *later = [[pod(name[0], ready=len(name) == 1) for name in look] for look in looks]
    found = of("a", *first)
    for look in later:
        found.count_again(look, untouched=True)
    assert found.ready == ready


def test_who_has_failed_is_none_that_it_has() -> None:
    failed = pod("d", ready=False, phase="Failed")
    found = of("a", pod("a"), pod("b"), pod("c"), failed)
    found.count_again([pod("a"), pod("b"), failed], untouched=True)
    assert found.ready == 2


def test_who_is_ready_when_the_second_one_has_its_turn_counts_once() -> None:
    """One waits that was not ready at first, while the first one ends and its successor has yet to come."""
    first = of("a", pod("a"), pod("b"), pod("c", ready=False), former=["a", "b"])
    now = [pod("a", going=True), pod("b"), pod("c"), pod("d", ready=False)]
    first.take_over(of("b", *now, former=["a", "b"]))
    first.count_again(now, untouched=False)
    assert first.ready == 3
