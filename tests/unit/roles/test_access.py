# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role knows the same roles as the table of rights, in each place where Ansible wants them written down."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.right import LEASE_NAMESPACE
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.roles import ROLES
from ansible_collections.virtops.kubevirt.plugins.modules import access_account, access_review

OWN = "ansible_collections.virtops.kubevirt.plugins"
FOLDER = Path(__file__).parents[3] / "roles"


def read(path: str) -> Any:
    return yaml.safe_load((FOLDER / path).read_text())


def test_every_role_can_be_chosen() -> None:
    specs = read("access/meta/argument_specs.yml")["argument_specs"]["variables"]["options"]
    assert specs["access_roles"]["choices"] == list(ROLES)
    assert specs["access_lease_namespace"]["default"] == LEASE_NAMESPACE
    for module in (access_account, access_review):
        assert yaml.safe_load(module.DOCUMENTATION)["options"]["roles"]["choices"] == list(ROLES)


def test_the_readme_knows_every_module_that_takes_the_namespace_of_the_leases() -> None:
    example = re.search(r"```yaml\n(module_defaults:.*?)```", (FOLDER / "access/README.md").read_text(), re.DOTALL)
    assert example
    told = yaml.safe_load(example[1])["module_defaults"]
    modules = FOLDER.parent / "plugins/modules"
    takers = [path.stem for path in modules.glob("*.py") if takes_lease_namespace(path.stem)]
    assert sorted(told) == sorted(f"virtops.kubevirt.{name}" for name in takers)
    assert all(options.keys() == {"lease_namespace"} for options in told.values())


def takes_lease_namespace(module: str) -> bool:
    """By its documentation, in which what it shares with others stands in fragments."""
    documented = import_module(f"{OWN}.modules.{module}").DOCUMENTATION
    fragments = yaml.safe_load(documented)["extends_documentation_fragment"]
    own = [name.removeprefix("virtops.kubevirt.").partition(".")[0] for name in fragments if "virtops" in name]
    texts = [import_module(f"{OWN}.doc_fragments.{name}").ModuleDocFragment.DOCUMENTATION for name in own]
    return any("lease_namespace" in (yaml.safe_load(text).get("options") or {}) for text in [documented, *texts])


def test_a_run_asks_for_a_role_that_there_is() -> None:
    specs = read("plan_maintenance/meta/argument_specs.yml")["argument_specs"]["variables"]["options"]
    assert set(specs["plan_maintenance_rights"]["choices"]) <= set(ROLES)
