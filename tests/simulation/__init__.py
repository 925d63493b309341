# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random interleavings of the loops of `_cluster` and a small model of a cluster, judged at every moment.

The model:

world.py         what is in a cluster, and the rule by which pods find nodes
scene.py         how it looks at first
controllers.py   what happens in it by itself, one small step at a time
rules.py         its hard rules: what is broken, and what a command would break
listing.py       it as lists of the API's objects
sight.py         what can be seen of it
watches.py       the same by watches that lag behind
requests.py      commands carried out on it, as verbs do
deeds.py         what they are answered
model_client.py  it as a server of objects, for moves

What acts on it:

process.py       empties a node by the loop of node_drain
mover.py         moves VMs and pods by that of moves
aborting.py      gives a run up
notes.py         what the next process gets to know
planning.py      who makes and mends plans
planner.py       a simple planner of the model

What befalls them:

chances.py       what befalls a process in a step
fates.py         what may become of a command
calm.py          what becomes of all when nobody disturbs any more

The machines that choose what comes next, by what they drive; the rules of each say by what that is disturbed:

driven.py        what they have in common
machine.py       drains: of a node, of two, of one of two, of batches; and the same by the product's planner
invocations.py   a run that another invocation goes on with
restoring.py     a drain, and what gives its node back
returning.py     what starts VMs again, by one task a node, or by two
moving.py        moves

What is asked of them:

judge.py         what must hold of drains and starts at every moment
moves_judge.py   of moves
histories.py     what did not hold once, by name
campaign.py      as many histories as wanted
mutants.py       reducers that are wrong on purpose
mutant_loops.py  loops that are
"""
