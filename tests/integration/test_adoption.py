# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What KubeVirt makes of a VMI that has a VM's name and is nobody's. What stops and starts VMs goes by it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from integration.clusters import KUBEVIRT
from integration.draining import TIMEOUT, Yard
from testbed.api import Object, resource_path
from testbed.waiting import wait_for

NODES = ("adopting-0",)
(NODE,) = NODES
# So long nothing else may happen; a VMI that its VM ends is told so within a second.
STEADY = 3.0


@pytest.fixture(autouse=True)
def emptied(yard: Yard) -> Iterator[None]:
    with yard.emptied_afterwards():
        yield


def is_left_behind(yard: Yard) -> Object:
    """By a VM that was deleted without it."""
    yard.start_vm("pet", NODE, run_strategy="Always")
    path = resource_path(KUBEVIRT, "virtualmachines", yard.namespace)
    yard.testbed.api.delete(f"{path}/pet", propagationPolicy="Orphan")
    wait_for("the end of the VM", lambda: not yard.testbed.api.items(path), TIMEOUT)
    wait_for("the VMI to be nobody's", lambda: "ownerReferences" not in yard.vmi("pet")["metadata"], TIMEOUT)
    return yard.vmi("pet")


def is_made_by_hand(yard: Yard) -> Object:
    return yard.start_vm("pet", NODE)


def is_adopted(yard: Yard) -> bool:
    owners = yard.vmi("pet")["metadata"].get("ownerReferences", [])
    return [owner["uid"] for owner in owners] == [yard.vm("pet")["metadata"]["uid"]]


@pytest.mark.parametrize(
    ("comes", "strategy"),
    [
        (is_left_behind, "Always"),
        (is_left_behind, "Manual"),
        (is_made_by_hand, "Always"),
        (is_made_by_hand, "Manual"),
        (is_made_by_hand, "Halted"),
    ],
)
def test_a_vmi_that_is_nobodys_is_its_vms_own_and_runs_on(
    yard: Yard, comes: Callable[[Yard], Object], strategy: str
) -> None:
    """Of one by hand a VM that is off knows nothing to do: no revision of a VM stands in it."""
    vmi = comes(yard)
    yard.make_vm("pet", strategy, vmi["spec"])
    wait_for("its VM to make it its own", lambda: is_adopted(yard), TIMEOUT)
    until = time.monotonic() + STEADY
    while time.monotonic() < until:
        found = yard.vmi("pet")["metadata"]
        assert (found["uid"], "deletionTimestamp" in found) == (vmi["metadata"]["uid"], False)


def test_a_vm_that_is_off_ends_what_a_vm_of_its_name_has_left_behind(yard: Yard) -> None:
    vmi = is_left_behind(yard)
    yard.make_vm("pet", "Halted", vmi["spec"])
    wait_for("the end of the VMI", lambda: not yard.exists("pet"), TIMEOUT)
