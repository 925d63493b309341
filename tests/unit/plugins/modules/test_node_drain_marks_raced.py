# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drains of two nodes of a batch may both come to stop a VM, or to spare it: who is off in the end has its mark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.stopped_mark import find_marks

from testbed.pki import Authority
from unit.plugins.support.draining_api import DrainingApi, act_path, busy_node, vm_path
from unit.plugins.support.fake_api import Answer, Request, refusal, serving
from unit.plugins.support.migrating_api import vmi_path
from unit.plugins.support.object_api import NODES

STOP = [{"policy": "stop"}]
BUSY = refusal(429, "TooManyRequests", "busy")


@pytest.fixture
def api(authority: Authority) -> Iterator[DrainingApi]:
    fake = busy_node()
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.mark.parametrize("strategy", ["Always", "Manual"])
@pytest.mark.parametrize("path", [f"{NODES}/n1", act_path("stop", "db")], ids=["before it is asked", "right then"])
def test_a_vm_whose_mark_another_process_has_taken_off_is_not_stopped_without_one(
    drain: Any, api: DrainingApi, path: str, strategy: str
) -> None:
    """That has spared it, after this one had marked it."""
    api.add_vm("db", strategy)
    taken = list[str]()

    def takes_it_off(_request: Request) -> Answer | None:
        metadata = api.objects[vm_path("db")]["metadata"]
        if metadata.get("annotations") and not taken:
            taken.extend(metadata.pop("annotations"))
        return None

    api.faults[path] = takes_it_off
    (entry,) = drain(policies=STOP)["interrupted"]
    assert (entry["outcome"], api.acts, len(taken)) == ("stopped", ["stop db"], 1)
    assert list(find_marks(api.objects[vm_path("db")])) == ["n1"]
    assert drain(state="restored")["started"][0]["outcome"] == "started"
    assert api.objects[vm_path("db")]["spec"]["runStrategy"] == strategy


@pytest.mark.parametrize("is_taken", [False, True], ids=["gone", "its name is taken"])
@pytest.mark.parametrize("strategy", ["Always", "Manual"])
def test_the_mark_of_a_vm_that_another_process_has_stopped_meanwhile_stays(
    drain: Any, api: DrainingApi, strategy: str, is_taken: bool
) -> None:
    """The VM can be migrated by now, so that this one is about to spare it. A VMI of its name may be another's."""
    api.add_vm("db", strategy)
    status = api.objects[vmi_path("db")]["status"]
    stopped = list[str]()

    def busy(_request: Request) -> Answer | None:
        status["conditions"] = []
        return None if stopped else BUSY

    def overtaken(request: Request) -> Answer | None:
        if request.method != "PATCH" or status["conditions"] or stopped:
            return None
        stopped.append("by another process")
        if strategy == "Always":
            api.objects[vm_path("db")]["spec"]["runStrategy"] = "Halted"
        api.objects.pop(vmi_path("db"))
        if is_taken:
            api.start("db", "n2", number=5)
            (owner,) = api.objects[vmi_path("db")]["metadata"]["ownerReferences"]
            owner |= {"kind": "VirtualMachineInstanceReplicaSet", "uid": "uid-of-a-set"}
        return refusal(409, "Conflict", "the object has been modified")

    api.faults |= {act_path("stop", "db"): busy, vm_path("db"): overtaken}
    assert drain(policies=STOP).get("msg") is None
    assert (api.acts, len(stopped), list(find_marks(api.objects[vm_path("db")]))) == ([], 1, ["n1"])
    assert any("stopped.virtops" in name for name in api.node("n1")["metadata"]["annotations"]), "the note stays, too"
    api.objects.pop(vmi_path("db"), None)
    assert drain(state="restored")["started"][0]["outcome"] == "started"
