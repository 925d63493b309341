# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan survives being written and read, its schema knows it, and what is no plan is refused in a sentence."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given

from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import (
    PlanError,
    decode,
    encode,
    from_json,
    sha256,
    to_json,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    ActionKind,
    Blocked,
    ObjectReference,
    Plan,
    plan_of,
)

from unit.plugins.module_utils._plan.plans import action, plan, plans, vm

SCHEMA = json.loads((Path(__file__).parents[5] / "docs/schemas/maintenance-plan.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
FIRST = action(ActionKind.MIGRATE, vm("a"), "n1", "n2")
CORDON = action(ActionKind.CORDON, ObjectReference("Node", "", "n1", "uid-n1"), "n1")
SECOND = action(ActionKind.MIGRATE, vm("b"), "n1", "n3", FIRST)
WHOLE = to_json(plan(FIRST, SECOND, blocked=(Blocked(vm("c"), "n1", ("why",)),)))


@given(plans())
def test_a_plan_is_read_as_it_was_written(written: Plan) -> None:
    VALIDATOR.validate(json.loads(encode(written)))
    assert decode(encode(written)) == written
    assert sha256(decode(encode(written))) == sha256(written)


def test_a_plan_without_batches_moves_something_and_maintains_nothing() -> None:
    moves = plan_of([FIRST, SECOND])
    VALIDATOR.validate(json.loads(encode(moves)))
    assert decode(encode(moves)) == moves
    assert (moves.totals.migrations, moves.totals.evictions, moves.totals.seconds) == (2, 0, None)


def test_the_schema_is_a_schema_and_refuses_other_keys() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    document = {**to_json(plan(FIRST)), "novel": 1}
    with pytest.raises(jsonschema.ValidationError, match="novel"):
        jsonschema.validate(document, SCHEMA)


def test_the_hash_is_of_the_meaning() -> None:
    document = to_json(plan(FIRST, SECOND))
    mixed = json.loads(json.dumps(document, sort_keys=True, indent=8))
    assert sha256(from_json(mixed)) == sha256(plan(FIRST, SECOND))
    assert mixed["sha256"] == sha256(plan(FIRST, SECOND))
    assert sha256(plan(replace(FIRST, target="n9"), SECOND)) != sha256(plan(FIRST, SECOND))


def test_a_plan_that_was_edited_by_hand_says_so_itself() -> None:
    document = to_json(plan(FIRST, SECOND))
    document["actions"][0]["to"] = "n9"
    with pytest.raises(PlanError) as refused:
        from_json(document)
    edited = sha256(plan(replace(FIRST, target="n9"), SECOND))
    assert str(refused.value) == (
        f"The plan was edited since it was made: its digest would be {edited} by what it says, and it has "
        f"{document['sha256']}. Make it again, with options for what it is to be."
    )
    del document["sha256"]
    with pytest.raises(PlanError, match=r"The plan is damaged: a part of it has no 'sha256'"):
        from_json(document)


def test_the_digest_is_that_of_the_schemas_description() -> None:
    """Others may take it as well, for what they approve."""
    document = to_json(plan(FIRST, SECOND))
    digest = document.pop("sha256")
    said = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    assert digest == hashlib.sha256(said.encode("ascii")).hexdigest()


@pytest.mark.parametrize(
    "way",
    [
        (),
        ("cluster",),
        ("snapshot",),
        ("totals",),
        ("actions", 0),
        ("actions", 0, "object"),
        ("blocked", 0),
        ("blocked", 0, "obstacle"),
    ],
)
def test_what_nobody_reads_is_in_no_plan(way: tuple[Any, ...]) -> None:
    """The schema forbids it, too."""
    document = json.loads(json.dumps(WHOLE))
    reduce(getitem, way, document)["note"] = "only on Sundays"
    assert not VALIDATOR.is_valid(document)
    with pytest.raises(PlanError, match="it has more in it than a plan has"):
        from_json(document)


def test_what_people_read_is_what_is_done() -> None:
    """Of two equal keys the last one counts to a program, and the first one to a reader; the digest knows no other."""
    content = encode(plan(FIRST, SECOND))
    assert content.count(b'"to": "n2"') == 1
    doubled = content.replace(b'"to": "n2"', b'"to": "n99", "to": "n2"')
    assert json.loads(doubled) == json.loads(content)
    with pytest.raises(PlanError, match="an object of it has 'to' more than once"):
        decode(doubled)


def test_what_is_nested_too_deep_is_refused() -> None:
    """It can be read, and not be written again."""
    document = to_json(plan(FIRST))
    deep: list[Any] = []
    for _level in range(100_000):
        deep = [deep]
    document["options"] = {"x": deep}
    with pytest.raises(PlanError, match="The plan is damaged: maximum recursion"):
        from_json(document)


def test_the_version_without_digests_is_refused() -> None:
    """It would be a way to edit a plan unnoticed."""
    document = {**to_json(plan(FIRST)), "schema": "virtops.kubevirt/maintenance-plan/1"}
    del document["sha256"]
    with pytest.raises(PlanError, match="but this release reads"):
        from_json(document)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"schema": "virtops.kubevirt/maintenance-plan/0"},
            "this release reads 'virtops.kubevirt/maintenance-plan/3' only",
        ),
        ({"schema": None}, "it has no `schema`"),
        ({"verdict": "maybe"}, "The plan is damaged: 'maybe' is not a valid Verdict. Make it again"),
        ({"cluster": []}, "The plan is damaged: .. is no mapping. Make it again"),
        ({"snapshot": {"sha256": "a", "taken": 7}}, "The plan is damaged: 7 is no text. Make it again"),
        ({"totals": {**WHOLE["totals"], "proof": "gap"}}, "'gap' is none of optimal, none"),
        ({"actions": [{}]}, "The plan is damaged: a part of it has no 'id'. Make it again"),
        ({"actions": ["cordon"]}, "The plan is damaged: 'cordon' is no mapping. Make it again"),
        ({"batches": [], "actions": [{**to_json(plan(FIRST))["actions"][0], "batch": 2}]}, "is of batch 2, of 0"),
        (
            {"batches": [], "actions": to_json(plan(CORDON))["actions"]},
            "1.cordon.n1 is about a node, and no batch has one",
        ),
        ({"actions": [to_json(plan(FIRST, SECOND))["actions"][1]]}, "waits for 1.migrate.shop/a"),
        ({"actions": to_json(plan(FIRST))["actions"] * 2}, "1.migrate.shop/a stands in it twice"),
        ({"batches": [["n1"], ["n3", "n1"]]}, "node n1 stands in batch 1 and in batch 2"),
        ({"batches": [["n1", "n1"]]}, "node n1 stands in batch 1 twice"),
        ({"batches": [["n2"], ["n1"]]}, "1.migrate.shop/a is for node n1, which is not in batch 1"),
        (
            {"batches": [["n1"]], "blocked": to_json(plan(blocked=(Blocked(vm("c"), "n2", ("why",)),)))["blocked"]},
            "shop/c cannot leave node n2, which is in no batch",
        ),
    ],
)
def test_what_is_no_plan_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        from_json({**to_json(plan(FIRST, SECOND)), **change})


def leaves(value: Any) -> Iterator[list[Any]]:
    """The way to each value in a document, and to each that holds others."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield [key]
        yield from ([key, *way] for way in leaves(part))


@pytest.mark.parametrize("way", list(leaves(WHOLE)), ids=lambda way: ".".join(map(str, way)))
def test_a_value_of_another_type_is_refused(way: list[Any]) -> None:
    """As the schema has the types."""
    document = json.loads(json.dumps(WHOLE))
    *outer, last = way
    holder = reduce(getitem, outer, document)
    was = holder[last]
    others: tuple[Any, ...] = (1, 1.5, "1", True, None, [], {})
    for value in others:
        holder[last] = value
        if type(value) is not type(was) and not VALIDATOR.is_valid(document):
            with pytest.raises(PlanError) as refused:
                from_json(document)
            assert "edited" not in str(refused.value), "the type itself is to be refused"


@pytest.mark.parametrize("content", [b"", b"[", b"[]", b"{}", b"\xff", b"[" * 100_000])
def test_what_is_no_document_is_refused(content: bytes) -> None:
    with pytest.raises(PlanError, match="This is no plan"):
        decode(content)
