# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import random

import pytest

from ansible_collections.virtops.kubevirt.plugins.filter.feasible_nodes import feasible_nodes

from simulation import listing
from simulation.campaign import AS_PLANNED, BY_MODEL, MACHINES, drive
from simulation.driven import Driven
from simulation.histories import HISTORIES, replay
from simulation.mutants import MUTANTS
from simulation.scene import build
from simulation.world import ROOM, ZONES


@pytest.mark.parametrize("machine", MACHINES)
def test_what_must_hold_holds_in_any_interleaving(machine: type[Driven], request: pytest.FixtureRequest) -> None:
    histories = 50 if request.config.getoption("--few") else 375
    if machine in AS_PLANNED:
        histories = 15
    steps = drive(machine, histories)
    print(f"{steps} steps of {machine.__name__}")
    assert steps >= 60 * histories


@pytest.mark.parametrize("seed", range(5))
def test_a_vm_fits_where_it_fits_in_the_model(seed: int) -> None:
    dice = random.Random(seed)
    world = build(dice.randbytes(24), ("n1", "n2"))
    for vmi in world.vmis.values():
        vmi.size = dice.randint(1, ROOM)
    lists = listing.snapshot(world).lists
    for vmi in world.vmis.values():
        found = set(feasible_nodes(lists, vmi.title)["fit"]) - {vmi.node}
        assert found == {node for node in ZONES if node != vmi.node and world.fits(vmi, node)}


@pytest.mark.parametrize("name", HISTORIES)
def test_what_did_not_hold_once_holds(name: str) -> None:
    assert replay(name).holds


@pytest.mark.parametrize("machine", MACHINES)
def test_a_seed_leads_to_the_same_histories(machine: type[Driven]) -> None:
    first, second, other = (_gone_through(machine, seed) for seed in (7, 7, 8))
    assert first == second != other


def _gone_through(machine: type[Driven], seed: int) -> tuple[int, dict[str, int]]:
    """Steps, and how often what has happened."""
    before = machine.happened.copy()
    return drive(machine, 3, by=seed), dict(machine.happened - before)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_reducer_is_wrong_where_something_is(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it is a right one, and nobody notices as long as nobody runs it."""
    MUTANTS[mutant](monkeypatch)


@pytest.mark.skipif("VIRTOPS_MUTANTS" not in os.environ, reason="takes minutes: `make search` runs it")
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_reducer_is_noticed(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[mutant](monkeypatch)
    with pytest.raises(AssertionError):
        _drive_all()


def _drive_all() -> None:
    """First a few of each, which is enough for most."""
    for histories in (50, 550, 4000):
        for machine in BY_MODEL:
            drive(machine, histories, shrink=False)
