# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.simulator.course import LINK, PAUSED, POST_COPY, PRE_COPY, Course, Guest, Limits, cut, limits, plan

GB = 1e9
SLOW = Limits(
    GB, completion_timeout=150, progress_timeout=150, auto_converge=False, post_copy=False, workload_disruption=False
)
DIRTY = Guest(GB, dirty_rate=2 * GB)


def test_a_quiet_guest_takes_memory_over_bandwidth() -> None:
    assert plan(Guest(16 * GB), SLOW) == Course(16.0)


def test_a_busy_guest_takes_longer() -> None:
    busy = plan(Guest(16 * GB, dirty_rate=0.5 * GB), SLOW)
    assert 16 < busy.end < 33
    assert not busy.failure


def test_a_guest_faster_than_the_link_is_given_up_after_the_completion_timeout() -> None:
    assert plan(DIRTY, SLOW) == Course(
        151, "Live migration is not completed after 150 seconds and has been aborted", True
    )


def test_without_a_timeout_it_is_never_given_up() -> None:
    assert plan(DIRTY, replace(SLOW, completion_timeout=0)).end == math.inf


def test_auto_converge_slows_the_guest_until_it_fits() -> None:
    helped = plan(DIRTY, replace(SLOW, auto_converge=True))
    assert not helped.failure
    assert helped.mode == PRE_COPY
    assert 1 < helped.end < 151


def test_post_copy_ends_it_and_knows_no_timeout() -> None:
    assert plan(DIRTY, replace(SLOW, post_copy=True, workload_disruption=True)) == Course(
        152, switch=151, mode=POST_COPY
    )


def test_pausing_the_guest_ends_it() -> None:
    assert plan(DIRTY, replace(SLOW, workload_disruption=True)) == Course(152, switch=151, mode=PAUSED)


def test_pausing_doubles_the_patience_and_no_more() -> None:
    course = plan(Guest(1000 * GB, dirty_rate=2 * GB), replace(SLOW, workload_disruption=True, progress_timeout=0))
    assert course == Course(
        301, "Live migration is not completed after 300 seconds and has been aborted", True, 151, PAUSED
    )


def test_a_stalled_connection_is_given_up_after_the_progress_timeout() -> None:
    course = plan(Guest(GB, stalls_at=0.5), replace(SLOW, completion_timeout=0))
    assert course == Course(151.5, "Live migration stuck for 151 seconds and has been aborted", True)


def test_whichever_timeout_comes_first_counts() -> None:
    assert "not completed" in plan(Guest(100 * GB, stalls_at=10), SLOW).failure
    assert "stuck" in plan(Guest(100 * GB, stalls_at=10), replace(SLOW, progress_timeout=20)).failure


def test_a_cut_course_ends_within_the_copying() -> None:
    assert cut(plan(DIRTY, SLOW), 0.5, 1.0, "broken") == Course(0.5, "broken")


@pytest.mark.parametrize(("memory", "seconds"), [(GB, 150), (GB + 1, 300), (64 * 2**20, 150), (64 * GB, 64 * 150)])
def test_the_completion_timeout_counts_begun_gigabytes(memory: float, seconds: float) -> None:
    assert limits({"completionTimeoutPerGiB": 150}, memory).completion_timeout == seconds


def test_limits_of_a_migration_configuration() -> None:
    assert limits({"bandwidthPerMigration": "64Mi"}, GB).link == 64 * 2**20
    assert limits({"bandwidthPerMigration": "0"}, GB).link == LINK
    assert limits({}, GB, slow_down=4).link == LINK / 4
    assert limits({"allowPostCopy": True}, GB).workload_disruption
    assert not limits({"allowPostCopy": True, "allowWorkloadDisruption": False}, GB).workload_disruption


timeouts = st.sampled_from([0.0, 1.0, 30.0, 150.0])


@given(
    guest=st.builds(
        Guest,
        memory=st.floats(2e6, 1e12),
        dirty_rate=st.floats(0, 5e9),
        stalls_at=st.one_of(st.just(math.inf), st.floats(0, 1e4)),
    ),
    bounds=st.builds(Limits, st.floats(1e6, 1e10), timeouts, timeouts, st.booleans(), st.booleans(), st.booleans()),
)
def test_every_course_is_sound(guest: Guest, bounds: Limits) -> None:
    course = plan(guest, bounds)
    assert course.end > 0
    assert (course.switch == math.inf) == (course.mode == PRE_COPY)
    assert course.mode == PRE_COPY or course.switch <= course.end
    assert not (course.mode == POST_COPY and course.failure)
    assert course.aborted == bool(course.failure)
    if not course.failure and course.end < math.inf:
        assert guest.stalls_at == math.inf or course.end <= guest.stalls_at
        # Never faster than the link carries the memory.
        assert course.end >= guest.memory / bounds.link * (1 - 1e-9)
