# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make test` and `make test-all` are made of: one function for each part, naming the programs it runs.

The gate, `make test`, holds one of everything, so that a change is judged in minutes; all else is in `make test-all`.
Of a part that takes long on a testbed the gate runs a chosen few tests: those marked `gate`, and `GATE_SCENARIOS`.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from tools import sanity
from tools.stacks import BUILD, MAIN, NEXT, REPOSITORY, Stack
from tools.workspace import Command, Workspace

# The one scenario that the second stack repeats.
REPEATED_SCENARIO = "cluster_snapshot"
# Scenarios of what no test of the gate does otherwise.
GATE_SCENARIOS: dict[Stack, tuple[str, ...]] = {MAIN: ("node_topology", "rebalance"), NEXT: (REPEATED_SCENARIO,)}
ALL_SCENARIOS: dict[Stack, tuple[str, ...]] = {MAIN: (), NEXT: (REPEATED_SCENARIO,)}
# Only what depends on the version of Ansible or Python; the rest reads the same files in the same way.
REPEATED_SANITY = ("ansible-doc", "compile", "import", "runtime-metadata", "validate-modules")
# The tests without a cluster that the second stack repeats: those of the collection itself, not of what tests it.
REPEATED_TESTS = tuple(f"tests/unit/{folder}" for folder in ("package", "playbooks", "plugins", "roles"))
# Of these the gate leaves to `make test-all` the tests of packages that know neither Ansible nor a cluster, but Python:
# the second stack's reads and imports these in `sanity`.
PURE_TESTS = tuple(
    f"tests/unit/plugins/module_utils/{package}"
    for package in ("_execution", "_lint", "_model", "_plan", "_planner", "_scheduler")
)
# But for the one of them that counts what only the second stack's Python can count.
NEWER_TESTS = ("tests/unit/plugins/module_utils/_planner/test_linearity.py",)
# So many cases of each campaign are tried in the gate, and on the second stack.
FEW = "2"
# What is left out on each stack where not all is run: on the main one integration tests run playbooks.
LEFT_OUT: dict[Stack, str] = {MAIN: "not slow and not playbook", NEXT: "not slow"}
# Two for each processor: half of the time a test waits for a server of its own or a playbook.
WORKERS = str(2 * (os.cpu_count() or 1))
# So many testbeds share the tests of integration: each test mostly waits for its own.
TESTBEDS = "2"
# Tests of seconds stand beside thousands of milliseconds: who has nothing left takes from who has most.
SHARED = ("-n", WORKERS, "--dist", "worksteal")
# What the time goes to, for those who want it back.
SLOWEST = "--durations=20"


class Scope(Enum):
    """How much of itself a part runs."""

    GATE = "gate"
    ALL = "all"


@dataclass(frozen=True)
class Part:
    """One line of the summary.

    `first`: before all others, with nothing beside it. `last`: after all others, as those leave a testbed, which mostly
    waits, no processor. `limit`: minutes after which a program of it is taken for hung; many times what it takes, as a
    fresh and busy machine is slow.
    """

    name: str
    summary: str
    commands: Callable[[Workspace, Scope], Iterable[Command]]
    first: bool = False
    last: bool = False
    limit: float = 40


@dataclass(frozen=True)
class Job:
    """A part on a stack."""

    part: Part
    stack: Stack
    scope: Scope = Scope.ALL


def build(workspace: Workspace, _scope: Scope) -> Iterator[Command]:
    launcher = REPOSITORY / "tests/testbed/testbed"
    yield Command((launcher, "sweep"))
    yield Command((launcher, "build"))


def lint(workspace: Workspace, _scope: Scope) -> Iterator[Command]:
    yield workspace.command("ruff", "format", "--check")
    yield workspace.command("ruff", "check")
    yield workspace.command("yamllint", "--strict", *_files("*.yml", "*.yaml", ".yamllint", ".ansible-lint"))
    yield workspace.command("reuse", "lint", "--lines")
    yield workspace.command("antsibull-changelog", "lint", cwd=workspace.collection)
    yield workspace.command("ansible-lint", "--offline", "--strict", cwd=workspace.collection)


def types(workspace: Workspace, _scope: Scope) -> Iterator[Command]:
    """The tests' packages stand on `tests/`; the plugins are seen by their full names, as Ansible imports them."""
    # No cache: it keeps errors about files that have come since, and a whole run takes seconds.
    config = ("--config-file", REPOSITORY / "pyproject.toml", "--cache-dir", os.devnull)
    yield workspace.command("mypy", *config, "tests", MYPYPATH=f"tests:{workspace.stack.tree}")
    yield workspace.command(
        "mypy", *config, "-p", "ansible_collections.virtops.kubevirt.plugins", cwd=workspace.stack.tree, MYPYPATH="."
    )


def docs(workspace: Workspace, _scope: Scope) -> Iterator[Command]:
    references = ("--plugin-docs", "--validate-collection-refs", "all", ".")
    yield workspace.command("antsibull-docs", "lint-collection-docs", *references, cwd=workspace.collection)


def unit(workspace: Workspace, scope: Scope) -> Iterator[Command]:
    stack = workspace.stack
    which = ("tests/unit",) if stack is MAIN else REPEATED_TESTS
    few = () if (scope, stack) == (Scope.ALL, MAIN) else ("--few", FEW, "-m", LEFT_OUT[stack])
    later = [f"--ignore={tests}" for tests in PURE_TESTS] if (scope, stack) == (Scope.GATE, NEXT) else ()
    yield _tried_again(workspace, *which, *later, *few, SLOWEST, *SHARED)
    if later:
        yield _tried_again(workspace, *NEWER_TESTS)


def differential(workspace: Workspace, scope: Scope) -> Iterator[Command]:
    tests = ("tests/differential", *(("-m", "not slow") if scope is Scope.GATE else ()))
    yield workspace.command("python", "-m", "pytest", *tests, PYTHONPATH=str(workspace.stack.tree))


def integration(workspace: Workspace, scope: Scope) -> Iterator[Command]:
    # File by file in their order, in which that of the longest tests comes first; by size it came last.
    beside = () if "VIRTOPS_TESTBED" in os.environ else ("-n", TESTBEDS, "--dist", "loadfile", "--no-loadscope-reorder")
    which = ("-m", "gate") if scope is Scope.GATE else ()
    yield _tried_again(workspace, "tests/integration", *which, *beside, SLOWEST)


def molecule(workspace: Workspace, scope: Scope) -> Iterator[Command]:
    """Each run has a testbed and a home of its own, so runs go side by side and a killed one does not spoil the next.

    In a home that is kept, Molecule would take the killed run's testbed for created.
    """
    scenarios = (GATE_SCENARIOS if scope is Scope.GATE else ALL_SCENARIOS)[workspace.stack]
    which = [word for name in scenarios for word in ("--scenario-name", name)] or ["--all"]
    testbed = f"molecule-{workspace.stack.name.replace('.', '-')}-{os.getpid()}"
    with tempfile.TemporaryDirectory(prefix="molecule-", dir=BUILD) as home:
        yield workspace.command(
            "molecule",
            "test",
            *which,
            cwd=workspace.collection,
            ANSIBLE_HOME=home,
            VIRTOPS_MOLECULE_TESTBED=testbed,
            VIRTOPS_MOLECULE_OWNER=str(os.getpid()),
        )


def checked_by_ansible_test(workspace: Workspace, scope: Scope) -> Iterator[Command]:
    return sanity.commands(workspace, REPEATED_SANITY if (scope, workspace.stack) == (Scope.GATE, NEXT) else ())


def demo(workspace: Workspace, _scope: Scope) -> Iterator[Command]:
    path = f"{REPOSITORY / 'tests'}{os.pathsep}{workspace.stack.tree}"
    yield workspace.command("python", "-m", "demo", PYTHONPATH=path)


PARTS = {
    part.name: part
    for part in (
        Part("build", "the testbed's binaries, from pinned Go modules", build, first=True),
        Part("lint", "ruff, yamllint, reuse, changelog and ansible-lint", lint),
        Part("types", "mypy in strict mode", types),
        Part("docs", "antsibull-docs on modules, plugins and roles", docs),
        Part("unit", "pytest without a cluster", unit),
        Part("sanity", "ansible-test sanity", checked_by_ansible_test),
        Part("differential", "verdicts against kube-scheduler's own", differential, last=True),
        Part("integration", "pytest on a testbed", integration, last=True, limit=150),
        Part("molecule", "Molecule scenarios on a testbed", molecule, last=True),
        Part("demo", "the maintenance of a whole cluster", demo, last=True),
    )
}

# One of everything. The main stack's playbooks are run by integration tests, the next one's by Molecule and the demo.
GATE = (
    *(Job(part, MAIN, Scope.GATE) for part in PARTS.values() if part.name != "demo"),
    *(Job(PARTS[name], NEXT, Scope.GATE) for name in ("unit", "sanity", "molecule", "demo")),
)

# All on the main stack; on the next one what depends on Ansible and Python.
EVERYTHING = (
    *(Job(part, MAIN) for part in PARTS.values()),
    *(Job(PARTS[name], NEXT) for name in ("unit", "sanity", "molecule", "demo")),
)


def _tried_again(workspace: Workspace, *words: str) -> Command:
    """pytest, in which a test that fails gets a second try."""
    # The folder that Python finds the tools in; PYTHONPATH is for collections, and handed on to Ansible.
    path = str(workspace.stack.tree)
    return workspace.command("python", "-m", "tools.again", *words, cwd=REPOSITORY / "tests", PYTHONPATH=path)


def _files(*patterns: str) -> list[str]:
    """The files git knows or would add, so that caches and build folders are left out."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    names = subprocess.run(listing, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.split("\n")
    return [name for name in names if name and (REPOSITORY / name).exists()]
