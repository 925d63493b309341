# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proof that the collection's scheduler gives kube-scheduler's verdicts.

    cases/            clusters from a seed whose rules meet, and amounts that fit exactly or miss by one
    oracle/           the judge, in Go: a whole kube-scheduler of the pinned version, built around one case
    upstream.py       speaks with it
    ours.py           asks the collection's scheduler the same
    compare.py        says where two answers differ
    run.py            does it for many cases, with all processors
    shrink.py         makes a case of a disagreement as small as it can be
    files.py          cases in files, and those kept for the unit tests
    mutations.py      mistakes in source code
    mutants.py        shows that a plugin with a mistake is noticed

A case is `{"lists": {"nodes": [...], "pods": [...], ...}, "asked": [pods], "profile": name, "scores": bool}`; the lists
are those of the filter `feasible_nodes`. Both sides are given its objects as an API server stores them: the oracle
does that first (`store`), with upstream's own defaults, strategies and validation, so that the generator can
write as little as people do, and cannot write what no API server would take. `stored` marks a case that is so already.

Where kube-scheduler's own answer depends on the order of a Go map, the generator keeps away: images of one name and
several sizes, and volumes of the same size for one claim.
"""
