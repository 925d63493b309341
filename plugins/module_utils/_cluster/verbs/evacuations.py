# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Withdraw evacuations: KubeVirt's answer to an eviction, which it goes on with until the VM has left its node.

Follows EvacuateCancelHandler in pkg/virt-api/rest/evacuate_cancel.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.objects import (
    API_VERSION,
    VMIS,
    evacuated_from,
    find_migrations,
    find_vmi,
    node_of,
    running_on,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.paths import (
    object_path,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.migrations import cancel
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import QUEUED, SCHEDULING, Migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject

_SUBRESOURCES = f"subresources.{API_VERSION}"
# Of a migration that KubeVirt has begun for an evacuation (GenerateNewMigration in its controller's drain/evacuation).
_PREFIX = "kubevirt-evacuation-"
# As long as it has no target it may be in vain, and can be undone without a trace.
_EARLY = {"", *QUEUED, SCHEDULING}


def withdraw(client: Client, node: str, namespace: str, name: str, *, dry_run: bool = False) -> bool:
    """Let a VMI stay on a node, and say if it was to leave that. A migration that has begun goes on. Raises Failure."""
    if evacuated_from(find_vmi(client, namespace, name)) != node:
        return False
    path = f"{object_path(_SUBRESOURCES, namespace, VMIS, name)}/evacuate/cancel"
    body: JsonObject = {"evacuationNodeName": node, **({"dryRun": ["All"]} if dry_run else {})}

    def is_withdrawn() -> bool | None:
        return evacuated_from(find_vmi(client, namespace, name)) != node or None

    try:
        client.act(path, f"withdraw the evacuation of VMI {namespace}/{name}", body, done=is_withdrawn)
    except Failure as error:
        if not error.gone:
            raise
        return False
    return True


def take_over(client: Client, node: str, maybe_done: set[str]) -> Iterator[str]:
    """Withdraw the evacuations of a node's VMIs, whose titles these are, so that something else can migrate them.

    A migration that KubeVirt has begun for one is cancelled after that, unless it has found a node; also where the
    evacuation was withdrawn before, by who came no further. maybe_done: titles of those whose withdrawal an earlier
    call may have brought about, kept for the next one. Raises Failure.
    """
    here = {f"{vmi['metadata']['namespace']}/{vmi['metadata']['name']}": vmi for vmi in running_on(client, node)}

    def is_withdrawn(title: str) -> bool:
        try:
            is_done = withdraw(client, node, *title.split("/")) or title in maybe_done
        except Failure as error:
            if error.maybe_done:
                maybe_done.add(title)
            raise
        maybe_done.discard(title)
        return is_done

    for title, vmi in here.items():
        if (evacuated_from(vmi) == node or title in maybe_done) and is_withdrawn(title):
            yield title
    for namespace in sorted({title.partition("/")[0] for title in here}):
        for begun in find_migrations(client, namespace):
            title = f"{namespace}/{begun.vmi}"
            if begun.name.startswith(_PREFIX) and begun.phase in _EARLY and not begun.cancelled and title in here:
                # Who was evicted since the look at the node would be migrated anew at once.
                if is_withdrawn(title):
                    yield title
                _cancel_from(client, node, begun)


def _cancel_from(client: Client, node: str, begun: Migration) -> None:
    """One whose VMI is elsewhere by now is whoever's who drains that node."""
    if node_of(find_vmi(client, begun.namespace, begun.vmi)) == node:
        cancel(client, begun)
