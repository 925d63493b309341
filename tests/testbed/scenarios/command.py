# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command `testbed load`, and the plain nodes of `testbed up --nodes`."""

from __future__ import annotations

import argparse
from dataclasses import fields

from testbed.api import Api
from testbed.home import TestbedError
from testbed.nodes import fake_node
from testbed.scenarios import files
from testbed.scenarios.generator import GeneratorSpec, generate
from testbed.scenarios.load import load
from testbed.scenarios.model import Scenario, Settled

GENERATED = "generated"
TIMEOUT = 300.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "scenario", choices=[*files.names(), GENERATED], help="written by hand, or generated from the options below"
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=TIMEOUT,
        metavar="SECONDS",
        help="for applying and settling together (default: %(default)g)",
    )
    group = parser.add_argument_group("generated clusters")
    for field in fields(GeneratorSpec):
        # No default here, so that a value for a scenario that is not generated can be refused.
        group.add_argument(
            f"--{field.name}",
            type=type(field.default),
            help=f"{field.metadata['help']} (default: {field.default})",
        )


def run(args: argparse.Namespace, api: Api) -> int:
    """Raises TestbedError when the scenario cannot be made or does not settle in time."""
    load(api, chosen(args), args.timeout)
    return 0


def chosen(args: argparse.Namespace) -> Scenario:
    given = {f.name: value for f in fields(GeneratorSpec) if (value := getattr(args, f.name)) is not None}
    if args.scenario == GENERATED:
        return generate(GeneratorSpec(**given))
    if given:
        raise TestbedError(
            f"Scenario {args.scenario} is fixed; {', '.join(f'--{name}' for name in given)} work with {GENERATED} only."
        )
    return files.read(files.FOLDER / f"{args.scenario}.yaml")


def add_plain_nodes(api: Api, count: int) -> None:
    """Add `count` equal nodes without labels of their own, node-1 and so on, and wait until they are Ready."""
    nodes = tuple(fake_node(f"node-{number}") for number in range(1, count + 1))
    load(api, Scenario("plain nodes", nodes, Settled(pods=0, vmis=0)), TIMEOUT)
