# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decoding with shared parts gives what json gives, only less of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_sharing import decode_shared

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=2), children, max_size=4),
    max_leaves=40,
)


@given(json_values)
def test_the_value_is_the_same(value: Any) -> None:
    text = json.dumps(value)
    # Compared as text, too, as 1, 1.0 and true are equal.
    assert json.dumps(decode_shared(text)) == text
    assert decode_shared(text) == value


# As in the API: what stands in a list is no list itself.
texts = st.text(max_size=2)
objects: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.dictionaries(texts, texts | st.none() | st.booleans()),
    lambda children: st.dictionaries(texts, texts | children | st.lists(texts | children, max_size=3), max_size=3),
    max_leaves=20,
)


@given(objects)
def test_equal_objects_are_one(value: dict[str, Any]) -> None:
    first, second = decode_shared(json.dumps([value, value]))
    assert first is second


def test_what_is_empty_keeps_its_type() -> None:
    assert decode_shared('{"a": {}, "b": [], "c": "", "d": [[], {}]}') == {"a": {}, "b": [], "c": "", "d": [[], {}]}


def test_what_is_not_json_is_refused() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        decode_shared(b'{"a"')
