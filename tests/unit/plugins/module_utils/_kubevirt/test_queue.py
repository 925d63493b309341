# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who holds a place, who waits, and when a set of migrations is done."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import surroundings
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Migrations
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.queue import (
    PRIORITIES,
    Job,
    Queue,
    Span,
    queue,
    timetable,
)

from unit.plugins.module_utils._kubevirt.machines import kubevirt, launcher, migration, vmi


def found(*migrations: Any, **lists: Any) -> Queue:
    return queue(surroundings({"migrations": migrations, **lists}))


def names(entries: Any) -> list[str]:
    return [entry.vmi for entry in entries]


def test_who_has_a_target_pod_holds_a_place() -> None:
    target = launcher(vmi("b"), "target", node="")
    target["metadata"]["labels"]["kubevirt.io/migrationJobUID"] = "uid-b-migration"
    machines = [vmi(name) for name in "abcd"]
    phases = {"a": "Scheduling", "b": "Pending", "c": "Pending", "d": ""}
    now = found(*(migration(name, phase) for name, phase in phases.items()), pods=[target], vmis=machines)
    assert (names(now.running), names(now.waiting)) == (["a", "b"], ["c", "d"])
    assert (now.free, now.free_on("n1"), now.free_on("n2")) == (3, 0, 2)


def test_the_node_of_the_last_migration_counts_until_the_next_is_handed_over() -> None:
    machine = vmi("a", status={"migrationState": {"sourceNode": "n0"}})
    assert found(migration("a"), vmis=[machine]).outbound == {"n0": 1, "n1": 1}
    machine["status"]["migrationState"]["sourceNode"] = "n1"
    assert found(migration("a"), vmis=[machine]).outbound == {"n1": 1}


GATE = {"featureGates": ["MigrationPriorityQueue"]}


@pytest.mark.parametrize(
    ("developer", "order"),
    [(GATE, ["first", "early", "late", "last"]), ({}, ["early", "late", "last", "first"])],
)
def test_the_wait_is_by_priority_if_that_counts_then_by_age(developer: Any, order: list[str]) -> None:
    late, early, first, last = (migration(name, "Pending") for name in ("late", "early", "first", "last"))
    late["metadata"]["creationTimestamp"], early["metadata"]["creationTimestamp"] = "2026-01-02", "2026-01-01"
    first["spec"]["priority"], last["metadata"]["creationTimestamp"] = "system-critical", "2026-01-03"
    first["metadata"]["creationTimestamp"] = "2026-01-04"
    now = found(late, last, early, first, kubevirts=[kubevirt(developerConfiguration=developer)])
    assert names(now.waiting) == order


def test_caps_come_from_the_configuration() -> None:
    caps = kubevirt(migrations={"parallelMigrationsPerCluster": 1, "parallelOutboundMigrationsPerNode": 3})
    now = found(migration("a"), vmis=[vmi("a")], kubevirts=[caps])
    assert (now.free, now.free_on("n2")) == (0, 0)


def at_once(*jobs: Job, caps: Migrations | None = None, taken: tuple[Job, ...] = ()) -> list[tuple[float, float]]:
    return [(span.start, span.end) for span in timetable(jobs, caps or Migrations(), taken)]


def test_a_node_lets_two_go_at_a_time() -> None:
    assert at_once(*[Job("n1", 12)] * 3) == [(0, 12), (0, 12), (15, 27)]


def test_the_cluster_lets_five_go_at_a_time() -> None:
    jobs = [Job(f"n{number}", 10) for number in range(6)]
    assert at_once(*jobs)[-1] == (10, 20)


def test_who_is_preferred_goes_first_and_looks_again_sooner() -> None:
    one = Migrations(parallel_per_cluster=1, by_priority=True)
    jobs = (Job("a", 4), Job("a", 4), Job("a", 4, "user-triggered"), Job("a", 4, "system-critical"))
    assert at_once(*jobs, caps=one) == [(10, 14), (15, 19), (6, 10), (0, 4)]


def test_without_the_feature_gate_nobody_is_preferred() -> None:
    one = Migrations(parallel_per_cluster=1)
    jobs = (Job("a", 4), Job("a", 4, "user-triggered"), Job("a", 4, "system-critical"))
    assert at_once(*jobs, caps=one) == [(0, 4), (5, 9), (10, 14)]


def test_what_is_under_way_keeps_its_place() -> None:
    assert at_once(Job("n1", 5), taken=(Job("n1", 3), Job("n1", 9))) == [(5, 10)]


@pytest.mark.parametrize("caps", [Migrations(parallel_per_cluster=0), Migrations(parallel_outbound_per_node=0)])
def test_without_places_nothing_starts(caps: Migrations) -> None:
    assert at_once(Job("n1", 5), caps=caps) == [(math.inf, math.inf)]


jobs = st.lists(
    st.builds(Job, st.sampled_from("abc"), st.integers(1, 40).map(float), st.sampled_from(sorted(PRIORITIES))),
    max_size=12,
)


@given(jobs, st.integers(1, 4), st.integers(1, 3), st.booleans())
def test_no_cap_is_ever_exceeded(asked: list[Job], cluster: int, outbound: int, by_priority: bool) -> None:
    caps = Migrations(parallel_per_cluster=cluster, parallel_outbound_per_node=outbound, by_priority=by_priority)
    spans = timetable(asked, caps)
    for span in spans:
        together = [job for job, other in zip(asked, spans, strict=True) if overlaps(other, span.start)]
        assert len(together) <= cluster
        assert max(sum(job.node == node for job in together) for node in "abc") <= outbound
    assert all(span.end - span.start == job.seconds for job, span in zip(asked, spans, strict=True))


def overlaps(span: Span, moment: float) -> bool:
    return span.start <= moment < span.end
