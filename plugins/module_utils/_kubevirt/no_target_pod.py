# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What comes instead of a migration's target pod when KubeVirt cannot make one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NoTargetPod:
    """KubeVirt tries again and again, and the migration stays Pending.

    `id`: stable, as of blockers. `problem`: a clause about the VMI, as in "its node n1 does not exist". `remedy`: a
    clause in the imperative.
    """

    id: str
    problem: str
    remedy: str
