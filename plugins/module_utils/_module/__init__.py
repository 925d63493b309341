# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What modules share: options in, results out.

run.py                    run a module, and end it in a result or one clear error
progress.py               how a module tells its news while it runs
connection.py             a module's connection, as patient as the task has time
kubeconfig_texts.py       what of a kubeconfig's content may be shown
texts.py                  what texts mean where an argument spec wants something else
arguments.py              parts of argument specs, and limits that these cannot express
libraries.py              Python libraries that only some uses need
drain_arguments.py        the options of node_drain
drain_task.py             empty a node by a plan, and see that it is still empty
drain_planning.py         the plan of a drain, and what became of it
drain_memory.py           what a drain lets its run remember
drain_results.py          what node_drain returns
start_task.py             start what was stopped for a node, when that is back
eviction_task.py          what pod_eviction takes and gives back
plan_task.py              what maintenance_plan takes and gives back
plan_request.py           what maintenance_plan is to plan, by its options
plan_approval.py          a plan that was approved before, and whether it is one for this run and cluster
plan_keeping.py           the plan in force of a run, kept in the cluster
readiness_task.py         what node_readiness takes, sees and gives back
rebalancing_task.py       what rebalance_plan takes and gives back
maintenance_task.py       what node_maintenance takes and gives back
run_task.py               what maintenance_run takes, does and gives back
run_report.py             what each start of a run has told of what it did
rights.py                 sees that all that a task may come to do is allowed
account_task.py           what access_account takes, writes and gives back
kubeconfig_task.py        what access_kubeconfig takes, writes and gives back
guard.py                  sees that the run is the task's own and the cluster the same
migration_arguments.py    the options of vmi_migration
migration_task.py         migrate VMIs to where a task wants them
moves_task.py             carry out a plan by which things only move
migration_results.py      what vmi_migration returns
replica_set_arguments.py  the options of vmi_replicaset
replica_set_outlook.py    looks ahead before a replica set is written
replica_set_results.py    what vmi_replicaset returns
"""

from __future__ import annotations
