# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this document fragment is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations


class ModuleDocFragment:
    """How plugins that look for nodes rank them."""

    DOCUMENTATION = r"""
options:
  profile:
    description:
      - How nodes that fit are ranked. V(LowNodeUtilization) is what kube-scheduler does by default,
        V(HighNodeUtilization) fills nodes up, V(NoScoring) ranks none.
    type: str
    choices:
      - LowNodeUtilization
      - HighNodeUtilization
      - NoScoring
    default: LowNodeUtilization
"""
