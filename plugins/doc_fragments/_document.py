# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this document fragment is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations


class ModuleDocFragment:
    """What everything that plans gives back, by docs/schemas/maintenance-plan.json."""

    DOCUMENTATION = r"""
options:
  document:
    description:
      - Whether the whole plan, or what was done as a plan, is returned, too, as RV(document). Of a large cluster it may
        have many megabytes.
      - Where a task makes no plan of the cluster but does what it is told, as when it starts what was stopped, the
        C(snapshot) of its document is one of the objects that it is about. The versions of Kubernetes and KubeVirt and
        the cluster's uid are empty if the account may not read them.
    type: bool
    default: false
"""
