# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this document fragment is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations


class ModuleDocFragment:
    """Plans that were made before, and whether one may be asked for; see module_utils/_module/plan_approval.py."""

    DOCUMENTATION = r"""
options:
  compare:
    description:
      - An earlier plan to compare the new one with, in a file for its owner alone as with O(plan). By default it is the
        one that O(path) holds.
      - With O(resume) what is no plan of this release, or was edited, is only warned of, and nothing is compared; a
        role gives the file of its run so, which it is about to replace.
    type: path
  plan:
    description:
      - The file of a plan that was made before, which stays as it is; everything that a plan is asked for, such as
        O(policies), is as the file has it. Such an option that is given all the same, also as it is by default, has to
        be as in the file.
      - All that is left of it is held against O(snapshot), and RV(lines) say whether it is right. Where it is not,
        O(drift) says what becomes of it. RV(verdict) and all else that is told is of the plan that is gone by then.
      - It has to be for O(run), and for the cluster of O(snapshot), which has to have each node that is maintained.
      - A file that group or others may read or write is refused, as it tells of a whole cluster and of what is done to
        it. Files that come from a repository or a download, or as an artifact of a job, need a C(chmod 600).
    type: path
  sha256:
    description:
      - The digest that O(plan) has to have, as RV(sha256) tells it of a plan that was made.
      - Without it, too, a file that was edited by hand is refused, as it has its own digest in it. That tells no plan
        that was approved from another one.
    type: str
  only_check:
    description:
      - Whether only that is seen to what the task asks for. Options, names of nodes, the place of O(path), and the file
        of O(plan), with its digest, run, cluster and nodes, are refused as without it. Nothing is planned, kept,
        written or returned.
      - So a mistake is told before anybody holds O(run). Without O(snapshot) no more of the cluster is read than its
        version and that of KubeVirt, its nodes and namespaces, and virtual machines for O(targets).
      - With O(resume) a node may be away that is in the plan which the cluster keeps of the run, as while it is
        provisioned anew. That is refused without O(only_check), when what was stopped for other nodes has been started.
    type: bool
    default: false
"""
