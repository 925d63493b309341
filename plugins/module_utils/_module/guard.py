# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task has to see before it changes something for a run: the run is still its own, and the cluster the same.

The options stand in doc_fragments/_run.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.identity import (
    require_cluster,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import May, always
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_lease import (
    RunHold,
    require_run,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.leases import Invocation, run_problem
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.arguments import ArgumentSpec
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import to_json
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan


def spec() -> ArgumentSpec:
    return {"run": {"type": "str"}, "invocation": {"type": "str"}, "cluster_uid": {"type": "str"}}


def problems(params: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the options, a clause each; a task that takes no node has no owner."""
    run = params["run"]
    if not run:
        if params["invocation"]:
            yield "invocation is given, but no run"
        return
    problem = run_problem(run)
    if problem:
        yield f"run {problem}"
    elif params.get("owner", run) != run:
        yield f"owner is {params['owner']}, but run is {run}: what a run does, it does in its own name"


def document(plan: Plan, params: Mapping[str, Any]) -> JsonObject:
    """The document of what a task does of itself; whatever names its attempts is no run's name."""
    return to_json(replace(plan, run=params["run"] or ""))


def require(client: Client, params: Mapping[str, Any], *, dry_run: bool) -> May:
    """What sees again, as this does, that the run is ours. A dry run holds no run, and needs none.

    Raises Failure with reason OtherCluster or RunLost.
    """
    if params["cluster_uid"]:
        require_cluster(client, params["cluster_uid"])
    if params["run"] and params["invocation"] and not dry_run:
        return require_run(client, params["run"], params["invocation"], params["lease_namespace"]).require
    return always


def hold(client: Client, params: Mapping[str, Any]) -> RunHold | None:
    """What sees that the run is still this invocation's; None outside of a run."""
    if not (params["run"] and params["invocation"]):
        return None
    return RunHold(client, params["run"], Invocation(params["invocation"]), params["lease_namespace"])
