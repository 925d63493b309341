# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for all tests: Hypothesis tries the same examples in each run, and others only when one searches.

What failed is said at the end in few lines. With `--few N` of each campaign the first N cases are tried. A whole part
with fewer tests than it had does not run.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tools import census, failures
from tools.failures import pytest_configure, pytest_terminal_summary

__all__ = ["pytest_configure", "pytest_terminal_summary"]

# A busy machine makes any example slow; what is too slow is for the benchmarks to say.
settings.register_profile(
    "known", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "search", settings.get_profile("known"), derandomize=False, max_examples=2000, print_blob=True
)
settings.load_profile(os.environ.get("VIRTOPS_HYPOTHESIS", "known"))
# It draws from the constants of all local modules that are there as well, which are others with each choice of tests.
providers._get_local_constants = lambda: providers._local_constants


def pytest_addoption(parser: pytest.Parser) -> None:
    failures.add_options(parser)
    parser.addoption("--few", type=int, metavar="N", help="of each test marked campaign only the first N cases")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    census.check_all(config.args, len(items))
    _leave_out_more_than(config.getoption("--few"), config, items)
    yield
    census.check_chosen(config.args, config.getoption("-m"), len(items))


def _leave_out_more_than(few: int | None, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of each campaign all cases but the first few."""
    if few is None:
        return
    seen = Counter[str]()
    left_out = set()
    for item in items:
        if item.get_closest_marker("campaign"):
            name = item.nodeid.partition("[")[0]
            seen[name] += 1
            if seen[name] > few:
                left_out.add(item)
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]
