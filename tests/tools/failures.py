# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hooks of pytest that say at the end what failed, in few lines, which `tools.report` repeats.

With `--failures FILE` they are written there as JSON, `{name of the test: lines}`, and not said.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.report import FAILED, told

MOST_LINES, WIDTH = 4, 200


def add_options(parser: pytest.Parser) -> None:
    parser.addoption("--failures", type=Path, help="write what failed to this file")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    found: dict[str, list[str]] = {}
    for kind in ("failed", "error"):
        for report in terminalreporter.getreports(kind):
            found.setdefault(report.nodeid or "collection", first_lines(report))
    path: Path | None = config.getoption("--failures")
    if path:
        path.write_text(json.dumps(found), encoding="utf-8")
    else:
        for line in told(FAILED, found):
            terminalreporter.write_line(line)


def first_lines(report: pytest.TestReport | pytest.CollectReport) -> list[str]:
    """Of what a test failed with: the assertion or the exception, not the way that led there."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = str(crash.message if crash else report.longreprtext).strip().splitlines()
    chosen = lines[:MOST_LINES] if crash else lines[-MOST_LINES:]
    return [line[:WIDTH] for line in chosen]
