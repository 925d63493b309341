# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What guests are told in confidence is hidden, and that it changed is not."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.secrets import secrets, without_secrets

from unit.plugins.module_utils._workloads.wording import Json


def volumes(user_data: str) -> Json:
    return {"volumes": [{"name": "c", "cloudInitNoCloud": {"userData": user_data}}, {"name": "e", "emptyDisk": {}}]}


def test_secrets_are_found() -> None:
    assert list(secrets(volumes("password"))) == ["password"]


def test_they_are_hidden_and_nothing_else_is() -> None:
    assert without_secrets(volumes("password")) == volumes("(hidden)")
    assert without_secrets({"a": [1, {"b": None}]}) == {"a": [1, {"b": None}]}


def test_a_change_is_told() -> None:
    assert without_secrets(volumes("new"), volumes("old")) == volumes("(hidden, changed)")
    assert without_secrets(volumes("old"), volumes("old")) == volumes("(hidden)")
    assert without_secrets(volumes("new"), {}) == volumes("(hidden)")


def test_kubectls_copy_of_an_object_is_left_out() -> None:
    """It holds the same secrets, with every quote and line break in them written otherwise."""
    copy = {"kubectl.kubernetes.io/last-applied-configuration": '{"userData": "pass\\nword"}'}
    assert without_secrets({"annotations": {**copy, "team": "a"}}) == {"annotations": {"team": "a"}}
    assert list(secrets({"annotations": copy})) == list(copy.values())


def test_ignition_data_is_hidden() -> None:
    annotations = {"kubevirt.io/ignitiondata": '{"passwd": {}}'}
    assert without_secrets({"annotations": annotations}) == {"annotations": {"kubevirt.io/ignitiondata": "(hidden)"}}
    assert list(secrets({"annotations": annotations})) == ['{"passwd": {}}']
