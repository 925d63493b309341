# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole runs of the playbook, disturbed by chance and watched all the time.

__main__.py     `python -m faults`: so many runs, each by a seed
campaign.py     one run: begun, disturbed, begun again until it ends
invocation.py   an ansible-playbook of it, or of somebody else
disturbances/   what may happen to it: each is one function
migrations.py   what became of the run's own migrations, and which of them were in vain
history.py      what was seen in the cluster meanwhile, and what of it must never be
rules.py        required anti-affinity between the VMs' pods
aftermath.py    what must hold when it has ended
messages.py     what it says of its failures, and what of that helps nobody
outcome.py      what came of a run, and of many
proxy.py        what may stand between the run and the API server
scene.py        the cluster and the run that everything is about
hook.py         the maintenance itself: it notes what it finds on its node
"""
