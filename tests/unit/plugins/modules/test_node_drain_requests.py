# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drain asks of the API server grows with the VMs that leave, and by few requests each."""

from __future__ import annotations

from typing import Any

from testbed.pki import Authority
from unit.plugins.support.draining_api import empty_nodes
from unit.plugins.support.fake_api import serving

# Of each: the guard's three looks before and after it, its VMI, its creation, and what watches tell of its phases; it
# is 17 on a machine that does nothing else, and more where answers take longer than a look.
MOST = 40


def asked_for(drain: Any, authority: Authority, number: int) -> int:
    """How many requests a drain takes by which so many VMs are migrated."""
    api = empty_nodes()
    for index in range(number):
        api.add_vmi(f"vm-{index}")
    with serving(api, authority.issue("server", "server", hosts=["127.0.0.1"])):
        result = drain(host=api.url)
    assert [move["outcome"] for move in result["moves"]] == ["migrated"] * number, result["msg"]
    return len(api.requests)


def test_requests_grow_with_the_vms_by_a_few_each(drain: Any, authority: Authority) -> None:
    few, many = asked_for(drain, authority, 4), asked_for(drain, authority, 20)
    assert (many - few) / 16 < MOST
