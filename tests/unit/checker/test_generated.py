# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans of generated clusters can be carried out, in whatever order their actions begin and end."""

from __future__ import annotations

import random

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import cluster_state
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.verdict import explain

from checker.cluster import CarriedCluster
from checker.order import ByLot
from checker.replay import Replay
from unit.checker.clusters import faults, planned

# Those of test_varied.py are 500 more.
CLUSTERS = 1500
CHUNK = 100


@pytest.mark.parametrize("first", [0, 12])
def test_plans_of_a_few_clusters(first: int) -> None:
    assert list(faults(range(first, first + 12))) == []


# In these VMs that were stopped come back where others of their batch leave no other node.
@pytest.mark.parametrize("seed", [72, 204])
def test_who_starts_when_its_node_is_back_finds_it_free(seed: int) -> None:
    assert list(faults([seed])) == []


# In these they would be in the way of others of their batch that are still to leave, or of the next batch; or they are
# spread with others that were stopped, without whom they fit nowhere.
@pytest.mark.parametrize("seed", [73, 413, 1501, 284])
def test_who_starts_waits_for_others_and_is_waited_for(seed: int) -> None:
    assert list(faults([seed])) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, CLUSTERS, CHUNK))
def test_plans_of_many_clusters(first: int) -> None:
    assert list(faults(range(first, first + CHUNK))) == []


@pytest.mark.parametrize("seed", [1, 2, 9, 28])
def test_the_cluster_meanwhile_is_what_its_lists_say(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What changed step by step answers as if it were built anew at each moment."""
    moments = 0
    answer = CarriedCluster.fits

    def fits(cluster: CarriedCluster, pod: Pod) -> tuple[str, ...]:
        nonlocal moments
        moments += 1
        found = answer(cluster, pod)
        assert sorted(found) == sorted(explain(pod, cluster_state(cluster.lists()))["fit"])
        return found

    monkeypatch.setattr(CarriedCluster, "fits", fits)
    replay = Replay(*planned(seed), ByLot(random.Random(seed).randrange))
    replay.run()
    assert replay.violations == []
    assert moments > 5
