# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VMI is outdated when its replica set would make another one today."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.outlook import is_outdated

from unit.plugins.module_utils._workloads.wording import Json, template


def vmi(**spec: object) -> Json:
    domain = {"memory": {"guest": "1Gi"}, "machine": {"type": "q35"}, "firmware": {"uuid": "u-1"}}
    return {"metadata": {"name": "db1", "labels": {"app": "db"}}, "spec": {"domain": domain, **spec}}


def fresh() -> Json:
    """As the API server admits one of the same template."""
    new = vmi()
    new["spec"]["domain"]["firmware"] = {"uuid": "u-2"}
    return new


def test_a_vmi_of_the_template_is_not() -> None:
    running = vmi()
    running["metadata"]["labels"]["kubevirt.io/nodeName"] = "n1"
    running["metadata"]["annotations"] = {"kubevirt.io/latest-observed-api-version": "v1"}
    assert not is_outdated(running, fresh(), template())


@pytest.mark.parametrize(
    "new",
    [
        {**fresh(), "spec": {**fresh()["spec"], "nodeSelector": {"disk": "ssd"}}},
        {**fresh(), "metadata": {"labels": {"app": "db", "tier": "data"}}},
        {**fresh(), "metadata": {"labels": {"app": "db"}, "annotations": {"team": "x"}}},
    ],
)
def test_one_of_an_older_template_is(new: Json) -> None:
    assert is_outdated(vmi(), new, template())


def test_what_the_template_no_longer_says_counts_too() -> None:
    assert is_outdated(vmi(nodeSelector={"disk": "ssd"}), fresh(), template())


def test_a_uuid_of_the_template_counts() -> None:
    given = copy.deepcopy(template())
    given["spec"]["domain"]["firmware"] = {"uuid": "u-2"}
    assert is_outdated(vmi(), fresh(), given)
