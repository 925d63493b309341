# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes for the tests of the simulator; each test has a namespace and faults of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.clusters import remove_deserted
from integration.simulator.lab import Lab
from testbed.handle import RunningTestbed
from testbed.nodes import fake_node

NODES = ("sim-0", "sim-1", "sim-2")


@pytest.fixture(scope="module")
def nodes(testbed: RunningTestbed) -> Iterator[tuple[str, ...]]:
    for name in NODES:
        testbed.api.create("/api/v1/nodes", fake_node(name))
    yield NODES
    remove_deserted(testbed.api, NODES)


@pytest.fixture
def lab(testbed: RunningTestbed, namespace: str, nodes: tuple[str, ...]) -> Iterator[Lab]:
    lab = Lab(testbed, namespace, nodes)
    lab.settle()
    yield lab
    lab.settle()
