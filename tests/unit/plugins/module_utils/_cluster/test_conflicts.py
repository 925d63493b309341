# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A write that was outrun is made again on what is there then, and on nothing else."""

from __future__ import annotations

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.conflicts import (
    ATTEMPTS,
    retry_on_conflict,
    retry_on_newest,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure


def _failure(status: int) -> Failure:
    return Failure("write", "here", "no", "Wait.", status=status)


class _Object:
    """version: as it is by now. outrun: so many more writes come too late."""

    def __init__(self, outrun: int, status: int = 409) -> None:
        self.version = 1
        self.outrun = outrun
        self.status = status
        self.tried: list[int] = []

    def write(self, version: int) -> str:
        self.tried.append(version)
        if self.outrun:
            self.outrun -= 1
            self.version += 1
            raise _failure(self.status)
        return f"written on {version}"


def test_the_newest_version_is_written() -> None:
    thing = _Object(outrun=2)
    assert retry_on_newest(1, thing.write, lambda _conflict: thing.version) == "written on 3"
    assert thing.tried == [1, 2, 3]


def test_an_attempt_reads_by_itself() -> None:
    thing = _Object(outrun=ATTEMPTS - 1)
    assert retry_on_conflict(lambda: thing.write(thing.version)) == f"written on {ATTEMPTS}"


def test_who_always_loses_gives_up() -> None:
    thing = _Object(outrun=ATTEMPTS)
    with pytest.raises(Failure) as caught:
        retry_on_conflict(lambda: thing.write(thing.version))
    assert (caught.value.status, len(thing.tried)) == (409, ATTEMPTS)


def test_other_failures_are_final() -> None:
    thing = _Object(outrun=1, status=500)
    with pytest.raises(Failure) as caught:
        retry_on_conflict(lambda: thing.write(thing.version))
    assert (caught.value.status, len(thing.tried)) == (500, 1)


def test_a_look_may_end_it() -> None:
    def look(conflict: Failure) -> int:
        raise conflict.replaced(message="it is somebody else's")

    thing = _Object(outrun=1)
    with pytest.raises(Failure, match="somebody else's"):
        retry_on_newest(1, thing.write, look)
    assert thing.tried == [1]
