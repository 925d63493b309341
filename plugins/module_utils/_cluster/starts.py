# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start the VMs again that were stopped for a node, and see that they run; replica sets are only waited for."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks import objects
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.inquiries import Inquiries
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.plan_run import Means, PlanRun, Teller
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.carrying_out import (
    Verbs,
    VerbSettings,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import Observation, Questions
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Execution
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.stopped_mark import find_marks
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    Action,
    ActionKind,
    ObjectReference,
    plan_of,
)


def start_run(
    client: Client,
    node: str,
    owner: str,
    guard: Callable[[Collection[str]], None],
    teller: Teller,
    *,
    dry_run: bool = False,
) -> PlanRun:
    """What starts all again that the owner has stopped for a node, with nothing done yet. Raises Failure."""
    return PlanRun(
        Means(StartLooks(client), Verbs(client, VerbSettings(dry_run=dry_run)), guard, teller),
        Execution(node="", run="", kinds=frozenset({ActionKind.START})),
        plan_of(_actions(client, node, owner)),
    )


class StartLooks:
    """Looks at each VM or replica set by itself, and at its VMI, as nothing of them may be watched."""

    def __init__(self, client: Client) -> None:
        self._inquiries = Inquiries(client, unschedulable_timeout=0)
        self._is_due = True

    def attend(self, nodes: Collection[str], sources: Collection[str]) -> None:
        """What was stopped for a node is on none."""

    def look(self, questions: Questions, seconds: float) -> Observation:
        """After some seconds, at once the first time. Raises Failure."""
        wait = min(seconds, self._inquiries.ask_scheduler(questions))
        if not self._is_due:
            time.sleep(max(0.0, wait))
        found = self._inquiries.observe(questions, (), ())
        self._is_due = False
        return found

    def forget(self) -> None:
        """Let the next look not wait."""
        self._is_due = True


def _actions(client: Client, node: str, owner: str) -> Iterator[Action]:
    for kind in objects.RESOURCES:
        for item in objects.stopped(client, kind):
            mark = find_marks(item).get(node)
            if mark and mark.owner == owner:
                metadata = item["metadata"]
                reference = ObjectReference(kind, metadata["namespace"], metadata["name"], metadata["uid"])
                # A replica set may have the name of a VM.
                yield Action(f"start.{kind}.{reference.title}", ActionKind.START, 1, node, reference)
