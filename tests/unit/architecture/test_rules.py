# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each rule finds the violation it is for, says it in one sentence, and leaves a good tree alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from unit.architecture.files import HOLDER, LICENSE, PYTHON_HEADER
from unit.architecture.registry import RULES
from unit.architecture.tree import Tree, read

OWN = "ansible_collections.virtops.kubevirt.plugins.module_utils"
UTILS = "plugins/module_utils"
RUNTIME = """
action_groups: {own: [drain], all: [{metadata: {extend_group: [own, kubernetes.core.k8s]}}]}
"""
MODULE = '''
DOCUMENTATION = r"""
extends_documentation_fragment:
  - virtops.kubevirt._attributes
  - virtops.kubevirt._attributes.action_group
  - virtops.kubevirt._progress
attributes: {check_mode: {support: full}, diff_mode: {support: none}, idempotent: {support: full}}
"""
RETURN = r"""
error: {contains: {attempted: {}, object: {}, status: {}, reason: {}, server_message: {}, remedy: {}}}
"""
def main():
    pass
'''
WIRED = {"plugins/modules/drain.py": MODULE, "plugins/action/drain.py": "", "meta/runtime.yml": RUNTIME}
PYTHON = "\n".join((*PYTHON_HEADER, "from __future__ import annotations", ""))
SPECS = "argument_specs: {main: {}, variables: {options: {drain_node: {type: str}}}}"
TAKING = {
    "roles/drain/meta/argument_specs.yml": SPECS,
    "roles/drain/tasks/main.yml": "- virtops.kubevirt.take_variables:",
}
ELSEWHERE = "become: false, vars: {ansible_become: false"
FOREIGN_TASK = f"{{kubernetes.core.k8s: , {ELSEWHERE}, ansible_connection: local}}}}"
INCLUDING = "- include_role:\n    name: virtops.kubevirt.drain\n    rolespec_validate: false\n"
REGISTRY = "from unit.rules import first\nRULES = (first.check,)\n"


@pytest.mark.parametrize(
    ("rule", "files"),
    [
        ("arrows", {f"{UTILS}/_planner/batches.py": f"from {OWN}._scheduler.registry import PLUGINS"}),
        (
            "arrows",
            {f"{UTILS}/_cluster/client.py": "from ansible_collections.kubernetes.core.plugins import x"},
        ),
        (
            "arrows",
            {
                f"{UTILS}/_cluster/verbs/a.py": f"from {OWN}._cluster.looks.b import c",
                f"{UTILS}/_cluster/d.py": f"from {OWN}._cluster.verbs import a",
                f"{UTILS}/_cluster/e.py": f"from {OWN}._cluster.d import f",
            },
        ),
        ("arrows", {"plugins/filter/fits.py": f"from {OWN}._model.snapshot import load"}),
        ("circles", {f"{UTILS}/_model/a.py": f"import {OWN}._model.b", f"{UTILS}/_model/b.py": ""}),
        (
            "crumbs",
            {
                f"{UTILS}/_a/a.py": f"from {OWN}._a import long, shared, shape_one, shape_two, shape_three",
                f"{UTILS}/_a/b.py": f"import {OWN}._a.shared",
                f"{UTILS}/_a/shared.py": "",
                f"{UTILS}/_a/long.py": "x = 1\n" * 60,
                **{f"{UTILS}/_a/shape_{name}.py": "" for name in ("one", "two", "three")},
                f"{UTILS}/_a/registry.py": f"from {OWN}._a import rule",
                f"{UTILS}/_a/rule.py": "",
                f"{UTILS}/_b/other.py": f"from {OWN}._a import registry",
            },
        ),
        (
            "maps",
            {
                f"{UTILS}/_a/__init__.py": '"""Two things.\n\none.py     the first\nothers/    more\n"""',
                f"{UTILS}/_a/one.py": "",
                f"{UTILS}/_a/others/two.py": "",
            },
        ),
        (
            "named",
            {
                "CONTRIBUTING.md": "`_a/one.py`, `two/*.in`, `_a/`, `plugins/<name>.py`, `~/.cache/x.py`, `make x/`",
                f"{UTILS}/_a/one.py": "",
                "two/three.in": "",
            },
        ),
        ("purity", {f"{UTILS}/_model/quantity.py": "import re\nfrom datetime import datetime\nimport numpy as np"}),
        ("purity", {f"{UTILS}/_planner/exact.py": "def solve():\n    from ortools.sat.python import cp_model"}),
        ("purity", {f"{UTILS}/_cluster/client.py": "import os, time, kubernetes"}),
        ("size", {"plugins/a.py": "x = 1\n" * 400, "go.sum": "x\n" * 5000}),
        ("header", {"a.py": PYTHON, "empty/__init__.py": "", "b.py": f"#!/usr/bin/python\n{PYTHON}"}),
        ("machine_paths", {"a.md": "~/.cache, $HOME/work/x, https://example.org/root/x, {root}/work/, tests/work/x"}),
        ("api_paths", {f"{UTILS}/_cluster/a.py": "a = '/api/v1/pods'\nb = f'{namespace}/{name}'"}),
        ("modules", WIRED),
        (
            "libraries",
            {
                "plugins/filter/fits.py": f'DOCUMENTATION = "requirements: [numpy >= 1]"\nfrom {OWN}._model.a import b',
                f"{UTILS}/_model/a.py": "import numpy as np",
            },
        ),
        ("roles", {**TAKING, "roles/drain/defaults/main.yml": "drain_node: a", "playbooks/run.yml": INCLUDING}),
        (
            "registries",
            {
                "tests/unit/rules/registry.py": REGISTRY,
                "tests/unit/rules/first.py": "from unit.rules.contract import Rule",
                "tests/unit/rules/contract.py": "",
                "tests/unit/rules/framework.py": "from unit.rules import clock, registry",
                "tests/unit/rules/clock.py": "",
                "tests/unit/rules/test_first.py": "",
            },
        ),
    ],
)
def test_good_trees_pass(rule: str, files: dict[str, str]) -> None:
    assert list(RULES[rule](Tree(files))) == []


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({f"{UTILS}/_model/a.py": f"import {OWN}._planner.order"}, "_model may not import _planner"),
        ({f"{UTILS}/_scheduler/a.py": "from .._kubevirt.queue import x"}, "_scheduler may not import _kubevirt"),
        ({f"{UTILS}/_scheduler/a.py": "from .. import _planner"}, "_scheduler may not import _planner"),
        ({f"{UTILS}/_scheduler/__init__.py": "from .._lint import x"}, "_scheduler may not import _lint"),
        (
            {f"{UTILS}/_plan/a.py": f"def f():\n    from {OWN} import _cluster"},
            f"{UTILS}/_plan/a.py:2: _plan may not import",
        ),
        (
            {f"{UTILS}/_cluster/looks/a.py": f"from {OWN}._cluster.verbs.migrations import create"},
            "_cluster/looks may not import _cluster/verbs",
        ),
        (
            {f"{UTILS}/_cluster/verbs/a.py": f"from {OWN}._cluster.plan_run import PlanRun"},
            "_cluster/verbs may not import _cluster/plan_run",
        ),
        (
            {f"{UTILS}/_cluster/transport/a.py": "from .. import drain"},
            "_cluster/transport may not import _cluster/drain",
        ),
        ({f"{UTILS}/_cluster/a.py": "from ...modules.drain import main"}, "plugins/module_utils may not import"),
        ({"plugins/modules/a.py": "from ..plugin_utils._x import y"}, "plugins/modules may not import"),
        ({"plugins/modules/a.py": "import kubernetes.client"}, "kubernetes may be imported only in"),
        ({"plugins/filter/a.py": "import ansible_collections.kubernetes.core.plugins"}, "may be imported only in"),
        (
            {"tests/checker/a.py": f"from {OWN} import _model, _planner"},
            f"the checker of plans may not import {OWN}._planner (allowed: _kubevirt, _model, _plan, _scheduler)",
        ),
        ({"tests/checker/a.py": f"import {OWN.rpartition('.')[0]}.filter.x"}, "checker of plans may not import"),
        ({f"{UTILS}/_other/a.py": ""}, "it stands in none of module_utils' packages"),
        ({f"{UTILS}/other.py": ""}, "it stands in none of module_utils' packages"),
        ({"plugins/cliconf/a.py": ""}, "plugins/cliconf has no place among the layers"),
    ],
)
def test_arrows(files: dict[str, str], sentence: str) -> None:
    assert_only("arrows", files, sentence)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("import os.path", "may not import os;"),
        ("from pathlib import Path", "may not import pathlib;"),
        ("import random", "may not import random;"),
        ("def f():\n    import time", "a.py:2: _scheduler is pure and may not import time;"),
        ("import requests", "may not import requests."),
        ("from ansible.errors import AnsibleError", "may not import ansible.errors.AnsibleError."),
        ("import kubernetes", "may not import kubernetes."),
        (
            "from ansible_collections.kubernetes.core.plugins import x",
            "may not import ansible_collections.kubernetes.core",
        ),
        ("from ortools.sat import cp_model", "may not import ortools.sat.cp_model."),
        ("text = open('x').read()", "may not call open()."),
        (
            "from datetime import datetime\nnow = datetime.now()",
            "a.py:2: a pure package may not read the clock with now()",
        ),
    ],
)
def test_purity(source: str, sentence: str) -> None:
    assert_only("purity", {f"{UTILS}/_scheduler/a.py": source}, sentence)


@pytest.mark.parametrize(
    ("rule", "files", "sentence"),
    [
        ("size", {"tests/a.yml": "x\n" * 401}, "tests/a.yml: 401 lines, more than 400"),
        ("header", {"a.py": "from __future__ import annotations\n"}, "a.py: it does not begin with"),
        ("header", {"a.py": "\n".join(PYTHON_HEADER)}, "a.py: it lacks `from __future__ import annotations`"),
        ("header", {"a.yml": f"---\n# {LICENSE}\n"}, "a.yml: its first lines lack"),
        ("header", {"a/b.json": "{}"}, "a/b.json: its first lines lack"),
        ("machine_paths", {"a.md": "one\nsee /" + "root/x"}, "a.md:2: it names"),
        ("machine_paths", {"a.py": "'/" + "home/jane/x'"}, "a.py:1: it names"),
        ("registries", {f"{UTILS}/_lint/registry.py": "", f"{UTILS}/_lint/zone.py": ""}, "_lint/zone.py:"),
        (
            "registries",
            {
                "tests/unit/rules/registry.py": REGISTRY,
                "tests/unit/rules/first.py": "",
                "tests/unit/rules/second.py": "import unit.rules.first",
            },
            "tests/unit/rules/second.py: tests/unit/rules/registry.py does not name it",
        ),
        ("api_paths", {f"{UTILS}/_cluster/a.py": "f'/api/v1/nodes/{node}'"}, "a.py:1: it builds a path of the API"),
        ("api_paths", {f"{UTILS}/_cluster/a.py": "f'{api}/namespaces/{name}'"}, "take collection_path, object_path"),
        (
            "libraries",
            {
                "plugins/filter/fits.py": f"from {OWN}._model import a",
                f"{UTILS}/_model/a.py": "import jmespath",
            },
            "fits.py: it may use jmespath, which the requirements of its documentation do not name.",
        ),
        (
            "scenarios",
            {f"extensions/molecule/drain/{name}.yml": "" for name in ("molecule", "converge")},
            "molecule/drain: it has no verify.yml",
        ),
        (
            "scenarios",
            {f"extensions/molecule/drain/{name}.yml": "" for name in ("converge", "verify")},
            "molecule/drain: it has no molecule.yml",
        ),
        ("roles", {"roles/drain/tasks/main.yml": ""}, "roles/drain: it has no meta/argument_specs.yml"),
        (
            "roles",
            {**TAKING, "roles/drain/meta/argument_specs.yml": "argument_specs: {more: {}}"},
            "it has no entry point `main`",
        ),
        (
            "roles",
            {path.replace("drain", "lead"): text for path, text in TAKING.items()},
            "call it lead_drain_node.",
        ),
        (
            "roles",
            {**TAKING, "roles/drain/defaults/main.yml": "drain_pods: a"},
            "drain_pods is no option in meta/argument_specs.yml",
        ),
        ("roles", {**TAKING, "roles/drain/vars/main.yml": "_pods: a"}, "call it _drain_pods."),
        ("roles", {**TAKING, "roles/drain/tasks/main.yml": ""}, "roles/drain: no task takes its variables"),
        (
            "roles",
            {**TAKING, "roles/drain/tasks/drain.yml": "- always: [{name: Move it, a.b.c: {}, become: false}]"},
            "`Move it` runs as whom and where the inventory says",
        ),
        (
            "roles",
            {**TAKING, "roles/drain/tasks/drain.yml": f"- {{name: Move it, a.b.c: {{}}, {ELSEWHERE}}}}}"},
            "`Move it` runs as whom and where the inventory says",
        ),
        (
            "roles",
            {**TAKING, "playbooks/run.yml": INCLUDING.replace("    rolespec_validate: false\n", "")},
            "virtops.kubevirt.drain takes its variables itself; include it with `rolespec_validate: false`.",
        ),
        (
            "roles",
            {**TAKING, "roles/drain/meta/argument_specs.yml": SPECS.replace("main: {}, variables", "main")},
            "options of entry point `main` belong into `variables`.",
        ),
        (
            "roles",
            {
                "roles/access/tasks/main.yml": f"[virtops.kubevirt.take_variables: , {FOREIGN_TASK}]",
                "roles/access/meta/argument_specs.yml": "argument_specs: {main: {}}",
            },
            "roles/access/tasks/main.yml: modules of kubernetes.core.* send requests again as they like",
        ),
    ],
)
def test_files_registries_and_roles(rule: str, files: dict[str, str], sentence: str) -> None:
    assert_only(rule, files, sentence)


@pytest.mark.parametrize(
    ("rule", "files", "sentence"),
    [
        ("maps", {f"{UTILS}/_a/__init__.py": "", f"{UTILS}/_a/b.py": ""}, "its docstring does not list b.py"),
        ("maps", {f"{UTILS}/_a/__init__.py": "", f"{UTILS}/_a/b/c.py": ""}, "its docstring does not list b/"),
        ("maps", {f"{UTILS}/_a/__init__.py": '"""A map.\n\nb.py  old\n"""'}, "lists b.py, which is not there"),
        (
            "maps",
            {f"{UTILS}/_a/__init__.py": '"""A map.\n\nb.py  one\nb.py  more\n"""', f"{UTILS}/_a/b.py": ""},
            "lists b.py twice",
        ),
        ("named", {"CONTRIBUTING.md": "`one.py`", "alone.py": ""}, "it names one.py, which is not there"),
        ("named", {"CONTRIBUTING.md": "`_a/`", f"{UTILS}/_a.py": ""}, "it names _a/, which is not there"),
        (
            "circles",
            {
                f"{UTILS}/_a/a.py": f"if TYPE_CHECKING:\n    from {OWN}._a.b import B",
                f"{UTILS}/_a/b.py": f"from {OWN}._a import c",
                f"{UTILS}/_a/c.py": f"def f():\n    import {OWN}._a.a",
            },
            f"{UTILS}/_a/a.py: it stands in a circle of imports with {UTILS}/_a/b.py, {UTILS}/_a/c.py;",
        ),
        (
            "crumbs",
            {f"{UTILS}/_a/a.py": f"from {OWN}._a.b import c", f"{UTILS}/_a/b.py": "c = 1\n" * 59},
            f"{UTILS}/_a/b.py: it is short, and {UTILS}/_a/a.py alone uses it; put it there.",
        ),
    ],
)
def test_maps_circles_and_crumbs(rule: str, files: dict[str, str], sentence: str) -> None:
    assert_only(rule, files, sentence)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"meta/runtime.yml": RUNTIME.replace("[drain]", "[]")}, "lacks it in action group `own`"),
        ({"plugins/action/drain.py": None}, "it has no action plugin plugins/action/drain.py"),
        ({"meta/runtime.yml": RUNTIME.replace("[own, ", "[")}, "action group `all` does not extend `own`"),
        ({"meta/runtime.yml": RUNTIME.replace("[drain]", "[drain, cordon]")}, "it names cordon, but there is no"),
        (
            {"meta/runtime.yml": RUNTIME + "plugin_routing: {action: {drain: {redirect: kubernetes.core.k8s_info}}}"},
            "the redirect of drain would win",
        ),
        ({"plugins/modules/drain.py": MODULE.replace("DOCUMENTATION", "DOCS")}, "it has no DOCUMENTATION"),
        ({"plugins/modules/drain.py": MODULE.replace("._attributes.action_group", ".x")}, "does not extend virtops"),
        (
            {"plugins/modules/drain.py": MODULE.replace("._progress", ".x")},
            "does not extend virtops.kubevirt._progress",
        ),
        ({"plugins/modules/drain.py": MODULE.replace("diff_mode", "diff")}, "how far it supports diff_mode"),
        ({"plugins/modules/drain.py": MODULE.replace("status", "state")}, "does not say that error has status"),
        ({"plugins/modules/drain.py": MODULE.replace("main", "run")}, "it has no main()"),
        ({"plugins/modules/drain.py": MODULE + "    pass\n" * 15}, "main() has 16 lines"),
    ],
)
def test_modules(changes: dict[str, str | None], sentence: str) -> None:
    files = {path: text for path, text in (WIRED | changes).items() if text is not None}
    assert_only("modules", files, sentence)


def test_what_reuse_toml_covers_needs_no_header() -> None:
    covered = '[[annotations]]\npath = ["**.json"]\nSPDX-License-Identifier = "X"\n'
    files = {"REUSE.toml": f"# {LICENSE}\n# {HOLDER}\n{covered}", "a/b.json": "{}"}
    assert list(RULES["header"](Tree(files))) == []


def test_a_tree_holds_what_git_would_commit(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / "folder").mkdir()
    for name in ("kept.py", "folder/kept.yml", "ignored.log"):
        (tmp_path / name).write_text("text")
    (tmp_path / "image.png").write_bytes(b"\0\1")
    (tmp_path / ".gitignore").write_text("*.log")
    (tmp_path / "link").symlink_to("kept.py")
    assert read(tmp_path).files == {"kept.py": "text", "folder/kept.yml": "text", ".gitignore": "*.log"}


def assert_only(rule: str, files: dict[str, str], sentence: str) -> None:
    found = list(RULES[rule](Tree(files)))
    assert len(found) == 1, found
    assert sentence in found[0]
