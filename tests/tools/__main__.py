# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the Makefile calls: run parts, show one, print the environment's Python, renew the lock files."""

from __future__ import annotations

import argparse
import sys

from tools import lock, runner, workspace
from tools.parts import EVERYTHING, PARTS
from tools.stacks import MAIN, STACKS, ToolsError


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("test", help="run every part on every stack it belongs to")
    run = commands.add_parser("run", help="run some parts on one stack")
    run.add_argument("parts", nargs="+", choices=PARTS)
    show = commands.add_parser("show", help="run one part on one stack, with its output as it is")
    show.add_argument("part", choices=PARTS)
    python = commands.add_parser("python", help="print the path of a stack's Python, made ready")
    commands.add_parser("lock", help="renew the lock files from the .in files")
    for command in (run, show, python):
        command.add_argument("--stack", choices=STACKS, default=MAIN.name)
    args = parser.parse_args()
    try:
        match args.command:
            case "test":
                return 0 if runner.run(EVERYTHING) else 1
            case "run":
                return 0 if runner.run([(name, STACKS[args.stack]) for name in args.parts]) else 1
            case "show":
                return 0 if runner.show(args.part, STACKS[args.stack]) else 1
            case "python":
                print(workspace.prepare(STACKS[args.stack]).venv / "bin/python")
            case "lock":
                lock.renew()
    except ToolsError as error:
        print(f"tools: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
