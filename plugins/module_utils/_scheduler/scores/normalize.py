# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scores scaled so that the best node has all points. Follows pkg/scheduler/framework/plugins/helper."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import IntArray
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import MAX_SCORE


def normalize(scores: IntArray) -> IntArray:
    """Integers from 0 to `MAX_SCORE` in proportion to scores that are not negative; all 0 if all are."""
    most = int(scores.max(initial=0))
    return scores if most == 0 else MAX_SCORE * scores // most
