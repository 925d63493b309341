# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a plan is carried out: a pure reducer that reads from the cluster what is done, and says what to do next.

It is level-triggered, as Kubernetes' controllers are. Whatever happened since the last look, by whomever, shows in the
next one; only what cannot be read there, attempts and times, stands in the record.

observation.py   what was seen of the cluster, and what has to be looked at
commands.py      what is to be done now, and what came of it
record.py        what is remembered of each action
memory.py        what of that the next process is told
migrating.py     a VMI on its way by live migration
evicting.py      a pod on its way by eviction
interrupting.py  a VMI that is restarted, or stopped until its node is back
starting.py      a VM that was stopped for a node and starts again
waits.py         who waits for whom: what is over, what is wanted yet, and what may begin
slots.py         which migrations may begin now, by KubeVirt's caps and the turns of others
reducer.py       plan, record and observation become a new record and commands
draining.py      whether a node is empty, and what is on it that the plan does not know
deviations.py    what came otherwise than the plan had it
telling.py       news and counts in words, and where a drain stands
standing.py      where the drains of a batch stand, in one line of totals
"""
