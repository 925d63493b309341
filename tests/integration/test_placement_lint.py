# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every finding of the linter shows its consequence on a real cluster, and its patch takes the consequence away.

All cases stand on one testbed side by side, so whatever is found beyond them is a false alarm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import Finding
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import KINDS

from integration.clusters import VMIS, delete, loaded, vmis
from integration.configured import configured
from integration.lint.case import Case, Proof
from integration.lint.cases import CASES, Lists, expected, found, objects, settled
from integration.lint.proofs import PROOFS, Scene
from testbed.api import Api, Object, object_path, resource_path
from testbed.handle import RunningTestbed
from testbed.scenarios.model import Scenario, Settled
from testbed.waiting import wait_for

TIMEOUT = 240.0
# Cases do not wait for each other; two cores have no use for more at once.
PARALLEL = 4
# The cases' migrations are many; that two leave a node at a time is part of one of them.
CONFIGURATION = {"migrations": {"parallelMigrationsPerCluster": 100}}
PATCHED = [case for case in CASES if case.patched]

Subject = tuple[str, str, str, str]
Results = dict[str, Future[None]]


@pytest.fixture(scope="module")
def planted(testbed: RunningTestbed) -> Iterator[Api]:
    api = testbed.api
    # How the cases settle is waited for here: asking in each of their namespaces takes its time.
    scenario = Scenario("lint", tuple(objects()), Settled(pods=0, vmis=0))
    with configured(api, CONFIGURATION), loaded(api, scenario):
        wait_for("the cases to run", lambda: runs(api), TIMEOUT, interval=1)
        yield api


@pytest.fixture(scope="module")
def findings(planted: Api) -> dict[Subject, Finding]:
    return found(snapshot(planted))


@pytest.fixture(scope="module")
def shown(planted: Api, findings: dict[Subject, Finding]) -> Results:
    """The proofs of all cases."""

    def show(case: Case) -> None:
        (*_others, subject) = sorted(expected(case))
        PROOFS[case.proof][0](Scene(planted, case, findings[subject]))

    # A cordoned node stands in the scheduler's words to all others.
    cordoning = [case for case in CASES if case.proof is Proof.DRAIN_STOPS]
    return {**all_of([case for case in CASES if case not in cordoning], show), **all_of(cordoning, show)}


@pytest.fixture(scope="module")
def mended(planted: Api, findings: dict[Subject, Finding], shown: Results) -> dict[Subject, Finding]:
    """What is found once all patches are applied and the VMs have started anew."""
    running = {vmi["metadata"]["uid"] for case in PATCHED for vmi in vmis(planted, case.namespace)}
    for finding in findings.values():
        if finding.problem.patch:
            apply(planted, finding)
    for case in PATCHED:
        for vmi in vmis(planted, case.namespace):
            delete(planted, resource_path("kubevirt.io/v1", VMIS, case.namespace, vmi["metadata"]["name"]))
    wait_for("the VMs to start anew", lambda: all(started_anew(planted, case, running) for case in PATCHED), TIMEOUT)
    return found(snapshot(planted))


@pytest.fixture(scope="module")
def relieved(planted: Api, mended: dict[Subject, Finding]) -> Results:
    """The counter-proofs of all cases with a patch."""
    return all_of(PATCHED, lambda case: PROOFS[case.proof][1](Scene(planted, case)))


def all_of(cases: Iterable[Case], do: Callable[[Case], None]) -> Results:
    with ThreadPoolExecutor(PARALLEL) as pool:
        return {case.name: pool.submit(do, case) for case in cases}


def test_what_is_planted_is_found_and_nothing_else(findings: dict[Subject, Finding]) -> None:
    assert set(findings) == {subject for case in CASES for subject in expected(case)}


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_the_consequence_shows(shown: Results, name: str) -> None:
    shown[name].result()


@pytest.mark.parametrize("case", PATCHED, ids=lambda case: case.name)
def test_the_patch_takes_the_finding_away(mended: dict[Subject, Finding], case: Case) -> None:
    subjects = set(case.at_fault)
    assert {rule for rule, *subject in mended if tuple(subject) in subjects} == set(case.leaves)


@pytest.mark.parametrize("name", [case.name for case in PATCHED])
def test_the_patch_takes_the_consequence_away(relieved: Results, name: str) -> None:
    relieved[name].result()


def runs(api: Api) -> bool:
    """Whether all VMs and pods run that can run, and no more."""
    machines = [vmi for vmi in api.items(resource_path("kubevirt.io/v1", VMIS)) if is_ready(vmi)]
    others = [
        pod
        for pod in api.items(resource_path("v1", "pods"), labelSelector="app,kubevirt.io!=virt-launcher")
        if pod["metadata"]["namespace"].startswith("lint-") and is_ready(pod)
    ]
    return Settled(len(others), len(machines)) == settled()


def is_ready(item: Object) -> bool:
    conditions = item["status"].get("conditions", [])
    ready = any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)
    return ready and bool(item["status"].get("phase") == "Running")


def snapshot(api: Api) -> Lists:
    """What cluster_snapshot keeps of the cluster."""
    return {kind.name: [kind.project(item) for item in api.items(kind.path) if kind.keep(item)] for kind in KINDS}


def apply(api: Api, finding: Finding) -> None:
    subject = finding.problem.subject
    metadata = {"name": subject.name, "namespace": subject.namespace}
    path = object_path({"apiVersion": subject.api_version, "kind": subject.kind, "metadata": metadata})
    api.patch(path, finding.to_json()["patch"], "json")


def started_anew(api: Api, case: Case, before: set[str]) -> bool:
    """Whether all VMs of a case are new and run, or wait for the scheduler, and are as many as before."""
    now = vmis(api, case.namespace)
    return len(now) == case.machines and all(
        vmi["metadata"]["uid"] not in before and (vmi["status"].get("phase") == "Running" or is_refused(vmi))
        for vmi in now
    )


def is_refused(vmi: Object) -> bool:
    """Whether the scheduler has looked at the VMI's pod and found no node."""
    conditions = vmi["status"].get("conditions", [])
    return any(entry["type"] == "PodScheduled" and entry["status"] == "False" for entry in conditions)
