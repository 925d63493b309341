# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this document fragment is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations


class ModuleDocFragment:
    """The option of module_utils/_module/rounds.py, for modules that show their progress."""

    DOCUMENTATION = r"""
options:
  _round:
    description:
      - By this the module's own action plugin lets it work in rounds, to show progress in between.
      - It is no part of the interface and may change at any time. Do not set it.
    type: dict
"""
