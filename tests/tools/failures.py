# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hooks of pytest that say at the end what failed, in few lines, which `tools.report` repeats.

With `--failures FILE` they are not said, but written there as JSON, `{name of the test: lines}`, each as it comes: of a
run that is ended before it is over, what failed until then is known.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tools.report import FAILED, told

MOST_LINES, WIDTH = 4, 200


def add_options(parser: pytest.Parser) -> None:
    parser.addoption("--failures", type=Path, help="write what failed to this file")


def pytest_configure(config: pytest.Config) -> None:
    path: Path | None = config.getoption("--failures")
    if path and "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(Written(path))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption("--failures"):
        return
    found: dict[str, list[str]] = {}
    for kind in ("failed", "error"):
        for report in terminalreporter.getreports(kind):
            found.setdefault(report.nodeid or "collection", first_lines(report))
    for line in told(FAILED, found):
        terminalreporter.write_line(line)


class Written:
    """What has failed so far, in a file that is whole at each moment."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: dict[str, list[str]] = {}

    @pytest.hookimpl(tryfirst=True)  # whose failure is seen is in the file
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._add(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._add(report)

    def _add(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed:
            self.found.setdefault(report.nodeid or "collection", first_lines(report))
            new = self.path.with_suffix(".new")
            new.write_text(json.dumps(self.found), encoding="utf-8")
            new.replace(self.path)


def first_lines(report: pytest.TestReport | pytest.CollectReport) -> list[str]:
    """Of what a test failed with: the assertion or the exception, not the way that led there."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = str(crash.message if crash else report.longreprtext).strip().splitlines()
    chosen = lines[:MOST_LINES] if crash else lines[-MOST_LINES:]
    return [line[:WIDTH] for line in chosen]
