# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read whole Node objects, and write on them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import replace
from typing import TypeAlias

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.conflicts import retry_on_newest
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.listing import read_list
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.paths import object_path
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import BY_NAME

# New values of labels, None to remove one.
NewLabels: TypeAlias = Mapping[str, str | None]

# Who is named in the cluster as the writer of a field (metadata.managedFields).
FIELD_MANAGER = "virtops.kubevirt"
# A whole Node with its images takes some 15 kB.
_PAGE_SIZE = 250
_THREADS = 4


def read_nodes(client: Client, labels: str = "", fields: str = "") -> list[JsonObject]:
    """All nodes as the API gives them, by name, or those that label and field selectors choose. Raises Failure."""
    whole = replace(BY_NAME["nodes"], project=lambda node: node, selector=labels, field_selector=fields)
    return [json.loads(line) for line in read_list(client, whole, _PAGE_SIZE) or ()]


def label_nodes(client: Client, nodes: Iterable[JsonObject], labels: Mapping[str, NewLabels], *, dry_run: bool) -> None:
    """Write labels by node, None to remove one; in a dry run let the server check it all and keep nothing.

    nodes: as they were read when that was decided. Raises Failure, which says what was written before; nodes that are
    not under way by then are left alone. A label that somebody else has written since stays, with status 409.
    """
    written: list[str] = []
    with ThreadPoolExecutor(_THREADS) as pool:
        known = {node["metadata"]["name"]: node for node in nodes}
        jobs = {pool.submit(_label, client, known[node], changes, dry_run): node for node, changes in labels.items()}
        try:
            for job in as_completed(jobs):
                job.result()
                written.append(jobs[job])
        except Failure as error:
            pool.shutdown(cancel_futures=True)
            raise _partial(error, jobs, dry_run) from error


def _label(client: Client, node: JsonObject, labels: NewLabels, dry_run: bool) -> None:
    """On the version that was looked at, so that a second time, after a lost answer, undoes nobody else's write."""
    query = {"fieldManager": FIELD_MANAGER, **({"dryRun": "All"} if dry_run else {})}
    name = node["metadata"]["name"]

    def write(found: JsonObject) -> None:
        body = {"metadata": {"labels": dict(labels), "resourceVersion": found["metadata"]["resourceVersion"]}}
        client.patch(object_path("v1", None, "nodes", name), f"label node {name}", body, **query)

    retry_on_newest(node, write, lambda conflict: _again(client, node, labels, conflict))


def _again(client: Client, node: JsonObject, labels: NewLabels, conflict: Failure) -> JsonObject:
    """The node as it is now, if these labels are as they were, or as they are to be. Raises Failure if not, or gone.

    It is listed, as who labels nodes needs no other right to read them.
    """
    name = node["metadata"]["name"]
    found = next((item for item in read_nodes(client, fields=f"metadata.name={name}")), None)
    if found is None:
        raise conflict
    before, now = (item["metadata"].get("labels") or {} for item in (node, found))
    theirs = [key for key, value in labels.items() if now.get(key) not in (before.get(key), value)]
    if theirs:
        message = f"somebody else has written {', '.join(theirs)} since the node was read"
        raise conflict.replaced(message=message, remedy="Find out who does; run again, the task writes its own.")
    return found


def _partial(error: Failure, jobs: Mapping[Future[None], str], dry_run: bool) -> Failure:
    """The failure with the nodes that were labelled all the same, those that finished after it included."""
    done = [node for job, node in jobs.items() if not job.cancelled() and not job.exception()]
    written: Sequence[str] = [] if dry_run else sorted(done)
    state = f"{len(written)} of {len(jobs)} nodes were labelled; what is done is not done again in the next run."
    remedy = f"{error.remedy} {state}" if written else error.remedy
    return error.replaced(remedy=remedy, details={"written": written})
