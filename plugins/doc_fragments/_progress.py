# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this document fragment is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations


class ModuleDocFragment:
    """The option of module_utils/_module/progress.py, which each module has whose action plugin listens to it."""

    DOCUMENTATION = r"""
options:
  _progress:
    description:
      - Where the module finds the FIFO by which its own action plugin gets its news, to show them.
      - It is no part of the interface and may change at any time. Do not set it.
    type: str
notes:
  - An API server that is busy or away for more than ten seconds is told of on stderr while the task waits for it, where
    the module runs on the controller, as with C(delegate_to=localhost), and without C(become). Elsewhere a warning
    tells of it when the task ends.
"""
