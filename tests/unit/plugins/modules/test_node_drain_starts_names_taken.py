# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VMI of a VM's name need not be the VM's: KubeVirt makes its own what is nobody's, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from testbed.pki import Authority
from unit.plugins.modules.test_node_drain_starts import is_marked, stop_and_be_killed
from unit.plugins.support.draining_api import DrainingApi, act_path, empty_nodes, vm_path
from unit.plugins.support.fake_api import Answer, Request, refusal, serving
from unit.plugins.support.migrating_api import vmi_path

TAKEN = "shop/pets: waiting, a VMI of its name is not its own"


@pytest.fixture
def api(authority: Authority) -> Iterator[DrainingApi]:
    fake = empty_nodes()
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


def is_made(api: DrainingApi) -> None:
    """By somebody who gives his VMI the VM's name."""
    api.start("pets", "n2", number=5)
    del api.objects[vmi_path("pets")]["metadata"]["ownerReferences"]


def is_adopted(api: DrainingApi) -> None:
    vmi = api.objects[vmi_path("pets")]
    api.start("pets", "n2", number=5)
    api.objects[vmi_path("pets")]["status"] = vmi["status"]


@pytest.fixture(params=["Manual", "RerunOnFailure"])
def off(request: pytest.FixtureRequest, drain: Any, api: DrainingApi) -> str:
    """A VM that is off; its strategy."""
    strategy = str(request.param)
    stop_and_be_killed(drain, api, strategy)
    api.shut_down("pets")
    return strategy


def test_a_vmi_of_the_name_of_a_vm_is_not_taken_for_it(drain: Any, api: DrainingApi, off: str) -> None:
    is_made(api)
    assert TAKEN in drain(state="restored", wait_timeout=1)["msg"]
    assert (is_marked(api), api.acts) == (True, ["stop pets"])
    del api.objects[vmi_path("pets")]
    (entry,) = drain(state="restored")["started"]
    assert (entry["outcome"], is_marked(api), api.acts) == ("started", False, ["stop pets", "start pets"])


def test_one_that_kubevirt_makes_its_own_is_the_vms(drain: Any, api: DrainingApi, off: str) -> None:
    is_made(api)
    drain(state="restored", wait_timeout=1)
    is_adopted(api)
    (entry,) = drain(state="restored")["started"]
    assert (entry["outcome"], entry["node"], is_marked(api)) == ("started", "n2", False)


def test_one_that_is_made_at_the_request_to_start_the_vm_is_not_its_own(drain: Any, api: DrainingApi, off: str) -> None:
    """virt-api refuses the request then, as if the VM ran; nothing of it is to be forgotten."""

    def make(_request: Request) -> Answer:
        is_made(api)
        return refusal(409, "Conflict", "VM is already running")

    api.faults[act_path("start", "pets")] = make
    assert TAKEN in drain(state="restored", wait_timeout=1)["msg"]
    assert is_marked(api)
    del api.faults[act_path("start", "pets")], api.objects[vmi_path("pets")]
    (entry,) = drain(state="restored")["started"]
    assert (entry["outcome"], api.objects[vm_path("pets")]["spec"]["runStrategy"]) == ("started", off)
