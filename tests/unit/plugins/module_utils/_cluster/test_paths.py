# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A name never makes the path of anything but the one object that it names."""

from __future__ import annotations

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.paths import (
    collection_path,
    object_path,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest


def test_paths_as_the_api_has_them() -> None:
    assert collection_path("v1", None, "nodes") == "/api/v1/nodes"
    assert collection_path("kubevirt.io/v1", None, "virtualmachines") == "/apis/kubevirt.io/v1/virtualmachines"
    assert object_path("v1", None, "nodes", "n1.example.org") == "/api/v1/nodes/n1.example.org"
    assert object_path("apps/v1", "shop", "deployments", "db") == "/apis/apps/v1/namespaces/shop/deployments/db"


def test_a_name_stays_one_part_of_the_path() -> None:
    assert object_path("v1", "a?b", "pods", "x y#z") == "/api/v1/namespaces/a%3Fb/pods/x%20y%23z"


@pytest.mark.parametrize("name", ["", " ", ".", "..", "x/../db", "db/status", "x%2Fdb"])
def test_a_name_that_would_be_another_path_makes_none(name: str) -> None:
    with pytest.raises(InvalidRequest, match="the name of one of the pods is"):
        object_path("v1", "shop", "pods", name)
    with pytest.raises(InvalidRequest, match="the name of one of the namespaces is"):
        object_path("v1", name, "pods", "db")
    with pytest.raises(InvalidRequest, match="the name of one of the namespaces is"):
        collection_path("v1", name, "pods")
