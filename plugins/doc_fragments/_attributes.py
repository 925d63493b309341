# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this document fragment is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations


class ModuleDocFragment:
    """Attributes that every module declares; a module states `support` (and `details`) for each of them itself."""

    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in check mode and predict whether something would be changed, without changing anything.
  diff_mode:
    description: Returns what has changed, or in check mode what would change, when in diff mode.
  idempotent:
    description:
      - When run a second time with the same arguments on a cluster that is as the first run left it,
        the module reports no change.
"""

    ACTION_GROUP = r"""
options: {}
attributes:
  action_group:
    description:
      - Use C(group/virtops.kubevirt.all) in C(module_defaults) to set the connection to the cluster once, for all
        modules of this collection and of kubernetes.core.
      - Use C(group/virtops.kubevirt.own) for options that those of kubernetes.core do not have, such as
        C(request_timeout).
    support: full
    membership:
      - virtops.kubevirt.all
      - virtops.kubevirt.own
"""
