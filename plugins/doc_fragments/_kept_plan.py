# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this document fragment is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations


class ModuleDocFragment:
    """How a run goes on by its plan; see module_utils/_module/plan_keeping.py."""

    DOCUMENTATION = r"""
options:
  resume:
    description:
      - Whether O(run) goes on by the plan that the cluster keeps of it, if it has taken a node already.
      - All that is left of that plan is held against O(snapshot), see O(drift). If it is for other nodes, batches or
        options, or cannot be carried out any more while a new one can, a new one is made. RV(lines) say so.
      - With O(plan), it goes on by what has become of that very plan. What is mended of it goes into O(path), and
        RV(origin) stays the digest of the one that was approved.
    type: bool
    default: false
  invocation:
    description:
      - The start of O(run) that goes by the plan, RV(virtops.kubevirt.maintenance_run#module:invocation_id), which has
        to hold the run. With it the cluster keeps the plan for O(resume), except in check mode.
      - M(virtops.kubevirt.node_drain) keeps there what it changes of the plan. The plan goes when the run is released
        or aborted, see M(virtops.kubevirt.maintenance_run).
    type: str
  drift:
    description:
      - What to do when the plan that is there already, O(plan) or the one of O(resume), is not right any more for the
        cluster as it is in O(snapshot). All batches that are left count, each on what the ones before it leave.
      - With V(repair) it is changed as little as possible, and each change is a line of RV(lines). With V(fail) the
        task fails, and says what differs.
      - What passes by itself is no reason to fail, such as another maintenance's cordon of a node, or a migration that
        somebody else has begun. It is told.
    type: str
    choices: [repair, fail]
    default: repair
  option_prefix:
    description:
      - What the names of options begin with where RV(lines), RV(obstacles) and errors name them, for a role whose
        variables they are.
    type: str
    default: ""
  lease_namespace:
    description: Namespace of the run's Lease, and of what the cluster keeps of the run.
    type: str
    default: medik8s-leases
"""
