# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._nodes.keys import key_problem, value_problem


@pytest.mark.parametrize("key", ["performance", "example.com/rack", "topology.kubernetes.io/zone", "kubevirt.io/other"])
def test_keys_that_can_be_set(key: str) -> None:
    assert key_problem(key) is None


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("a b", "cannot be the key"),
        ("", "cannot be the key"),
        ("Example.com/rack", "cannot be the key"),
        ("a" * 64, "cannot be the key"),
        ("failure-domain.beta.kubernetes.io/zone", "is topology.kubernetes.io/zone now"),
        ("kubernetes.io/hostname", "the kubelet sets it"),
        ("kubevirt.io/schedulable", "KubeVirt sets it"),
        ("cpu-model.node.kubevirt.io/Skylake-Server", "KubeVirt sets it"),
        ("topology.kubernetes.io/hostname", "the key of a host is kubernetes.io/hostname"),
    ],
)
def test_keys_that_cannot_be_set(key: str, words: str) -> None:
    assert words in str(key_problem(key))


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("performance", "very high", "cannot be the value"),
        ("performance", "-high", "cannot be the value"),
        ("performance", "h" * 64, "cannot be the value"),
        ("performance", True, "the value True of performance is no text"),
        ("performance", ["high"], "is no text"),
        ("topology.kubernetes.io/zone", "", "is empty"),
    ],
)
def test_values_that_cannot_be(key: str, value: object, words: str) -> None:
    assert words in str(value_problem(key, value))


@pytest.mark.parametrize("value", ["", "high", "1.5", "A_b-c", "h" * 63])
def test_values_that_can_be(value: str) -> None:
    assert value_problem("performance", value) is None
