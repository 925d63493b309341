# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Histories by name in which something did not hold once: what a campaign has found, as it prints it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from simulation.driven import Driven
from simulation.invocations import TwoInvocations, TwoInvocationsOfTwoBatches
from simulation.machine import (
    OneNode,
    OneNodeAsPlanned,
    OneOfTwoAsPlanned,
    TwoBatches,
    TwoBatchesAsPlanned,
    TwoNodes,
    TwoNodesAsPlanned,
)
from simulation.moving import Moved
from simulation.restoring import Restored
from simulation.returning import Returns

# A machine, and what happens to it, in order: the names of its rules with what they are given.
History: TypeAlias = tuple[type["Driven"], tuple[tuple[str, Mapping[str, Any]], ...]]

_QUIET = bytes(12)

HISTORIES: Mapping[str, History] = {
    "a stop without an answer, of a VM that is deleted right then": (
        OneNode,
        (
            ("begin", {"shape": bytes(18) + b"38\x98\x08\x088"}),
            ("nobody_looks", {"choices": _QUIET}),
            ("time_goes_by", {"choices": bytes(9) + b"\x03\x01\x07", "fates": 12}),
            ("somebody_wants_a_vm_off_that_is_ending", {"gone": False, "then": bytes(7) + b"\x01" * 5, "which": 0}),
            ("somebody_wants_a_vm_off_that_is_ending", {"gone": True, "then": bytes(9) + b"\x11\x00\x00", "which": 0}),
        ),
    ),
    "a stop that whoever aborts undoes before who asked for it has seen it": (
        Restored,
        (
            ("begin", {"shape": b"\x02" + bytes(20) + b"#(\xb0"}),
            ("a_budget_changes", {"then": b"\x00\x00\x00\x00\x01\x03\x00\x00\x00\x01\x01\xe3"}),
            ("a_budget_changes", {"then": bytes(7) + b"\x01\x01\x03\x01\xe8"}),
            (
                "the_run_is_aborted",
                {
                    "dies": None,
                    "fates": 0,
                    "meanwhile": b"\x04" + bytes(9) + b"\x01\x03\x03" + bytes(11),
                    "then": _QUIET,
                },
            ),
        ),
    ),
    "a pod that goes before it is evicted by its name, and another one of its controller": (
        Moved,
        (
            ("begin", {"shape": b"\r" + bytes(6) + b"\x08" * 4 + b"\t", "order": bytes(3) + b"\x01\xda" + bytes(3)}),
            ("time_goes_by", {"choices": bytes(4) + b"\x010" + bytes(4) + b"\x01\x00", "fates": 16792928}),
        ),
    ),
    "a pod that comes to serve while nobody knows whether its eviction was taken": (
        Moved,
        (
            ("begin", {"shape": b"L" + bytes(6) + b"\x08" * 4 + b"\t", "order": bytes(4) + b"\x1e" + bytes(3)}),
            ("a_budget_changes", {"then": _QUIET}),
            ("a_budget_changes", {"then": _QUIET}),
            (
                "time_goes_by",
                {"choices": b"\x00\x00\x01\x01\x01\x00\x00\x01\x00\x01\x01\x00", "fates": 32505856},
            ),
            ("time_goes_by", {"choices": bytes(4) + b"\x01\x01" + bytes(4) + b"\x01\x00", "fates": 13958643712}),
            ("a_budget_changes", {"then": bytes(10) + b"\x01\x00"}),
        ),
    ),
    "a VM that somebody else starts while another one has its turn before it": (
        Returns,
        (
            ("begin", {"shape": bytes(18) + b"\x18\x19((1(", "then": bytes(8)}),
            ("somebody_starts_a_vm", {"then": bytes(8), "which": 10}),
        ),
    ),
    "a VM that fails and starts again while one that failed before has yet to come": (
        Returns,
        (
            ("begin", {"shape": bytes(22) + b"))", "then": bytes(8)}),
            ("a_look_gets_no_answer", {"then": b"\x01\x06\x01\x01\x01\x03\xbe\x01", "which": 0}),
            ("a_look_gets_no_answer", {"then": b"\x00\x00\x00\x00\x01\x01\x03\xf2", "which": 0}),
            ("a_look_gets_no_answer", {"then": b"\x00\x00\x00\x00\x00\x01\x81\x02", "which": 0}),
        ),
    ),
    "a VM that had its place, and fails before the one whose turn is after it starts": (
        Returns,
        (
            ("begin", {"shape": bytes(19) + b")\x18 ( ", "then": bytes(8)}),
            ("a_look_gets_no_answer", {"then": b"\x00\x00\x00\x03\x01\x05\x05\t", "which": 0}),
            ("a_look_gets_no_answer", {"then": bytes(5) + b"\x01\x07m", "which": 0}),
            ("a_look_gets_no_answer", {"then": b"\x01\x01\x01\x01\x01\x03\x03\x01", "which": 0}),
            ("a_look_gets_no_answer", {"then": bytes(5) + b"\x01\x07\x00", "which": 0}),
        ),
    ),
    "a pod of a StatefulSet that is gone and not back when the task is run again": (
        Moved,
        (
            ("begin", {"shape": bytes(12), "order": bytes(8)}),
            ("a_vm_comes", {"byte": 0, "then": bytes(8) + b"\x01" * 4, "which": 0}),
            ("dies", {"then": _QUIET}),
        ),
    ),
    "a pod that is going when the task is run again, and one that came instead of an earlier one": (
        Moved,
        (
            ("begin", {"shape": bytes(12), "order": b"\xc2M\x1a3\xe5k\x8a\xc8"}),
            ("somebody_deletes_a_pod", {"then": b"\xf0>\xd5\xbck\x12\x10j\xd3\xc6\x99\n", "which": 10}),
            ("dies", {"then": _QUIET}),
            ("somebody_deletes_a_pod", {"then": b"b\xbe\xd8\x9aa\xe4Fq\xdb\xf5`\xf6", "which": 5}),
        ),
    ),
    "a pod that is gone when the task is run again, and another one that is going": (
        Moved,
        (
            ("begin", {"shape": b"\x03" + bytes(6) + b"\x08" * 4 + b"\t", "order": b"\x00\x00\x00\x05" + bytes(4)}),
            ("dies", {"then": bytes(9) + b"\x01\x03\x03"}),
            ("dies", {"then": bytes(9) + b"\x01\x01\x00"}),
        ),
    ),
    "a pod that comes to serve while a budget keeps another one of its controller": (
        Moved,
        (
            ("begin", {"shape": b"\x02\xd1" + bytes(7) + b"\x08wx", "order": b"\x00\x01n\x80\xd4\xfa\x01\x00"}),
            ("a_budget_changes", {"then": _QUIET}),
            ("a_budget_changes", {"then": _QUIET}),
            ("a_budget_changes", {"then": bytes(9) + b"\x01\x07\x07"}),
            ("somebody_migrates", {"run": "", "then": _QUIET, "to": "n1", "which": 2}),
            ("dies", {"then": bytes(8) + b"\x01\x01kI"}),
            ("a_budget_changes", {"then": bytes(10) + b"A\x00"}),
        ),
    ),
    "a VM that somebody migrates in vain, and another one of its group that would go where it was to go": (
        TwoNodes,
        (
            ("begin", {"shape": bytes(17) + b"\x08\x08\x08\tg\xe9X"}),
            ("somebody_migrates", {"then": bytes(11) + b"\x02", "which": 6, "to": "n2"}),
        ),
    ),
    "a drain that gives up while a VM is ending that the one before it has told to": (
        TwoBatches,
        (
            ("begin", {"shape": b"\r" + bytes(17) + b"\x08\x08#(+3\xa8"}),
            ("a_vm_grows", {"itself": False, "then": bytes(8) + b"\x01\x01\x01]", "which": 0}),
            ("a_vm_grows", {"itself": False, "then": bytes(9) + b"\x03\x03\x81", "which": 0}),
            ("a_budget_changes", {"then": bytes(4) + b"\x01\x01\x01\x01\x01\x03\x01\xed"}),
            ("somebody_migrates", {"then": bytes(8) + b"\x01\x01\x05\x07", "to": "n1", "which": 0}),
            ("a_vm_ends", {"how": 0, "then": bytes(9) + b"\x01\x01\x03", "which": 0}),
            ("dies", {"then": _QUIET, "remembering": False, "which": 0}),
        ),
    ),
    "a plan by a look that is older than the end of a migration": (
        OneNodeAsPlanned,
        (
            ("begin", {"shape": b"\x02" + bytes(22) + b"\x08"}),
            ("a_budget_changes", {"then": b"\x00\x00\x00\x00\x01\x03\x00\x00\x00\x01\x01\x01"}),
            ("a_budget_changes", {"then": bytes(6) + b"\x01\x01\x08\x08\x08\x00"}),
        ),
    ),
    "a plan for one node while a VM that cannot be migrated is ending on the other one": (
        TwoNodesAsPlanned,
        (
            ("begin", {"shape": b"\x00\xb1" + bytes(5) + b"\xdb\x00\n" + bytes(14)}),
            ("a_budget_changes", {"then": b"\xdb\x12-\x93C\x00\x00+\x00\x00\xdf\x00"}),
            ("a_vm_ends", {"how": 1, "then": _QUIET, "which": 0}),
        ),
    ),
    "a VM that goes elsewhere while the pod lingers of one whose migration somebody has deleted": (
        TwoNodesAsPlanned,
        (
            ("begin", {"shape": b"-@\xfb\x11\x12E\x82\xc0\xe0\xf5KMX~\x95%\x828\x9dGc\xb9\x0b\x9a"}),
            ("a_vm_grows", {"itself": False, "then": bytes(9) + b"\x01\x07\xd7", "which": 0}),
            ("saves", {"then": bytes(5) + b"\x01q\x01\x05\x02!\x01", "which": 0}),
            ("somebody_deletes_a_migration", {"then": bytes(9) + b"\r\x02\x02", "which": 0}),
        ),
    ),
    "a VM that somebody brings back to the node that is emptied": (
        OneNodeAsPlanned,
        (
            ("begin", {"shape": bytes(22) + b"\x08\x08"}),
            ("a_budget_changes", {"then": bytes(7) + b"\x01" * 5}),
            ("somebody_brings_a_vm_back", {"then": _QUIET, "which": 0}),
        ),
    ),
    "a VM that comes in the moment in which a drain gives up": (
        OneNode,
        (
            ("begin", {"shape": b"\x0c" + bytes(19) + b"#\x0888"}),
            ("somebody_migrates", {"then": bytes(4) + b"\x01\x01\x01\x85\x01\x01\x01A", "to": "n1", "which": 0}),
            ("a_vm_ends", {"how": 0, "then": bytes(10) + b"\x01\xcf", "which": 0}),
            ("a_vm_ends", {"how": 0, "then": bytes(7) + b"\x03\x01\x03\x00\x80", "which": 0}),
            ("a_vm_comes", {"byte": 8, "lagging": 0, "then": _QUIET, "which": 0}),
        ),
    ),
    "a task that goes on after one that was killed when its VM had just arrived": (
        Moved,
        (
            ("begin", {"shape": bytes(11) + b"\x08", "order": bytes(8)}),
            ("a_budget_changes", {"then": bytes(9) + b"\x01\x01\x01"}),
            ("dies", {"then": bytes(8) + b"\x01\x00\x00\x00"}),
        ),
    ),
    "a drain that runs out of time while a VM is on its way": (
        OneNode,
        (
            ("begin", {"shape": b"0" + bytes(20) + b"\x08 \xa8"}),
            ("a_vm_grows", {"itself": False, "then": b"\x00\x00\x01\x03@@@\x80\x80\x80\xc0\xc0", "which": 0}),
            ("a_budget_changes", {"then": b"\x00\x00\x00@@A\x80\x80\x80\x80\xc0\xc0"}),
            ("a_budget_changes", {"then": b"\x00\x00@@@\x80\x80\x80\xc0\xc0\xc0\xc0"}),
            ("a_vm_ends", {"how": 0, "then": bytes(10) + b"\x01\xf3", "which": 2}),
        ),
    ),
    "a VM that comes to a node which a drain has lost": (
        TwoNodes,
        (
            ("begin", {"shape": bytes(19) + b"\x19\x19\x19\xa8\x08"}),
            ("a_budget_changes", {"then": _QUIET}),
            ("somebody_wants_a_vm_off_that_is_ending", {"gone": False, "then": bytes(11) + b"\x01", "which": 0}),
            ("a_budget_changes", {"then": bytes(8) + b"\x03\x01\x01\x01"}),
            ("a_budget_changes", {"then": bytes(11) + b"\x01"}),
            ("somebody_cordons_or_uncordons", {"node": "n1", "then": _QUIET}),
            ("a_vm_comes", {"byte": 8, "lagging": 0, "then": _QUIET, "which": 0}),
        ),
    ),
    "a replica whose successor finds no node": (
        Restored,
        (
            ("begin", {"shape": bytes(21) + b"`fg"}),
            ("somebody_scales_a_replica_set", {"replicas": 2, "then": _QUIET, "which": 0}),
            ("a_vm_can_be_migrated_or_no_longer", {"lagging": 0, "then": bytes(10) + b"\x01\x03", "which": 0}),
        ),
    ),
    "a node that somebody uncordons while a drain stands still after its last look": (
        TwoInvocations,
        (
            ("begin", {"shape": bytes(24)}),
            ("stands_still", {"at": 1, "fates": 0, "lagging": 0, "which": 0}),
            ("somebody_cordons_or_uncordons", {"node": "n1", "then": _QUIET}),
        ),
    ),
    "a VMI of the name of a VM that was stopped": (
        Restored,
        (
            ("begin", {"shape": b"\x00\x98" + bytes(21) + b"\x08"}),
            ("a_vm_can_be_migrated_or_no_longer", {"lagging": 0, "then": bytes(9) + b"\x01" * 3, "which": 1}),
            ("a_budget_changes", {"then": _QUIET}),
            ("the_node_is_given_back", {"then": _QUIET}),
            ("a_vm_comes", {"byte": 8, "lagging": 0, "then": _QUIET, "which": 0}),
            ("vms_start", {"choices": _QUIET, "fates": 0}),
        ),
    ),
    "a VM that is brought back to a node whose drain has given up, and has never known it there": (
        OneNode,
        (
            ("begin", {"shape": b"\r" + bytes(14) + b"\x1b\x1b\x1b+8\xa8\x08\x08\x08"}),
            ("looks", {"cut": 0, "failing": None, "fates": 11534352, "lagging": 0, "which": 0}),
            ("a_budget_changes", {"then": b"\x01" * 10 + b"\x03\x01"}),
            ("nobody_looks", {"choices": _QUIET}),
            ("somebody_brings_a_vm_back", {"then": _QUIET, "which": 0}),
            (
                "somebody_wants_a_vm_off_that_is_ending",
                {"gone": False, "then": b"\x00\x00\x00\x00\xdd\x03\x03\x03\x05\x07\x00\x00", "which": 0},
            ),
        ),
    ),
    "a VM that can be migrated by the time it is to be interrupted": (
        OneNode,
        (
            ("begin", {"shape": bytes(23) + b"\xa8"}),
            ("a_vm_can_be_migrated_or_no_longer", {"lagging": 0, "then": _QUIET, "which": 0}),
        ),
    ),
    "a VM that has left before its migration is seen, of which no answer has told": (
        OneNode,
        (
            ("begin", {"shape": bytes(21) + b"\x08\x088"}),
            ("a_budget_changes", {"then": _QUIET}),
            ("a_budget_changes", {"then": _QUIET}),
            ("a_budget_changes", {"then": b"\x00\x00\x01\x03\x00\x00" + b"\x01" * 6}),
            ("looks", {"cut": 0, "failing": None, "fates": 22, "lagging": 0, "which": 0}),
            ("a_budget_changes", {"then": b"\x01\x01\x01\x03\xb4\x03\x04" + bytes(5)}),
        ),
    ),
    "a VM that has left by somebody else while no answer has told of a migration of its own": (
        TwoBatches,
        (
            ("begin", {"shape": b"\x01" + bytes(21) + b"\x08 "}),
            ("a_vm_comes", {"byte": 0, "lagging": 0, "then": bytes(3) + b"\x01" * 6 + b"\x03\x01\x01", "which": 0}),
            ("a_vm_can_be_migrated_or_no_longer", {"lagging": 0, "then": _QUIET, "which": 0}),
            ("somebody_brings_a_vm_back", {"then": _QUIET, "which": 0}),
            ("saves", {"then": _QUIET, "which": 0}),
            ("time_goes_by", {"choices": b"\x00" + b"\x01" * 9 + b"\xe8\xe0", "fates": 384}),
        ),
    ),
    "a VM that ends while its migration waits, and another one of its node that follows": (
        OneNode,
        (
            ("begin", {"shape": b"\x02" + bytes(20) + b"\x08\x18\x08"}),
            ("a_vm_ends", {"how": 0, "then": bytes(6) + b"\x01\x03\x00\x00\x00\x01", "which": 1}),
            ("a_vm_ends", {"how": 0, "then": b"\x03\x03\x03\x03\x03{\xb4\x04\x04\x00\x00\x00", "which": 0}),
        ),
    ),
    "a VM that comes while a process stands still between its last look and its end": (
        TwoInvocationsOfTwoBatches,
        (
            ("begin", {"shape": bytes(22) + b"\x088"}),
            ("a_budget_changes", {"then": _QUIET}),
            ("a_budget_changes", {"then": _QUIET}),
            ("a_budget_changes", {"then": _QUIET}),
            ("a_budget_changes", {"then": _QUIET}),
            ("nobody_looks", {"choices": _QUIET}),
            ("somebody_deletes_a_migration", {"then": bytes(10) + b"@\x80", "which": 0}),
            ("nobody_looks", {"choices": _QUIET}),
            ("stands_still", {"at": 1, "fates": 0, "lagging": 0, "which": 0}),
            ("somebody_brings_a_vm_back", {"then": bytes(10) + b"\x01\x01", "which": 0}),
        ),
    ),
    "a VM that is still on its way back to a node when a drain of it gives up": (
        TwoInvocationsOfTwoBatches,
        (
            ("begin", {"shape": b"\x0e" + bytes(18) + b"\x08\x08\x08+\xb0"}),
            ("a_budget_changes", {"then": _QUIET}),
            ("nobody_looks", {"choices": _QUIET}),
            ("dies", {"remembering": False, "then": _QUIET, "which": 0}),
            ("nobody_looks", {"choices": _QUIET}),
            ("a_vm_ends", {"how": 0, "then": bytes(8) + b"\x01\x03\x01\x01", "which": 3}),
            ("a_vm_comes", {"byte": 0, "lagging": 0, "then": bytes(4) + b"\x01\xcf\0\0\0\x01\x01\xe1", "which": 0}),
            ("somebody_brings_a_vm_back", {"then": bytes(11) + b"\x01", "which": 0}),
            ("dies", {"remembering": False, "then": b"\x00\x01\x00\x01" + bytes(8), "which": 0}),
        ),
    ),
    "a VM that has ended before its stop, while others still wait that were to leave before it": (
        OneOfTwoAsPlanned,
        (
            ("begin", {"shape": bytes(21) + b"\xa8\t\t"}),
            ("a_vm_ends", {"how": 1, "then": bytes(8) + b"\x01\x01\x01\x03", "which": 0}),
            ("a_budget_changes", {"then": bytes(6) + b"\x01\x00\x00\x01\x01\x00"}),
        ),
    ),
    "a VM that is to restart on a node that somebody else has cordoned": (
        TwoBatchesAsPlanned,
        (
            ("begin", {"shape": bytes(20) + b"\x08`[g"}),
            ("somebody_cordons_or_uncordons", {"node": "n4", "then": bytes(7) + b"\x01\x03@\x01\x80"}),
            ("somebody_deletes_a_migration", {"then": bytes(7) + b"\x01" * 5, "which": 0}),
            ("the_next_batch_asks_for_its_turn", {"then": _QUIET}),
            ("the_next_batch_asks_for_its_turn", {"then": _QUIET}),
            ("a_vm_can_be_migrated_or_no_longer", {"lagging": 0, "then": _QUIET, "which": 1}),
        ),
    ),
    "a VM that waits for a restart that begins out of turn, and is to go where another one of its group stays": (
        OneOfTwoAsPlanned,
        (
            ("begin", {"shape": bytes(14) + b"\x08.9I\x08`\x99\x0e&8"}),
            ("a_vm_ends", {"how": 0, "then": bytes(8) + b"\x01\x03\x01\xc3", "which": 3}),
            (
                "a_vm_can_be_migrated_or_no_longer",
                {"lagging": 0, "then": bytes(6) + b"\x01\x03" + b"\x01" * 4, "which": 0},
            ),
            ("a_vm_ends", {"how": 2, "then": bytes(9) + b"\x01" * 3, "which": 4}),
            ("a_budget_changes", {"then": _QUIET}),
        ),
    ),
    "a VM that comes in the way of one that is to leave another node of the batch": (
        OneOfTwoAsPlanned,
        (
            ("begin", {"shape": bytes(21) + b"\x08 \xf1"}),
            ("somebody_scales_a_replica_set", {"replicas": 0, "then": _QUIET, "which": 0}),
            ("a_vm_comes", {"byte": 96, "lagging": 0, "then": _QUIET, "which": 0}),
        ),
    ),
}


def replay(name: str) -> Driven:
    """The machine after it has come to rest. Raises AssertionError where something does not hold."""
    machine, happenings = HISTORIES[name]
    driven = machine()
    for rule, given in happenings:
        getattr(driven, rule)(**given)
    driven.teardown()
    return driven
