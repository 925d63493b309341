# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drains of node n1 that invocation a1 of run `kernel` makes by the plan in force; see run_api.py for the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_store import RunStore
from ansible_collections.virtops.kubevirt.plugins.modules import maintenance_plan, node_drain

from testbed.pki import Authority
from unit.plugins.support.fake_api import serving
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.run_api import RunApi, busy_run


@contextmanager
def busy_cluster(authority: Authority) -> Iterator[RunApi]:
    """That of `busy_run`."""
    fake = busy_run()
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


def memory(connection: dict[str, Any]) -> RunStore:
    """What the cluster remembers of the run."""
    return RunStore(connect_by(connection, 5), "kernel", "medik8s-leases")


def plan_in_force(run_module: ModuleRunner, connection: dict[str, Any], folder: Path) -> dict[str, Any]:
    """As its file."""
    given: dict[str, Any] = {"run": "kernel", "nodes": ["n1"], "path": str(folder / "plan.json"), "invocation": "a1"}
    made = run_module(maintenance_plan.main, **connection, **given)
    return {"plan_path": made["plan_path"], "sha256": made["sha256"]}


def drain_of_the_run(run_module: ModuleRunner, connection: dict[str, Any], **settings: Any) -> Any:
    """node_drain, waiting to be called with more settings."""
    run: dict[str, Any] = {"owner": "kernel", "run": "kernel", "invocation": "a1"}
    return partial(run_module, node_drain.main, **connection, **run, name="n1", **settings)
