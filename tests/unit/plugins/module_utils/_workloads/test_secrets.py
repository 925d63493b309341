# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What guests are told in confidence is hidden, and that it changed is not."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, TypeAlias

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.secrets import secrets, without_secrets

from unit.plugins.module_utils._model.projected import CASES, merged
from unit.plugins.module_utils._workloads.wording import Json

CANARY = "canary-6b1f"
Place: TypeAlias = "tuple[str | int, ...]"
# Of a VMI: what snapshots drop only because nothing depends on it. Names of Secrets are none.
HARMLESS = {
    "spec.accessCredentials.sshPublicKey.source.secret.secretName",
    "spec.domain.firmware.kernelBoot.container.kernelPath",
    "spec.domain.firmware.serial",
    "spec.domain.firmware.uuid",
    "spec.readinessProbe.httpGet.path",
    "spec.subdomain",
    "spec.volumes.cloudInitConfigDrive.secretRef.name",
    "spec.volumes.containerDisk.imagePullSecret",
    "spec.volumes.sysprep.secret.name",
}
HOOKS: Place = ("metadata", "annotations", "hooks.kubevirt.io/hookSidecars")


def templates(part: str) -> list[Json]:
    """Those of VMIs in the tables of what snapshots keep: `kept` or `dropped` of each. A VMI is one itself."""
    found = [(case["list"], case[part]) for case in CASES if case["list"] in ("vmis", "vms", "vmireplicasets")]
    bare = [value if kind == "vmis" else value["spec"].get("template", {}) for kind, value in found]
    return [{key: value[key] for key in ("metadata", "spec") if key in value} for value in bare]


def texts(value: Any, place: Place = ()) -> Iterator[Place]:
    if isinstance(value, str):
        yield place
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in entries:
        yield from texts(part, (*place, key))


def dotted(place: Place) -> str:
    return ".".join(part for part in place if isinstance(part, str))


def planted(template: Json, place: Place, value: str) -> Json:
    found: Any = copy.deepcopy(template)
    within = found
    for key in place[:-1]:
        within = within[key]
    within[place[-1]] = value
    return dict(found)


TEMPLATES = [merged(*parts) for parts in zip(templates("kept"), templates("dropped"), strict=True)]
DROPPED = [
    pytest.param(template, place, id=dotted(place))
    for template, dropped in zip(TEMPLATES, templates("dropped"), strict=True)
    for place in (*texts(dropped), *([HOOKS] if "annotations" in template.get("metadata", {}) else []))
    if dotted(place) not in HARMLESS
]


@pytest.mark.parametrize(("template", "place"), DROPPED)
def test_what_snapshots_drop_is_hidden_and_that_it_changed_is_not(template: Json, place: Place) -> None:
    before, after = planted(template, place, f"{CANARY}-1"), planted(template, place, f"{CANARY}-2")
    shown = [without_secrets(before), without_secrets(after, before)]
    assert CANARY not in str(shown)
    if "last-applied" not in str(place[-1]):
        assert shown[0] != shown[1]


def test_what_is_said_to_be_harmless_is_dropped() -> None:
    assert {dotted(place) for dropped in templates("dropped") for place in texts(dropped)} >= HARMLESS


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


def test_a_change_is_told_when_the_list_around_it_has_changed_too() -> None:
    before, after = volumes("old"), volumes("new")
    after["volumes"].insert(0, {"name": "first"})
    assert without_secrets(after, before)["volumes"][1:] == volumes("(hidden, changed)")["volumes"]


def test_labels_are_called_as_one_likes() -> None:
    labelled = {"metadata": {"labels": {"session": "a"}}, "selector": {"matchLabels": {"command": "b"}}}
    assert without_secrets(labelled) == labelled
    assert list(secrets(labelled)) == []


def test_the_words_of_commands_are_not_struck_out_elsewhere() -> None:
    """With a user called postgres the name of a VM would be, wherever it is told."""
    headers = [{"name": "Authorization", "value": "Bearer a"}]
    probe = {"exec": {"command": ["pg_isready", "-U", "postgres"]}, "httpGet": {"httpHeaders": headers}}
    assert list(secrets({"livenessProbe": probe})) == ["Bearer a"]
