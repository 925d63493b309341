# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plugin of the scheduler is.

A filter is asked once for a pod (`prepare`) and answers for all nodes at once: it may have nothing to say, reject the
pod as a whole, or name the nodes that fail, with the reason in kube-scheduler's words.
Follows k8s.io/kube-scheduler/framework/interface.go, where PreFilter and Filter, PreScore, Score and NormalizeScore
are separate calls because nodes are visited one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import BoolArray, IntArray
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState

MAX_SCORE = 100


@dataclass(frozen=True, slots=True)
class FilterFailure:
    """Nodes that fail for one reason. A node in several failures of one plugin has several reasons.

    `fatal`: the plugin stumbles over such a node, and kube-scheduler gives up on the pod when it comes to one.
    """

    nodes: BoolArray
    reason: str
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class Rejection:
    """The pod fits no node, whatever the other plugins say."""

    reason: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """`failures`: computes the answer for all nodes. `only`: names of the only nodes that are looked at at all."""

    failures: Callable[[], Sequence[FilterFailure]]
    only: frozenset[str] | None = None


class FilterPlugin(Protocol):
    @property
    def name(self) -> str:
        """As kube-scheduler calls it."""

    def prepare(self, pod: Pod, state: ClusterState) -> Prepared | Rejection | None:
        """None: the plugin has nothing to do with this pod."""


class ScorePlugin(Protocol):
    @property
    def name(self) -> str:
        """As kube-scheduler calls it."""

    def score(self, pod: Pod, state: ClusterState, nodes: IntArray) -> IntArray | None:
        """Scores of 0 to `MAX_SCORE` for the feasible nodes of these numbers; None: nothing to prefer."""


class PluginError(Exception):
    """A plugin stumbles over the pod, so kube-scheduler does not place it, whichever nodes would fit."""


def normalize(scores: IntArray) -> IntArray:
    """Integers from 0 to `MAX_SCORE` in proportion to scores that are not negative; all 0 if all are.

    Follows pkg/scheduler/framework/plugins/helper.
    """
    most = int(scores.max(initial=0))
    return scores if most == 0 else MAX_SCORE * scores // most
