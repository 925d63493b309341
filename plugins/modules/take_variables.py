#!/usr/bin/python
# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: take_variables
short_description: Take the variables of a role or playbook, also as texts, and refuse misspelt ones
version_added: 0.1.0
author:
  - Contributors to the virtops.kubevirt project (@virtops)
description:
  - The first task of each role and playbook of this collection. Variables with the name of the role in front that it
    does not know are refused, all at once, with the nearest name that it knows.
  - Tells what the others mean in the types of the role's argument spec. A survey of AWX and a command line give texts.
    V(3), V(true), V(a, b) or a name on each line, JSON and YAML are understood, and a blank text is what is not given.
    A relative path starts from the folder in which C(ansible-playbook) runs.
  - The role's argument spec is its file C(meta/argument_specs.yml), with all of its entry points. Names that its tasks
    set by C(register) or M(ansible.builtin.set_fact) are known, and those that begin with an underscore are
    nobody's concern.
  - Of variables of other roles, which O(roles) names, values that stand there as they are have to be ones that these
    roles take. Templates of theirs are left for later, as they may be about what only a later task tells.
  - All other variables are neither read nor templated.
options:
  prefix:
    description: Outside of a role, the name that the variables begin with, without the underscore after it.
    type: str
  options:
    description: Outside of a role, the argument spec. Its names are whole names of variables.
    type: dict
  others:
    description: Whole names of variables that are known, but not taken.
    type: list
    elements: str
    default: []
  roles:
    description: >-
      Roles of this collection that follow, whose variables are to have known names as well, and values that they take.
    type: list
    elements: str
    default: []
  hosts:
    description: >-
      The whole name of a variable that lists hosts and groups, the variables of which are looked at, too. It is one of
      O(options) or of a role of O(roles). Where it lists none, the names that all hosts have with O(prefix), or that of
      the role, are looked at.
    type: str
  named_roles:
    description: >-
      Whole names of variables, each of which names a role that has to be there, also of those that O(hosts) lists. It
      is sought as by M(ansible.builtin.include_role) in the same play.
    type: list
    elements: str
    default: []
  named_tasks:
    description: >-
      Whole names of variables, each of which names a file. If there is one it has to be of tasks, as far as its YAML
      tells; for those that O(hosts) lists it has to be there.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - virtops.kubevirt._attributes
attributes:
  check_mode:
    support: full
    details:
      - Nothing is changed anyway.
  diff_mode:
    support: none
  idempotent:
    support: full
notes:
  - It runs on the controller, whatever host it is for.
"""

EXAMPLES = r"""
- name: Take the variables of the role that the task stands in
  virtops.kubevirt.take_variables:
  register: _patching_variables

- name: Take those of a playbook
  virtops.kubevirt.take_variables:
    prefix: patching
    options:
      patching_nodes:
        type: list
        elements: str
        required: true
      patching_batch:
        type: int
        default: 1
  register: patching

- name: Use them
  ansible.builtin.debug:
    msg: "{{ patching.given.nodes | batch(patching.given.batch) }}"
"""

RETURN = r"""
given:
  description: The values of what is given or has a default, by names without the prefix.
  returned: success
  type: dict
  sample: {"nodes": ["worker-1", "worker-2"], "batch": 1}
without_defaults:
  description:
    - What of RV(given) is given, also as it is by default. What a role has in its C(defaults/main.yml) is given so.
  returned: success
  type: dict
  sample: {"nodes": ["worker-1", "worker-2"]}
error:
  description: What is wrong, for programs. The same is in RV(ignore:msg) for people.
  returned: failure
  type: dict
  contains:
    attempted:
      description: What was tried.
      returned: failure
      type: str
      sample: take the variables of role drain
    problems:
      description: All that is wrong.
      returned: failure
      type: list
      elements: str
      sample: ["role drain has no variable drain_polices (do you mean drain_policies?), which host worker-1 has"]
    problems_left_out:
      description: How many problems there are beside the first, which alone stand in C(problems).
      returned: when there are many
      type: int
      sample: 50
    remedy:
      description: What to do about it.
      returned: failure
      type: str
      sample: Correct them; this task has touched nothing.
"""
