# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What this collection notes on objects counts as not there once somebody has tampered with it."""

from __future__ import annotations

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model import cordon, leases, stopped_mark
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object

TAMPERED = ["", "{", "5", "[]", "null", '{"owner": 1}', '{"n1": 5}', '{"n1": {"ready": Infinity}}', "[" * 100_000]


def annotated(name: str, text: str) -> Object:
    return {"metadata": {"namespace": "leases", "name": "a", "annotations": {name: text}}}


@pytest.mark.parametrize("text", TAMPERED)
def test_marks_that_were_tampered_with_are_none(text: str) -> None:
    assert cordon.find_mark(annotated(cordon.CORDON_NOTE, text)) is None
    assert stopped_mark.find_marks(annotated(stopped_mark.STOPPED_NOTE, text)) == {}
    assert stopped_mark.find_notes(annotated("stopped.virtops.kubevirt/uid", text)) == []


@pytest.mark.parametrize("text", TAMPERED)
def test_a_run_is_held_whatever_is_told_of_its_holder(text: str) -> None:
    lease = {**annotated(leases.HOLDER, text), "spec": {"holderIdentity": "patch/abc"}}
    found = leases.parse_run_lease(lease)
    assert found is not None
    assert (found.run, found.invocation, found.user, found.pid) == ("patch", "abc", "", 0)
