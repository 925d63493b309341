# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What could give a VM a place without anybody's doing: others that are on their way, or somebody's maintenance over.

Whoever has such a prospect waits, and is not interrupted; nor is who waits for one of these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import Surroundings
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import SCHEDULABLE
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import title
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import find_mark
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import brief
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import KUBEVIRTS_DEVICES, Amounts
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.board import Board, Stage
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.mover import Mover
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile

# virt-handler takes this label away while it does not run, and brings it back.
_BACK = {SCHEDULABLE: "true"}


def prospects(board: Board, movers: Sequence[Mover], cluster: Surroundings) -> dict[str, str]:
    """By id of the VMs that have one, of some without a node, a clause on what each has to wait for.

    Who may come back to a drained node has none. What costs in proportion to all pods is done once.
    """
    able = [mover for mover in movers if not mover.may_return]
    if not able:
        return {}
    found: dict[str, str] = {}
    with _when_all_have_arrived(board, cluster):
        for mover in able:
            if options := board.options(mover, Profile.NO_SCORING):
                found[mover.id] = (
                    f"{options[0].node} can take it once what is on its way there or from there has arrived"
                )
        with board.state.maintained(cordoned_by_others(board), _BACK, _devices(board)):
            for mover in able:
                if mover.id not in found and (options := board.options(mover, Profile.NO_SCORING)):
                    found[mover.id] = _cordoned(options[0].node, cluster)
    for mover, node, others in _by_each_other(board, able, found):
        who = f"{others[0].key} has left, which waits" if len(others) == 1 else "others have left, which wait"
        found[mover.id] = f"{node} can take it once {who} as well"
    return found


def _by_each_other(
    board: Board, movers: Sequence[Mover], known: Collection[str]
) -> Iterator[tuple[Mover, str, Sequence[Mover]]]:
    """Who only has to wait for VMs that have a prospect, with the node that takes it then, and for which it waits.

    known: ids of those. Each round looks at all that are left, and has to find one that waits for those before.
    """
    gone: list[Mover] = []
    news, left = [mover for mover in movers if mover.id in known], [mover for mover in movers if mover.id not in known]
    try:
        while news and left:
            for mover in news:
                board.put(mover, Stage.AFTER)
            gone += news
            options = {mover.id: board.options(mover, Profile.NO_SCORING) for mover in left}
            news = [mover for mover in left if options[mover.id]]
            left = [mover for mover in left if not options[mover.id]]
            yield from ((mover, options[mover.id][0].node, tuple(gone)) for mover in news)
    finally:
        board.reset(gone[::-1])


def cordoned_by_others(board: Board) -> list[str]:
    """Nodes that are cordoned, but not for this drain."""
    return [node.name for node in board.state.nodes.nodes if node.unschedulable and node.name not in board.draining]


def _devices(board: Board) -> Amounts:
    """Of virt-handler's devices the most that a node has: it offers as many on every node where it offers them."""
    found: Amounts = {}
    for node in board.state.nodes.nodes:
        for name, amount in node.allocatable.items():
            if name.startswith(KUBEVIRTS_DEVICES):
                found[name] = max(amount, found.get(name, 0))
    return found


def _cordoned(name: str, cluster: Surroundings) -> str:
    node = cluster.workloads.node(name)
    mark = find_mark(node) if node is not None else None
    reason = f" ({brief(mark.reason)})" if mark is not None and mark.reason else ""
    return f"{name}, which could take it, is cordoned by {'somebody' if mark is None else brief(mark.owner)}{reason}"


@contextmanager
def _when_all_have_arrived(board: Board, cluster: Surroundings) -> Iterator[None]:
    """As if pods that are being deleted, and sources of others' migrations, were gone, within a `with` statement."""
    state = board.state
    keys = {placement.occupant.key for placement in state.placements() if placement.occupant.terminating}
    changes = [state.remove(key) for key in sorted(keys | set(_sources(board, cluster, keys)))]
    try:
        yield
    finally:
        for change in reversed(changes):
            state.undo(change)


def _sources(board: Board, cluster: Surroundings, known: Collection[str]) -> Iterator[str]:
    for namespace, name in cluster.migrations:
        vmi = cluster.workloads.vmi(f"{namespace}/{name}")
        source = cluster.workloads.source_pod(vmi) if vmi is not None else None
        if source is not None and title(source) in board.state and title(source) not in known:
            yield title(source)
