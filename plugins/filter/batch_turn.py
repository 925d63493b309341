# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: batch_turn
short_description: Say whether it is a batch's turn in a run
version_added: 0.1.0
author:
  - Contributors to the virtops.kubevirt project (@virtops)
description:
  - Says of the hosts of a play whether they are a batch of a planned run, and whether the batches before it are done.
    Role P(virtops.kubevirt.drain#role) asks that before it touches anything.
options:
  _input:
    description: The hosts that are out of service together, in the order of the play.
    type: list
    elements: str
    required: true
  batches:
    description:
      - All batches of the run, in their order, as role P(virtops.kubevirt.plan_maintenance#role) leaves them in
        C(plan_maintenance_batches). Without any there is no run, and it is anybody's turn.
    type: list
    elements: list
    required: true
  done:
    description: The hosts that the run is done with.
    type: list
    elements: str
    required: true
  max_failed_nodes:
    description: How many hosts of earlier batches need not be done.
    type: int
    default: 0
positional: _input, batches, done
seealso:
  - plugin: virtops.kubevirt.drain_feasibility
    plugin_type: filter
"""

EXAMPLES = r"""
- name: End the play unless it is this batch's turn
  ansible.builtin.meta: end_play
  when: not (ansible_play_batch | virtops.kubevirt.batch_turn(plan_maintenance_batches, done)).open
  vars:
    done: "{{ hostvars.values() | selectattr('uncordon_done', 'defined') | map(attribute='inventory_hostname') }}"
"""

RETURN = r"""
_value:
  description: What there is to say.
  type: dict
  contains:
    number:
      description: The number of the batch, from 1; none if the hosts are no batch of the run, or there is no run.
      type: int
      returned: always
    overdue:
      description: The hosts of earlier batches that are not done.
      type: list
      elements: str
      returned: always
    open:
      description: Whether the batch may begin.
      type: bool
      returned: always
    message:
      description: Why it may not, a sentence, or empty.
      type: str
      returned: always
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import turn_of


def batch_turn(batch: object, batches: object, done: object, max_failed_nodes: object = 0) -> JsonObject:
    """What there is to say; see RETURN. Raises AnsibleFilterError."""
    if not isinstance(max_failed_nodes, int) or isinstance(max_failed_nodes, bool) or max_failed_nodes < 0:
        raise AnsibleFilterError(f"`max_failed_nodes` is a number of hosts, got {max_failed_nodes!r}.")
    run = [_names("batches", entry) for entry in _list("batches", batches)]
    turn = turn_of(_names("_input", batch), run, _names("done", done), max_failed_nodes)
    return {"number": turn.number, "overdue": list(turn.overdue), "open": turn.is_open, "message": turn.message}


def _names(option: str, given: object) -> list[str]:
    names = _list(option, given)
    if not all(isinstance(name, str) for name in names):
        raise AnsibleFilterError(f"`{option}` has names of hosts, got {given!r}.")
    return names


def _list(option: str, given: object) -> list[Any]:
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes, Mapping)):
        raise AnsibleFilterError(f"`{option}` is a list, got {given!r}.")
    return list(given)


class FilterModule:
    def filters(self) -> dict[str, Callable[..., JsonObject]]:
        return {"batch_turn": batch_turn}
