# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.playbook.role.include import RoleInclude
from ansible.plugins.action import ActionBase
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.texts import understood
from ansible_collections.virtops.kubevirt.plugins.plugin_utils import _variables
from ansible_collections.virtops.kubevirt.plugins.plugin_utils._variables import Named, Owner, RoleNotFound, is_blank

Values = dict[str, Any]

_ROLES = Path(__file__).parents[2] / "roles"
_ARGUMENTS: Values = {
    "prefix": {"type": "str"},
    "options": {"type": "dict"},
    "others": {"type": "list", "elements": "str", "default": []},
    "roles": {"type": "list", "elements": "str", "default": []},
    "hosts": {"type": "str"},
    "named_roles": {"type": "list", "elements": "str", "default": []},
    "named_tasks": {"type": "list", "elements": "str", "default": []},
}


class ActionModule(ActionBase):  # type: ignore[misc]  # Ansible is published without types
    """Refuses names that nobody knows, and tells what the others mean. It works on the controller alone."""

    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: Values | None = None) -> Values:
        result: Values = super().run(tmp, task_vars)
        _checked, arguments = self.validate_argument_spec(_ARGUMENTS, required_together=[("prefix", "options")])
        self._variables = task_vars or {}
        try:
            owner = self._owner(arguments)
            others = [_variables.role(_ROLES / name) for name in arguments["roles"]]
            seen = self._seen(owner, others, arguments["hosts"])
            _variables.check_names(owner, others, seen)
            if arguments["hosts"] and len(seen) == 1:
                # As with a plan that was approved: its nodes may be those of any host.
                _variables.check_names(owner, (), {**seen, **self._variables["hostvars"]})
            _variables.check_values(owner, others, {host: self._literal(host, others) for host in seen})
            values = self._values(owner)
            given = _variables.taken(owner, values)
            roles, files = (self._named(owner, arguments[name], given, seen) for name in ("named_roles", "named_tasks"))
            _variables.check_roles(owner, roles, self._find_role)
            _variables.check_tasks(owner, files, self._loader.load_from_file)
        except InvalidRequest as error:
            return {**result, "failed": True, "msg": str(error), "error": error.to_json()}
        said = {name: value for name, value in given.items() if owner.prefix + name in values}
        return {**result, "changed": False, "given": given, "without_defaults": said}

    def _owner(self, arguments: Values) -> Owner:
        """The playbook that the task describes, or else the role that it stands in."""
        prefix, role = arguments["prefix"], self._task._role
        if prefix:
            return Owner(f"playbook {prefix}", f"{prefix}_", arguments["options"], frozenset(arguments["others"]))
        if not role:
            raise AnsibleActionFail("Outside of a role a task has to give prefix and options.")
        found = _variables.role(Path(role._role_path))
        return replace(found, others=found.others.union(arguments["others"]))

    def _seen(self, owner: Owner, others: Iterable[Owner], hosts: str | None) -> dict[str, Iterable[str]]:
        """Names of variables by host. `hosts`: the variable that names further hosts, or groups of them."""
        seen: dict[str, Iterable[str]] = {self._variables["inventory_hostname"]: self._variables}
        options = {name: option for each in (owner, *others) for name, option in each.options.items()}
        named = understood(owner.attempted, options, self._evaluated([hosts])) if hosts else {}
        groups, everything = self._variables["groups"], self._variables["hostvars"]
        listed = named.get(hosts or "")
        # What else it may be is told with all other values.
        for name in listed if isinstance(listed, list) else ():
            for host in groups.get(name, (name,)) if isinstance(name, str) else ():
                if host in everything:
                    seen[host] = everything[host]
        return seen

    def _values(self, owner: Owner) -> Values:
        """Of the variables that are given. One that is blank has its default, also for those that are made of it."""
        role = self._task._role
        defaults = role.get_default_vars() if role else {}
        values = self._evaluated(owner.options)
        blank = {name for name, value in values.items() if is_blank(value)}
        instead = {name: defaults[name] for name in blank if name in defaults}
        if instead:
            values = self._evaluated(owner.options, instead)
        return {name: value for name, value in values.items() if name not in blank - instead.keys()}

    def _literal(self, host: str, others: Iterable[Owner]) -> Values:
        """What a host has for others as it stands. A template may well be about what only a later task tells."""
        is_this = host == self._variables["inventory_hostname"]
        variables = self._variables if is_this else self._variables["hostvars"].raw_get(host)
        found: Values = {}
        for name in (name for each in others for name in each.options if name in variables):
            with suppress(AnsibleError):  # such as of a vault that is not open for this
                if not self._templar.is_template(variables[name]):
                    found[name] = self._templar.template(variables[name])
        return {name: value for name, value in found.items() if not is_blank(value)}

    def _named(
        self, owner: Owner, variables: Iterable[str], given: Mapping[str, Any], seen: Iterable[str]
    ) -> dict[Named, list[str]]:
        """What those of the variables say that are given; with the hosts that have it, if it is theirs alone."""
        own = ((name, given.get(name.removeprefix(owner.prefix))) for name in variables)
        found: dict[Named, list[str]] = {(name, value): [] for name, value in own if value}
        asked = replace(owner, options={name: owner.options[name] for name in variables}, others=frozenset())
        theirs: dict[Named, list[str]] = {}
        for host in (host for host in seen if host != self._variables["inventory_hostname"]):
            for name, value in _variables.taken(asked, self._literal(host, [asked])).items():
                if (said := (owner.prefix + name, value)) not in found:
                    theirs.setdefault(said, []).append(host)
        return found | theirs

    def _find_role(self, name: str) -> Path:
        """Its folder, found by Ansible itself as for include_role in the same play. Raises RoleNotFound."""
        try:
            found = RoleInclude.load(name, play=None, loader=self._loader, collection_list=self._task.collections)
        except AnsibleError as error:
            raise RoleNotFound(str(error)) from error
        return Path(found.get_role_path())

    def _evaluated(self, names: Iterable[str], instead: Mapping[str, Any] | None = None) -> Values:
        variables = {**self._variables, **(instead or {})}
        templar = self._templar.copy_with_new_env(available_variables=variables)
        return {name: templar.template(variables[name]) for name in names if name in variables}
