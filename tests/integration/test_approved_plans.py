# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan of the demonstration application is written and printed, approved by its file, and carried out later."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml

from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import decode, encode

from faults.proxy import proxied
from integration.clusters import loaded
from integration.playbooks import run
from testbed.api import Api, resource_path
from testbed.handle import RunningTestbed
from testbed.scenarios import files
from testbed.waiting import wait_for

CUSTOMAPP = files.read(files.FOLDER / "customapp.yaml")
NAMESPACE, LABEL = "customapp", "virtops.kubevirt/maintained"
# A node with a cache and a black box that move away, and one with a database that cannot.
NODES = ["kni-worker", "kni-worker4"]
RUN: dict[str, Any] = {"plan_maintenance_run": "approved"}
ASKED: dict[str, Any] = {
    **RUN,
    "plan_maintenance_nodes": NODES,
    "plan_maintenance_policies": [{"selector": {"app": "mssql2016"}, "policy": "stop"}],
    "plan_maintenance_delete_emptydir_data": True,
}


@pytest.fixture
def customapp(testbed: RunningTestbed) -> Iterator[Api]:
    with loaded(testbed.api, CUSTOMAPP):
        yield testbed.api


def play(testbed: RunningTestbed, folder: Path, *words: str, **settings: Any) -> CompletedProcess[str]:
    """The role alone."""
    playbook = folder / "plan.yml"
    content = {
        "hosts": "localhost",
        "gather_facts": False,
        "module_defaults": {"group/virtops.kubevirt.all": {"kubeconfig": str(testbed.kubeconfig)}},
        "roles": ["virtops.kubevirt.plan_maintenance"],
    }
    playbook.write_text(yaml.safe_dump([content], sort_keys=False))
    return run(playbook, "-e", json.dumps(settings), *words)


def maintain(testbed: RunningTestbed, folder: Path, **settings: Any) -> CompletedProcess[str]:
    """The whole run, with a maintenance that only says so."""
    hook, playbook = folder / "hook.yml", folder / "site.yml"
    hook.write_text(yaml.safe_dump([{"ansible.builtin.debug": {"msg": "maintained {{ inventory_hostname }}"}}]))
    given = {
        "rolling_maintenance_kubeconfig": str(testbed.kubeconfig),
        "rolling_maintenance_tasks": str(hook),
        "rolling_maintenance_rebalance": False,
        "uncordon_wait_sleep": 1,
    }
    playbook.write_text("- import_playbook: virtops.kubevirt.rolling_maintenance\n")
    return run(playbook, "-e", json.dumps({**given, **settings}))


def told(done: CompletedProcess[str]) -> str:
    return done.stdout[-6000:] + done.stderr[-2000:]


def words(done: CompletedProcess[str]) -> str:
    """All that was printed, however it was broken into lines."""
    return " ".join((done.stdout + done.stderr).split())


def actions(plan: Path, kind: str) -> list[dict[str, Any]]:
    return [entry for entry in json.loads(plan.read_text())["actions"] if entry["kind"] == kind]


def title(entry: dict[str, Any]) -> str:
    return f"{entry['object']['namespace']}/{entry['object']['name']}"


def cordoned_or_maintained(api: Api) -> list[str]:
    nodes = api.items("/api/v1/nodes")
    return sorted(
        node["metadata"]["name"]
        for node in nodes
        if node["spec"].get("unschedulable") or node["metadata"]["labels"].get(LABEL) == RUN["plan_maintenance_run"]
    )


def where(api: Api) -> dict[str, str]:
    vmis = api.items(resource_path("kubevirt.io/v1", "virtualmachineinstances", NAMESPACE))
    return {vmi["metadata"]["name"]: vmi["status"].get("nodeName", "") for vmi in vmis}


def test_a_plan_is_approved_by_its_file_and_comes_true_later(
    testbed: RunningTestbed, customapp: Api, tmp_path: Path
) -> None:
    plan = tmp_path / "approved.json"
    planned = play(testbed, tmp_path, plan_maintenance_path=str(plan), **ASKED)
    assert planned.returncode == 0, told(planned)
    moves = actions(plan, "migrate")
    assert moves
    assert actions(plan, "stop")
    printed = [line.strip(' ",') for line in planned.stdout.splitlines()]
    for kind, noun in (("migrate", "VM "), ("evict", "pod")):
        for entry in actions(plan, kind):
            assert any(line.startswith(f"{noun} {title(entry)} -> {entry['to']}") for line in printed), told(planned)
    assert sum(" -> " in line for line in printed) == len(moves) + len([e for e in actions(plan, "evict") if e["to"]])
    assert cordoned_or_maintained(customapp) == []

    content = plan.read_bytes()
    forecast = play(
        testbed, tmp_path, "--check", plan_maintenance_path=str(plan), **{**ASKED, "plan_maintenance_batch": 2}
    )
    assert forecast.returncode == 0, told(forecast)
    assert "the batches are kni-worker+kni-worker4; they were kni-worker, kni-worker4" in forecast.stdout
    assert plan.read_bytes() == content

    done = maintain(testbed, tmp_path, plan_maintenance_file=str(plan), **RUN)
    assert done.returncode == 0, told(done)
    assert [
        entry["object"]["name"] for entry in moves if where(customapp)[entry["object"]["name"]] != entry["to"]
    ] == []
    assert cordoned_or_maintained(customapp) == NODES
    assert plan.read_bytes() == content

    again = maintain(testbed, tmp_path, plan_maintenance_file=str(plan), **RUN)
    assert again.returncode == 0, told(again)
    assert "Done already: kni-worker, kni-worker4" in again.stdout
    assert "maintained kni" not in again.stdout


@contextmanager
def lonely_pod(api: Api, on: str) -> Iterator[str]:
    """A pod that nothing would replace, on a node; its title, as long as the context lasts."""
    metadata = {"name": "lonely", "namespace": NAMESPACE}
    spec = {"nodeName": on, "containers": [{"name": "main", "image": "registry.example/x:1"}]}
    path = resource_path("v1", "pods", NAMESPACE)
    api.create(path, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    try:
        yield f"{NAMESPACE}/lonely"
    finally:
        api.delete(f"{path}/lonely", gracePeriodSeconds=0)
        wait_for("the end of the pod", lambda: "lonely" not in {pod["metadata"]["name"] for pod in api.items(path)}, 60)


def test_a_plan_is_held_against_the_cluster_of_the_evening_before_anything_is_touched(
    testbed: RunningTestbed, customapp: Api, tmp_path: Path
) -> None:
    """On the node of the last batch a pod has come since noon that nothing would replace."""
    plan, snapshot = tmp_path / "approved.json", tmp_path / "cluster.json"
    assert play(testbed, tmp_path, plan_maintenance_path=str(plan), **ASKED).returncode == 0
    content, approved = plan.read_bytes(), json.loads(plan.read_text())["sha256"]
    given = {**RUN, "plan_maintenance_file": str(plan), "plan_maintenance_sha256": approved}

    same = play(testbed, tmp_path, plan_maintenance_drift="fail", **given)
    assert same.returncode == 0, told(same)
    assert "is right for the cluster as it is now." in words(same), told(same)

    with lonely_pod(customapp, NODES[-1]) as pod:
        refused = maintain(testbed, tmp_path, plan_maintenance_drift="fail", **given)
        assert refused.returncode != 0, told(refused)
        assert f"pod {pod} cannot leave: nothing would replace it" in words(refused), told(refused)
        assert "set plan_maintenance_drift to repair" in words(refused), told(refused)
        assert cordoned_or_maintained(customapp) == []

        partial = maintain(testbed, tmp_path, **given)
        assert partial.returncode != 0, told(partial)
        assert f"Mended: pod {pod} cannot leave: nothing would replace it" in words(partial), told(partial)
        assert f"nothing was touched. These could be maintained without the others: {NODES[0]}." in words(partial), (
            told(partial)
        )
        assert cordoned_or_maintained(customapp) == []

        kept = {"plan_maintenance_infeasible": "report", "plan_maintenance_snapshot": str(snapshot)}
        mended = play(testbed, tmp_path, **kept, **given)
        assert mended.returncode == 0, told(mended)
        rest = json.loads((tmp_path / "cluster-rest.json").read_text())
        assert rest["verdict"] == "partial"
        assert rest["sha256"] != approved
    assert plan.read_bytes() == content

    done = maintain(testbed, tmp_path, plan_maintenance_drift="fail", **given)
    assert done.returncode == 0, told(done)
    assert cordoned_or_maintained(customapp) == NODES


def kept_privately(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    path.chmod(0o600)
    return str(path)


def mistaken(folder: Path, plan: Path) -> list[tuple[dict[str, Any], str]]:
    """What is given in place of a plan that was approved, or beside it, and what is said of it."""
    content = plan.read_bytes()
    made, document = decode(content), json.loads(content)
    foreign = encode(replace(made, cluster=replace(made.cluster, uid="another")))
    # With a digest of its own that is right.
    first = tuple(entry for entry in made.actions if entry.node == NODES[0])
    unknown = encode(replace(made, batches=((NODES[0],), ("kni-worker44",)), actions=first, blocked=()))
    # As one of another release, in which plans had no digest of their own.
    older = {name: value for name, value in document.items() if name != "sha256"}
    older["schema"] = "virtops.kubevirt/maintenance-plan/1"
    files = {
        "foreign": (foreign, "it is for the cluster another, and this is"),
        "unknown": (unknown, "node kni-worker44 is no longer there"),
        "edited": (
            content.replace(b'"to": "', b'"to": "another-', 1),
            "The plan was edited since it was made: its digest would be",
        ),
        "older": (json.dumps(older).encode(), "maintenance-plan/1', but this release reads"),
        "half": (content[: len(content) // 2], "half.json: This is no plan, as it is not JSON"),
    }
    public = folder / "public.json"
    public.write_bytes(content)
    public.chmod(0o644)
    own = {"plan_maintenance_file": str(plan)}
    return [
        *(
            ({"plan_maintenance_file": kept_privately(folder / f"{name}.json", file)}, words)
            for name, (file, words) in files.items()
        ),
        ({"plan_maintenance_file": str(public)}, "its mode is 0644, so that others may read or change it"),
        ({**own, "plan_maintenance_sha256": "0" * 64}, "is not the one that was meant"),
        ({**own, "plan_maintenance_run": "other"}, "it is for run 'approved'"),
        (
            {**own, "plan_maintenance_nodes": ["kni-worker"]},
            "plan_maintenance_nodes does not stand for kni-worker4, which the plan maintains. Leave them out",
        ),
        ({**own, "plan_maintenance_batch": 3}, "batch is 3, but the run has 2 nodes"),
        ({**ASKED, "plan_maintenance_batch": 3}, "batch is 3, but the run has 2 nodes"),
    ]


def test_another_plan_than_the_approved_one_is_refused_and_nothing_is_written(
    testbed: RunningTestbed, customapp: Api, tmp_path: Path
) -> None:
    plan = tmp_path / "approved.json"
    assert play(testbed, tmp_path, plan_maintenance_path=str(plan), **ASKED).returncode == 0
    with proxied(testbed.kubeconfig, tmp_path, 0) as (kubeconfig, proxy):
        for given, expected in mistaken(tmp_path, plan):
            asked = {**RUN, "rolling_maintenance_kubeconfig": str(kubeconfig), **given}
            refused = maintain(testbed, tmp_path, **asked)
            assert refused.returncode != 0, expected
            assert expected in words(refused), told(refused)
            assert "maintained kni" not in refused.stdout
        # It was asked, but for rights and what it is only.
        assert proxy.requests > 0
        assert [path for _method, path in proxy.carried_out if not path.endswith("selfsubjectaccessreviews")] == []
    assert cordoned_or_maintained(customapp) == []
