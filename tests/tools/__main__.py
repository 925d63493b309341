# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the Makefile calls: run parts, show one, search, print the environment's Python, renew the lock files."""

from __future__ import annotations

import argparse
import sys

from tools import lock, runner, searching, steadiness, workspace
from tools.parts import EVERYTHING, GATE, PARTS, Job, Scope
from tools.stacks import MAIN, STACKS, Stack, ToolsError


def main() -> int:
    options = _options()
    try:
        return 0 if _obey(options, STACKS[options.stack]) else 1
    except ToolsError as error:
        print(f"tools: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _obey(options: argparse.Namespace, stack: Stack) -> bool:
    match options.command:
        case "test":
            return runner.run(GATE)
        case "test-all":
            return runner.run(EVERYTHING)
        case "run":
            scope = Scope.GATE if options.gate else Scope.ALL
            return runner.run([Job(PARTS[name], stack, scope) for name in options.parts])
        case "show":
            return runner.show(options.part, stack)
        case "search":
            return searching.search(stack, options.seconds, options.seed)
        case "steady":
            return steadiness.steady(stack, options.tests, options.times)
        case "python":
            print(workspace.prepare(stack).venv / "bin/python")
        case "lock":
            lock.renew()
    return True


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("test", help="the gate: one of everything")
    commands.add_parser("test-all", help="run every part on every stack it belongs to")
    run = commands.add_parser("run", help="run some parts on one stack")
    run.add_argument("parts", nargs="+", choices=PARTS)
    run.add_argument("--gate", action="store_true", help="only what the gate holds of them")
    show = commands.add_parser("show", help="run one part on one stack, with its output as it is")
    show.add_argument("part", choices=PARTS)
    search = commands.add_parser("search", help="look for what no test knows yet")
    search.add_argument("--seconds", type=float, default=600, help="no search begins after that")
    search.add_argument("--seed", type=int, help="of the first round; drawn where it is not given")
    steady = commands.add_parser("steady", help="run tests on a testbed many times, half of them beside busy loops")
    steady.add_argument("tests", nargs="+", help="files or names of tests, and options of pytest after --")
    steady.add_argument("--times", type=int, default=10)
    commands.add_parser("python", help="print the path of a stack's Python, made ready")
    commands.add_parser("lock", help="renew the lock files from the .in files")
    for command in commands.choices.values():
        command.add_argument("--stack", choices=STACKS, default=MAIN.name)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
