# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever decides what is moved where, and when. Lists of a cluster in, plans out.

Plans that are carried out:

plan_options.py    what a plan is asked for, and what people want of its batches
run_plan.py        the plan of a run, batch after batch
whole_run.py       the same, its batches and their order chosen
batching.py        which batch is best to try next, by an estimate of the room for its VMs
bound.py           how many migrations any plan needs at least
reserve.py         what would be left if something failed while a batch is away
carrying.py        the cluster as a batch leaves it for the next one
repair.py          a plan mended in the light of a fresh look
merging.py         what of a batch stays as it was, put together with what is new
review.py          all that is left of a run's plan, held against the cluster as it is
order.py           actions of several plans put together
in_force.py        the plan that a run goes by, from one start to the next
foretold.py        what a plan foretold, found by the names that it has got
planned_course.py  who goes as planned, and who has to find another place
actions.py         what a solved batch means as actions
assumptions.py     on what more it depends where the scheduler puts somebody
requests.py        the plan of a task that says itself where VMs are to go

A batch, its nodes drained together:

drain.py           the question and the answer: prepare, solve, describe
ground.py          the cluster, ready for plans
residents.py       what is on the nodes
under_way.py       what leaves already
prospects.py       what could give a VM a place that has none now
mover.py           what leaves, and what comes instead
ways.py            how each of them leaves: VMs by live migration or as their policy says, pods by eviction
policies.py        which policy that is
board.py           the cluster with each mover at one of its stages
options.py         the nodes a mover can go to, the best first
search.py          an order and nodes for all movers
making_room.py     who else moves so that somebody finds a node
course.py          the same when some have to be shut down first
waits.py           whom each step has to wait for
waves.py           what may start together
pace.py            how long migrations take

What is said of it:

drain_plan.py      a drain as values, for whoever asks about one
outcome.py         what becomes of each VM and each pod
story.py           the words

Rebalancing:

rebalance.py       who may move, and the plan as values
improvement.py     who moves, with those who have to follow, and how well nodes meet soft rules
"""

from __future__ import annotations
