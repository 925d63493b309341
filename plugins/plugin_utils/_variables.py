# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""Variables of roles and playbooks: which there are, whose a misspelt one is, and what their values mean.

All names that begin with the name of a role are the role's. Its meta/argument_specs.yml says which of them it takes,
and its tasks say which it sets. Of names that are nobody's, what they hold is never asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

from ansible.errors import AnsibleError
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.yaml import yaml_load
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.texts import OptionSpec, understood

# A variable, and what it says.
Named: TypeAlias = tuple[str, str]

# Role uncordon takes its variables when its node has been maintained: that nothing was touched would not be so.
_REMEDY = "Correct them; this task has touched nothing."
_MOST_HOSTS = 3


class RoleNotFound(Exception):
    """Ansible's words, which say where it has looked."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A role or playbook. `options`: an argument spec; `others`: names that it knows without taking them."""

    title: str
    prefix: str
    options: Mapping[str, OptionSpec]
    others: frozenset[str]

    @property
    def attempted(self) -> str:
        return f"take the variables of {self.title}"

    def mistaken(self, names: Iterable[str]) -> list[str]:
        known = self.options.keys() | self.others
        return sorted(name for name in names if name.startswith(self.prefix) and name not in known)

    def nearest(self, name: str) -> str | None:
        """Compared without the prefix, which makes all of them alike."""
        rests = [option.removeprefix(self.prefix) for option in self.options]
        near = get_close_matches(name.removeprefix(self.prefix), rests, n=1)
        return self.prefix + near[0] if near else None


def role(folder: Path) -> Owner:
    specs = yaml_load((folder / "meta/argument_specs.yml").read_text())["argument_specs"].values()
    options = {name: option for entry in specs for name, option in (entry.get("options") or {}).items()}
    own = [name for path in folder.glob("tasks/*.yml") for name in _set_by(yaml_load(path.read_text()))]
    return Owner(f"role {folder.name}", f"{folder.name}_", options, frozenset(own))


def check_names(owner: Owner, others: Iterable[Owner], seen: Mapping[str, Iterable[str]]) -> None:
    """Raises InvalidRequest with every name that none knows, and with what `owner` misses.

    seen: the names of variables by host, first those of the host that takes them.
    """
    names = {host: set(found) for host, found in seen.items()}
    here = next(iter(names.values()))
    problems = []
    for each in (owner, *others):
        for name in each.mistaken(set().union(*names.values())):
            hosts = [host for host, found in names.items() if name in found]
            near = each.nearest(name)
            guess = f" (do you mean {near}?)" if near else ""
            problems.append(f"{each.title} has no variable {name}{guess}, which {_listed(hosts)} has")
    missing = [name for name, option in owner.options.items() if option.get("required") and name not in here]
    problems += [f"{name} is not given" for name in missing]
    if problems:
        raise InvalidRequest(owner.attempted, problems, _REMEDY)


def check_values(owner: Owner, others: Iterable[Owner], seen: Mapping[str, Mapping[str, Any]]) -> None:
    """See that others can take what they will be given, long after this one. Raises InvalidRequest.

    seen: variables with their values by host, as far as these stand there as they are.
    """
    found: dict[str, list[str]] = {}
    for (host, values), each in product(seen.items(), others):
        options = {name: option for name, option in each.options.items() if name in values}
        try:
            taken(replace(each, options=options), {name: values[name] for name in options})
        except InvalidRequest as error:
            for problem in error.problems:
                found.setdefault(problem, []).append(host)
    if found:
        problems = [f"{problem.rstrip('.')}{_whose(hosts)}" for problem, hosts in found.items()]
        raise InvalidRequest(owner.attempted, problems, _REMEDY)


def check_roles(owner: Owner, named: Mapping[Named, Sequence[str]], find: Callable[[str], Path]) -> None:
    """See that the roles that variables name are there, and do something. Raises InvalidRequest.

    named: with the hosts that have it, none for who takes the variables. find: a role's folder; raises RoleNotFound.
    """
    problems = []
    for (variable, name), hosts in named.items():
        try:
            folder = find(name)
        except RoleNotFound as error:
            words = str(error).rstrip(".")
            where = "give its full name in a collection, or its path"
            problems.append(f"{variable} is {name}: {words}; {where}{_whose(hosts)}")
            continue
        if not (folder / "tasks").is_dir():
            problems.append(f"{variable} is {name}, but {folder} is no role with tasks{_whose(hosts)}")
    if problems:
        raise InvalidRequest(owner.attempted, problems, _REMEDY)


def check_tasks(owner: Owner, named: Mapping[Named, Sequence[str]], load: Callable[[str], Any]) -> None:
    """See that files that variables name are ones of tasks. Raises InvalidRequest.

    named: with the hosts that have it, none for who takes the variables, who tells of a missing file himself. load:
    what a file holds; raises AnsibleError.
    """
    problems = []
    for (variable, path), hosts in named.items():
        if problem := _trouble_with(path, load) if Path(path).is_file() else hosts and ", but there is no such file":
            problems.append(f"{variable} is {path}{problem}{_whose(hosts)}")
    if problems:
        raise InvalidRequest(owner.attempted, problems, _REMEDY)


def _trouble_with(path: str, load: Callable[[str], Any]) -> str:
    """What keeps a file from being one of tasks; empty if nothing does."""
    try:
        tasks = load(path)
    except AnsibleError as error:
        return f": {' '.join(str(error).split())}"
    if not isinstance(tasks, (list, type(None))) or not all(isinstance(task, Mapping) for task in tasks or ()):
        return ", but that is no list of tasks"
    if any(key == "hosts" or key.endswith("import_playbook") for task in tasks or () for key in map(str, task)):
        return ", but that has plays: give a file of the tasks alone"
    return ""


def taken(owner: Owner, given: Mapping[str, Any]) -> dict[str, Any]:
    """What is given or has a default, in the types of the argument spec, by names without the prefix.

    A relative path starts from the folder in which ansible-playbook runs, as on every command line. A module would
    take it from the folder of the playbook, which for those of the collection is one inside of it.
    Raises InvalidRequest.
    """
    meant = understood(owner.attempted, owner.options, given)
    checked = ArgumentSpecValidator(dict(owner.options)).validate(meant)
    if checked.error_messages:
        raise InvalidRequest(owner.attempted, checked.error_messages, _REMEDY)
    values = _given(checked.validated_parameters)
    for name, value in values.items():
        if value and owner.options.get(name, {}).get("type") == "path":
            values[name] = str(Path(value).absolute())
    return {name.removeprefix(owner.prefix): value for name, value in values.items()}


def _given(value: Any) -> Any:
    """Without the nulls that Ansible puts for what is not given, also inside of it."""
    if isinstance(value, Mapping):
        return {name: _given(inner) for name, inner in value.items() if inner is not None}
    return [_given(inner) for inner in value] if isinstance(value, list) else value


def is_blank(value: object) -> bool:
    """As a survey leaves what nobody has answered."""
    return value is None or (isinstance(value, str) and not value.strip())


def _set_by(found: Any) -> Iterator[str]:
    """Names of variables that tasks set, also those in blocks."""
    if isinstance(found, Sequence) and not isinstance(found, str):
        for task in found:
            yield from _set_by(task)
    elif isinstance(found, Mapping):
        yield from found.get("ansible.builtin.set_fact") or ()
        if "register" in found:
            yield found["register"]
        for part in ("block", "rescue", "always"):
            yield from _set_by(found.get(part))


def _whose(hosts: Sequence[str]) -> str:
    return f"; {_listed(hosts)} has it" if hosts else ""


def _listed(hosts: Sequence[str]) -> str:
    more = f" and {len(hosts) - _MOST_HOSTS} more hosts" if len(hosts) > _MOST_HOSTS else ""
    return ("host " if len(hosts) == 1 else "each of ") + ", ".join(hosts[:_MOST_HOSTS]) + more
