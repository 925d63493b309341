# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the collection's scheduler gives kube-scheduler's verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from differential import files, mutants, upstream
from differential.__main__ import show
from differential.cases.cluster import ASKED
from differential.compare import differences
from differential.run import run, seeded
from differential.shrink import smallest

PODS = 20_000
SEED = 1

# Every reason that the filters and what comes before them can give, without names of objects.
REASONS = (
    "Insufficient cpu",
    "Insufficient devices.kubevirt.io/kvm",
    "Insufficient ephemeral-storage",
    "Insufficient hugepages-2Mi",
    "Insufficient memory",
    "Too many pods",
    "node(s) did not have enough free storage",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) didn't have free ports for the requested pod ports",
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) didn't match Pod's node affinity/selector",
    "node(s) didn't match Pod's required features",
    "node(s) didn't match pod affinity rules",
    "node(s) didn't match pod anti-affinity rules",
    "node(s) didn't match pod topology spread constraints",
    "node(s) didn't match pod topology spread constraints (missing required label)",
    "node(s) didn't match the requested node name",
    "node(s) didn't satisfy existing pods anti-affinity rules",
    "node(s) didn't satisfy plugin(s) [NodeAffinity]",
    "node(s) exceed max volume count",
    "node(s) had no available disk",
    "node(s) had no available volume zone",
    "node(s) had untolerated taint(s)",
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
    "node(s) were unschedulable",
    "pod affinity terms conflict",
    "pod has unbound immediate PersistentVolumeClaims",
    'persistentvolumeclaim "missing" not found',
)


def test_generated_cases() -> None:
    report = run(seeded(SEED, PODS // ASKED))
    assert not report.disagreements, show(smallest(report.disagreements[0].case))
    assert report.pods >= PODS
    assert 0.2 <= report.fitting / report.pods <= 0.8, "cases where all or none fit prove little"
    assert sorted(set(REASONS) - set(report.reasons)) == []


@pytest.mark.parametrize("path", files.kept(), ids=lambda path: path.stem)
def test_kept_answers_are_kube_schedulers(path: Path) -> None:
    (case,) = files.read(path)
    for expected, theirs in zip(case["expected"], next(upstream.judge([case])), strict=True):
        assert not differences(theirs, expected)


def test_every_plugin_is_proved() -> None:
    """A mistake in any plugin shows; otherwise the agreement above would mean nothing."""
    outcomes = mutants.outcomes(list(mutants.mutants(each=2)), mutants.judged(seed=SEED, cases=150))
    unproved = [path for path, (noticed, _total) in mutants.counts(outcomes).items() if not noticed]
    assert unproved == [], mutants.table(outcomes)
