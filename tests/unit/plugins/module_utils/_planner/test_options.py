# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which order nodes are offered."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import np
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.options import Option, Options

NAMES = ("a", "b", "c", "d", "e")


def options() -> Options:
    """All but a; b is avoided, c breaks a constraint, d and e have the same score."""
    return Options(
        NAMES,
        np.array([1, 2, 3, 4]),
        np.array([9, 9, 5, 5]),
        avoided=np.array([True, False, False, False]),
        uneven=np.array([False, True, False, False]),
    )


def test_order() -> None:
    expected = [Option("d", 5), Option("e", 5), Option("c", 9, uneven=True), Option("b", 9, avoided=True)]
    assert list(options()) == expected
    assert options()[1:3] == expected[1:3]
    assert options()[-1] == expected[-1]


def test_more_points_first() -> None:
    assert [option.node for option in Options(NAMES, np.array([0, 1, 2]), np.array([3, 7, 7]))] == ["b", "c", "a"]


def test_the_best_and_its_equals() -> None:
    assert options().as_good_as_the_best() == ("d", "e")
    assert options().without({"d"}).as_good_as_the_best() == ("e",)


def test_without() -> None:
    assert [option.node for option in options().without({"d", "b", "z"})] == ["e", "c"]
    assert not options().without(set(NAMES))


def test_none() -> None:
    assert not Options.none()
    assert Options.none().as_good_as_the_best() == ()
