# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read whole Node objects, and write on them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.listing import read_list
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.paths import object_path
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import BY_NAME

# Who is named in the cluster as the writer of a field (metadata.managedFields).
FIELD_MANAGER = "virtops.kubevirt"
# A whole Node with its images takes some 15 kB.
_PAGE_SIZE = 250
_THREADS = 4


def read_nodes(client: Client, labels: str = "", fields: str = "") -> list[JsonObject]:
    """All nodes as the API gives them, by name, or those that label and field selectors choose. Raises Failure."""
    whole = replace(BY_NAME["nodes"], project=lambda node: node, selector=labels, field_selector=fields)
    return [json.loads(line) for line in read_list(client, whole, _PAGE_SIZE) or ()]


def label_nodes(client: Client, labels: Mapping[str, Mapping[str, str | None]], *, dry_run: bool) -> None:
    """Write labels by node, None to remove one; in a dry run let the server check it all and keep nothing.

    Raises Failure, which says what was written before; nodes that are not under way by then are left alone.
    """
    written: list[str] = []
    with ThreadPoolExecutor(_THREADS) as pool:
        jobs = {pool.submit(_label, client, node, changes, dry_run): node for node, changes in labels.items()}
        try:
            for job in as_completed(jobs):
                job.result()
                written.append(jobs[job])
        except Failure as error:
            pool.shutdown(cancel_futures=True)
            raise _partial(error, jobs, dry_run) from error


def _label(client: Client, node: str, labels: Mapping[str, str | None], dry_run: bool) -> None:
    query = {"fieldManager": FIELD_MANAGER, **({"dryRun": "All"} if dry_run else {})}
    path = object_path("v1", None, "nodes", node)
    client.patch(path, f"label node {node}", {"metadata": {"labels": dict(labels)}}, **query)


def _partial(error: Failure, jobs: Mapping[Future[None], str], dry_run: bool) -> Failure:
    """The failure with the nodes that were labelled all the same, those that finished after it included."""
    done = [node for job, node in jobs.items() if not job.cancelled() and not job.exception()]
    written: Sequence[str] = [] if dry_run else sorted(done)
    state = f"{len(written)} of {len(jobs)} nodes were labelled; what is done is not done again in the next run."
    remedy = f"{error.remedy} {state}" if written else error.remedy
    return error.replaced(remedy=remedy, details={"written": written})
