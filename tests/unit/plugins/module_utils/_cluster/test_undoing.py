# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who undoes a run goes on only where a failure is about what he undoes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.undoing import Undoing
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import maintenance

from testbed.pki import Authority
from unit.plugins.support.own_time import failure
from unit.plugins.support.run_api import RunApi, running

NAMESPACE = "medik8s-leases"


@pytest.fixture
def api(authority: Authority) -> Iterator[RunApi]:
    with running(authority.issue("server", "server", hosts=["127.0.0.1"])) as fake:
        fake.add_node("n1")
        yield fake


# Before a node is given back, after the looks at it, and before it is written.
@pytest.mark.parametrize("looks", [1, 2, 3])
@pytest.mark.parametrize("status", [401, 403])
def test_who_may_not_see_any_more_whose_the_run_is_stops(
    api: RunApi, connection: dict[str, str], status: int, looks: int
) -> None:
    """Though he may again a moment later."""
    client, asked = connect_by(connection, 5), list[int]()
    taken = maintenance.Request("n1", "kernel", None, False, NAMESPACE, 60, False, run="kernel")
    maintenance.begin(client, taken, wait_seconds=0, pause=1)

    def require() -> None:
        asked.append(len(api.writes()))
        if len(asked) == looks:
            raise failure(status)

    with pytest.raises(Failure, match=f"answered {status}"):
        Undoing(client, "kernel", NAMESPACE, 5, require).undo()
    assert len(asked) == looks
    assert api.node("n1")["spec"]["unschedulable"]
