# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that virt-controller makes, against what is said beforehand, for all kinds of VMs and configurations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks import snapshot_file
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.pod import launcher_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.vmi import vmi_of
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespaces
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import Workloads, title
from ansible_collections.virtops.kubevirt.plugins.modules.cluster_snapshot import main

from integration.launcher import cases, cluster
from integration.launcher.comparing import differences, view
from integration.launcher.lists import read
from testbed.api import Object
from testbed.handle import RunningTestbed
from unit.plugins.support.modules import ModuleRunner


@pytest.fixture(scope="module", autouse=True)
def surroundings(testbed: RunningTestbed) -> Iterator[None]:
    with cluster.cluster(testbed.api):
        yield


@pytest.fixture
def take(run: ModuleRunner, tmp_path: Path) -> Any:
    return partial(run, main, path=str(tmp_path / "cluster.json"))


def test_enough_vms_are_tried() -> None:
    found = [case.intent for name in cases.titles() for case in cases.read(name).cases]
    assert len(found) >= 60


@pytest.mark.parametrize("name", cases.titles())
def test_pods_are_as_foretold(testbed: RunningTestbed, name: str, take: Any) -> None:
    given = cases.read(name)
    with cluster.configured(testbed, given), cluster.namespace(testbed, given) as where:
        manifests = [case.manifest(where, number) for number, case in enumerate(given.cases)]
        before = read(testbed.api)
        vmis = cluster.start(testbed.api, manifests)
        after = read(testbed.api)
        taken = snapshot_file.load(take(kubeconfig=str(testbed.kubeconfig))["snapshot_path"]).lists
    # KubeVirt makes claims for the state of some VMs before it makes their pods.
    before["pvcs"] = after["pvcs"]
    known = Workloads(taken)
    wrong = []
    for case, manifest, vmi in zip(given.cases, manifests, vmis, strict=True):
        pod = Workloads(after).source_pod(vmi)
        item = known.vmi(title(vmi))
        owner = known.vm(title(manifest)) or known.replica_set(title(manifest)) or item
        assert pod
        assert item
        assert owner
        for source, said, images in (
            ("the manifest", foretold(manifest, vmi, before), False),
            ("the cluster", foretold(vmi, vmi, after), True),
            ("its snapshot", foretold(item, vmi, taken), True),
            ("its owner in the snapshot", foretold(owner, vmi, taken), True),
        ):
            found = differences(view(said, images=images), view(pod, images=images))
            wrong += [f"{case.intent}, by {source}: {line}" for line in found]
    assert not wrong, "\n".join(wrong)


def foretold(item: Mapping[str, Any], vmi: Object, known: Any) -> Object:
    """What is said of an object, with the name and uid that its VMI has got since."""
    settings = configuration(known)
    expected = vmi_of(item, settings)
    own = {name: vmi["metadata"][name] for name in ("name", "uid")}
    expected = {**expected, "metadata": {**expected["metadata"], **own}}
    return launcher_pod(expected, settings, Namespaces(known).of(vmi))
