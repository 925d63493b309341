# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this document fragment is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations


class ModuleDocFragment:
    """Options of module_utils/_module/arguments.py beyond those of kubernetes.core."""

    DOCUMENTATION = r"""
options:
  request_timeout:
    description:
      - Seconds to wait for the connection to the API server, and then for each part of an answer.
      - What a server has not carried out, as it is busy or away, is sent again after the time that it asks for, or with
        growing pauses. So is what only reads. That takes two minutes at most; with a C(wait_timeout) not longer than
        that, and as long as that if it changes something. When no answer comes to a change, it is looked for first.
    type: int
    default: 60
requirements:
  - python >= 3.10
  - kubernetes >= 24.2.0
  - PyYAML >= 3.11
"""
