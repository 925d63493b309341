# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a plan can be carried out, whatever its actions do meanwhile. It knows nothing of how plans are found.

check.py         the question and the answer: a snapshot and a plan in, violations out
violation.py     what can be wrong with a plan
outline.py       what the plan alone tells: ids, circles, nodes, totals
replay.py        the plan, carried out action by action in some order, and on by another one when it is mended
order.py         those orders: much at once, one after the other, by lot
enactment.py     what an action is at its beginning and its end, and whether it is legal then
landing.py       where the pods come that the scheduler places
disruptions.py   what disruption budgets allow while pods come and go
stuck.py         whether what is blocked is really stuck
cluster.py       the cluster meanwhile, as the scheduler and KubeVirt see it
excess.py        waits that nobody needs
"""

from __future__ import annotations
