# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the model looks at first."""

from __future__ import annotations

from simulation.world import LARGE, OURS, REPLICA_SET, VM, ZONES, Owner, World

# VMs, more of which make nothing else happen.
MOST = 9


def build(shape: bytes, batch: tuple[str, ...]) -> World:
    """shape: any bytes; zeros make the simplest cluster. After the first one each is a VM or a pod, or nothing."""
    world = World()
    for number, byte in enumerate(shape[1:]):
        if byte >> 3 & 7 == 7:
            node = _places(batch)[byte & 7]
            world.add_pod("uid-of-set", node, machine=False, tolerates=byte >> 6 == 1)
        elif len(world.vmis) < MOST:
            add(world, f"vm{number}", byte, batch)
    world.cordons.update(dict.fromkeys(batch, OURS))
    world.epochs.update(dict.fromkeys(batch, "1"))
    return world


def add(world: World, name: str, byte: int, batch: tuple[str, ...]) -> None:
    """A VM, if its place is free. byte: where it runs, whose it is, whether it can migrate and belongs to the group.

    Half of the group run on large nodes only, if theirs is one.
    """
    node, what, special = _places(batch)[byte & 7], byte >> 3 & 7, byte >> 6
    if not what:
        return
    group, migratable = "db" if special & 1 else "", special != 2
    picky = special == 3 and node in LARGE
    owner = None
    if what >= 3:
        kind = REPLICA_SET if what == 4 else VM
        if any(other.name == name for other in world.owners.values()):
            return  # no two have one name, and a replica set names its VMIs as no VM is named
        strategy = "Manual" if what == 5 else "Always"
        owner = Owner(world.uid("owner"), kind, name, strategy, group=group, picky=picky, migratable=migratable)
    vmi = world.add_vmi(name, owner, "", migratable=migratable, group=group, picky=picky)
    cordons, world.cordons = world.cordons, {}
    fits, world.cordons = world.fits(vmi, node), cordons
    if not fits:
        world.remove_vmi(vmi)
        return
    world.add_pod(vmi.uid, node, machine=True, group=group)
    world.settle(vmi, node)
    vmi.phase = "Running"
    if owner is not None:
        world.owners[owner.uid] = owner


def _places(batch: tuple[str, ...]) -> tuple[str, ...]:
    """More often on a node of the batch."""
    return (batch[0], batch[-1], *ZONES)
