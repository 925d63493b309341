# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this document fragment is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations


class ModuleDocFragment:
    """What the controller tells modules of the ansible-playbook that they work for; see action/maintenance_run.py."""

    DOCUMENTATION = r"""
options:
  run:
    description:
      - Name of the run that the task belongs to. Without it the task stands for itself.
      - What a run does, it does in its own name, so an C(owner) is the same.
    type: str
  invocation:
    description:
      - The start of O(run) that the task belongs to, RV(virtops.kubevirt.maintenance_run#module:invocation_id). With it
        nothing is changed unless that still holds the run, except in check mode.
    type: str
"""

    CLUSTER = r"""
options:
  cluster_uid:
    description:
      - UID of namespace C(kube-system) in the cluster that is meant, as
        RV(virtops.kubevirt.maintenance_run#module:cluster_uid). With it nothing is done in another cluster that
        answers under the same address.
    type: str
"""

    INVOCATION = r"""
options:
  _invocation:
    description:
      - By this the module's own action plugin tells which ansible-playbook process the task belongs to.
      - It is no part of the interface and may change at any time. Do not set it.
    type: dict
"""
