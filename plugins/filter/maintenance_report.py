# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: maintenance_report
short_description: Tell how the maintenance of nodes went
version_added: 0.1.0
author:
  - Contributors to the virtops.kubevirt project (@virtops)
description:
  - Counts for each host of a run what has left its node, and names what has failed, came otherwise than planned, is
    left on the node or still off, and who was interrupted more than once. The playbook
    C(virtops.kubevirt.rolling_maintenance) ends with that.
  - What the drain of one node has done for another one of its batch is told of the other one.
  - It runs on the controller.
options:
  _input:
    description:
      - The hosts of each batch of the run, in their order, as role P(virtops.kubevirt.plan_maintenance#role) leaves
        them in C(plan_maintenance_batches).
    type: list
    elements: list
    required: true
  hosts:
    description:
      - The variables of each host by its name, which is C(hostvars). Looked at are those that roles
        P(virtops.kubevirt.drain#role) and P(virtops.kubevirt.uncordon#role) leave, and C(rolling_maintenance_failure).
    type: dict
    required: true
  run:
    description: The name of the run.
    type: str
    required: true
  check_mode:
    description: Whether the run was one in check mode, which has done nothing.
    type: bool
    default: false
  verbose:
    description: Whether to name each virtual machine and pod, also those that have left as they should.
    type: bool
    default: false
positional: _input, hosts, run
seealso:
  - module: virtops.kubevirt.node_drain
  - plugin: virtops.kubevirt.batch_turn
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Report
  ansible.builtin.debug:
    msg: "{{ plan_maintenance_batches | virtops.kubevirt.maintenance_report(hostvars, plan_maintenance_plan.run) }}"

- name: Name each virtual machine and pod with -v or --diff
  ansible.builtin.debug:
    msg: "{{ plan_maintenance_batches | virtops.kubevirt.maintenance_report(hostvars, run, verbose=everything) }}"
  vars:
    run: "{{ plan_maintenance_plan.run }}"
    everything: "{{ ansible_verbosity > 0 or ansible_diff_mode }}"
"""

RETURN = r"""
_value:
  description: The lines.
  type: list
  elements: str
  sample:
    - "Run kernel-6.12:"
    - "worker-1: done; VMs: 9 migrated, 1 stopped, 1 started again; pods: 4 evicted"
    - "worker-2: failed; VMs: 1 failed, 8 migrated; pods: 3 evicted"
    - "     VM  shop/db-1 failed, client socket is closed"
    - "     not as planned: VM  shop/db-1 goes to worker-3; instead: failed, client socket is closed"
    - Of 26 virtual machines and pods 25 have left as planned.
    - "1 VM was interrupted more than once: shop/db-2 (worker-1, worker-2)"
    - Where each virtual machine and pod went is told only by a run that is started with -v or --diff.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.run_text import Host, run_text


def maintenance_report(
    batches: object, hosts: object, run: object, *, check_mode: object = False, verbose: object = False
) -> list[str]:
    """The lines; see RETURN. Raises AnsibleFilterError."""
    if not isinstance(hosts, Mapping):
        raise AnsibleFilterError(f"`hosts` has the variables of hosts by their names, as hostvars, got {hosts!r}.")
    for option, given in {"check_mode": check_mode, "verbose": verbose}.items():
        if not isinstance(given, bool):
            raise AnsibleFilterError(f"`{option}` is true or false, got {given!r}.")
    names = [_names(batch) for batch in _list(batches)]
    try:
        found = [[_host(name, hosts[name]) if name in hosts else Host(name, name) for name in batch] for batch in names]
        return run_text(str(run), found, verbose=bool(verbose), foretold=bool(check_mode))
    except (AttributeError, KeyError, TypeError) as error:
        what = "A host's drain_result or uncordon_started is not what module virtops.kubevirt.node_drain returns"
        raise AnsibleFilterError(f"{what} ({type(error).__name__}: {error}).") from None


def _host(name: str, known: Mapping[str, Any]) -> Host:
    """By those of its variables that tell of a run. Ansible makes each when it is asked for, and anew each time."""
    restored = known.get("uncordon_started", {})
    return Host(
        name=name,
        node=str(known.get("_drain_name", name)),
        drained=known.get("drain_result"),
        started=restored.get("started", ()),
        astray=restored.get("deviations", ()),
        has_failed="rolling_maintenance_failure" in known,
        is_back="uncordon_given_back" in known,
        is_done="uncordon_done" in known,
    )


def _names(batch: object) -> list[str]:
    names = _list(batch)
    if not all(isinstance(name, str) for name in names):
        raise AnsibleFilterError(f"`_input` has the names of each batch's hosts, got {batch!r}.")
    return names


def _list(given: object) -> list[Any]:
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes, Mapping)):
        raise AnsibleFilterError(f"`_input` is a list of lists of hosts, got {given!r}.")
    return list(given)


class FilterModule:
    def filters(self) -> dict[str, Callable[..., list[str]]]:
        return {"maintenance_report": maintenance_report}
