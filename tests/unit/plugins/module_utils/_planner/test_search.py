# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much the search for an order looks at."""

from __future__ import annotations

from collections import Counter

from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import plan_drain
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.search import MOST_ATTEMPTS

from unit.plugins.module_utils._planner.scene import Lists, Scene, node


def crowd(machines: int, places: int) -> Lists:
    """A node with VMs of a size, and room for so many of them elsewhere, one on each node."""
    scene = Scene(node("a", memory="64Gi"), *(node(f"b-{number}", memory="2Gi") for number in range(places)))
    for number in range(machines):
        scene.vm(f"vm-{number}", "a")
    return scene.lists


def test_repairs_are_made_only_as_far_as_they_are_tried(looks: Counter[str]) -> None:
    machines, places = 24, 12
    plan = plan_drain(crowd(machines, places), ["a"])
    assert (len(plan.moves), len(plan.stuck)) == (places, machines - places)
    # An attempt asks once for each VM, and again for who finds nothing; some more is asked to choose what to try.
    assert sum(looks.values()) < MOST_ATTEMPTS * 2 * machines


def test_what_succeeds_at_once_is_not_repaired(looks: Counter[str]) -> None:
    assert plan_drain(crowd(12, 12), ["a"]).feasible
    assert set(looks.values()) == {2}
