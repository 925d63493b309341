# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What testbeds are filled with.

*.yaml          scenarios written by hand            files.py reads them
generator/      clusters of any size from a seed
model.py        what both give: Scenario
load.py         puts one into a cluster              settle.py waits until it runs, diagnosis.py says why it does not
command.py      `testbed load`
"""

from __future__ import annotations

from testbed.scenarios.command import add_arguments, add_plain_nodes, run

__all__ = ["add_arguments", "add_plain_nodes", "run"]
