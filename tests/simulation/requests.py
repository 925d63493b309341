# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands carried out on the model, as the verbs of `_cluster` do: each asks first whether it is done already.

Those change JSON objects by requests, with versions and admission, which the model has none of: tests of modules run
them against an API server. How far a start has come, which they decide by what is seen alone, is of `starting`.
"""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import (
    Answer,
    Command,
    Evict,
    Interrupt,
    Migrate,
    Start,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import STOPPED_BY_OTHERS
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.starting import (
    LEFT_OFF,
    NOT_ITS_OWN,
    STILL_ENDING,
    StartStage,
    is_on_its_way,
    start_stage,
)

from simulation.sight import see_vm, see_vmi
from simulation.world import REPLICA_SET, VM, Mark, Moving, Owner, Vmi, World


def carry_out(world: World, command: Command) -> Answer:
    if isinstance(command, Migrate):
        return _migrate(world, command)
    if isinstance(command, Evict):
        return _evict(world, command)
    if isinstance(command, Interrupt):
        return _interrupt(world, command)
    if isinstance(command, Start):
        return start(world, command)
    owner = world.owners.get(command.uid)
    if owner is not None:
        take_mark_off(owner, command.node)
    return Answer(command, needless=owner is None)


def _migrate(world: World, command: Migrate) -> Answer:
    if any(entry.name == command.name for entry in world.migrations.values()):
        return Answer(command)
    # Who keeps to one plan leaves it to the scheduler when a target is free.
    if command.target in world.cordons and not command.binding:
        return Answer(command, f"{command.target} has been cordoned", passing=True, needless=True)
    vmi = world.vmi(command.vmi)
    if vmi is None or vmi.uid != command.uid or not vmi.alive:
        return Answer(command, "the VM is not there any more", passing=command.binding)
    if vmi.node != command.source:
        return Answer(command, "the VM has moved meanwhile", passing=True, needless=True)
    if not vmi.migratable:
        return Answer(command, "the VMI cannot be migrated")
    if world.moving(vmi):
        return Answer(command, "in-flight migration detected", passing=not command.binding)
    create(world, vmi, command.name, command.target, ours=True)
    return Answer(command)


def create(world: World, vmi: Vmi, name: str, target: str, *, ours: bool) -> Moving:
    uid = world.uid("migration")
    moving = world.migrations[uid] = Moving(uid, name, vmi, vmi.node, target, ours)
    return moving


def delete(world: World, moving: Moving) -> None:
    """Of an unfinished one it is the wish to cancel it, which KubeVirt fulfils, or not any more."""
    if moving.unfinished:
        moving.cancelled = True
    else:
        del world.migrations[moving.uid]


def _evict(world: World, command: Evict) -> Answer:
    pod = world.pods.get(command.uid)
    if pod is None:
        return Answer(command, needless=True)
    if not pod.ending:
        if world.tight:
            return Answer(command, "a disruption budget forbids it for now", passing=True)
        pod.ending = True
    return Answer(command)


def _interrupt(world: World, command: Interrupt) -> Answer:
    vmi = world.vmis.get(command.uid)
    owner = world.owners.get(command.owner_uid)
    if vmi is None or vmi.node != command.node:
        return _by_itself(vmi, owner, command)
    if owner is None:
        words = "there is no owner any more that would start it again"
        taken_back = not command.begins
        return Answer(command, words, passing=taken_back, needless=taken_back, spared=taken_back)
    if command.stop and owner.strategy == "Halted" and command.node not in owner.stopped_for:
        return Answer(command, STOPPED_BY_OTHERS, passing=True, needless=True)
    is_asked = vmi.ending or vmi.uid in owner.stops or (command.stop and owner.strategy == "Halted")
    if is_asked and not command.begins:
        return Answer(command)
    if not command.begins or (command.if_refused and vmi.migratable and not is_asked):
        return replace(_by_itself(vmi, owner, command), spared=True)
    if command.stop:
        _mark(world, owner, command)
    if owner.kind == VM and command.stop:
        owner.asked = False
        if owner.strategy == "Manual":
            owner.stops.add(vmi.uid)
            return Answer(command)
        owner.strategy = "Halted"
    if not vmi.ending:
        vmi.ending = True
        owner.asked = owner.strategy == "Manual"
    return Answer(command)


def _by_itself(vmi: Vmi | None, owner: Owner | None, command: Interrupt) -> Answer:
    mark = owner.stopped_for.get(command.node) if owner is not None and command.stop else None
    if owner is not None and mark is not None and command.uid in mark.vmis:
        is_asked = owner.strategy == "Halted" or command.uid in owner.stops
        if is_asked or (vmi is None and (owner.strategy == "Manual" or owner.kind == REPLICA_SET)):
            return Answer(command)
        mark.vmis.discard(command.uid)
        if not mark.vmis:
            del owner.stopped_for[command.node]
    return Answer(command, "it has just ended or moved", passing=True, needless=True)


def _mark(world: World, owner: Owner, command: Interrupt) -> None:
    if owner.kind == REPLICA_SET:
        known = [mark.ready for mark in owner.stopped_for.values()] or [world.ready(owner)]
        owner.stopped_for.setdefault(command.node, Mark(ready=max(known))).vmis.add(command.uid)
    elif owner.strategy != "Halted":
        owner.stopped_for = {command.node: Mark(owner.strategy, vmis={command.uid})}


def start(world: World, command: Start, *, half: bool = False) -> Answer:
    """half: its caller dies between the two requests that it may take."""
    owner = world.owners.get(command.uid)
    if owner is None:
        return Answer(command, "the VM is gone", passing=True)
    vmi, seen = world.vmi(owner.name), see_vm(owner)
    shown = see_vmi(vmi) if vmi is not None else None
    how_far = start_stage(seen, shown, command.node)
    if how_far is StartStage.UNWANTED:
        take_mark_off(owner, command.node)
        return Answer(command, LEFT_OFF)
    if how_far in (StartStage.ENDING, StartStage.TAKEN):
        return Answer(command, STILL_ENDING if how_far is StartStage.ENDING else NOT_ITS_OWN, passing=True)
    if how_far is StartStage.WANTED:
        assert not owner.unwanted, f"{command}, but somebody wants it off"
        if owner.strategy == "Manual" and not is_on_its_way(seen, shown):
            _ask(owner, vmi)
        if not half:
            mark = owner.stopped_for[command.node]
            owner.strategy, mark.before = mark.before or owner.strategy, ""
    if how_far is StartStage.FAILED:
        assert not owner.unwanted, f"{command}, but somebody wants it off"
        _ask(owner, vmi)
    return Answer(command)


def _ask(owner: Owner, vmi: Vmi | None) -> None:
    """virt-api makes a restart of a start where a VMI has ended."""
    owner.asked = True
    if vmi is not None:
        owner.stops.add(vmi.uid)


def take_mark_off(owner: Owner, node: str) -> None:
    mark = owner.stopped_for.pop(node, None)
    if mark is not None and owner.kind == VM:
        assert owner.unwanted or owner.ran - mark.vmis, f"{owner} has not run since it was stopped"
