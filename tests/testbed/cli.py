# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line: `testbed up`, `down`, `status`, `load`, `kubeconfig`, `inject`, `build`, `sweep`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from testbed import cluster, faults, scenarios
from testbed.access import service_account_kubeconfig
from testbed.api import Api, ApiError
from testbed.build import build_all
from testbed.home import Home, TestbedError
from testbed.status import show


def parser() -> argparse.ArgumentParser:
    main = argparse.ArgumentParser(
        prog="testbed",
        description="A real KubeVirt control plane on this machine; only kubelets and hypervisors are simulated.",
    )
    main.add_argument(
        "--name", default="default", help="which testbed; several run side by side (default: %(default)s)"
    )
    commands = main.add_subparsers(dest="command", required=True)

    up = commands.add_parser("up", help="start a testbed, building its parts when they are not built yet")
    up.add_argument("--nodes", type=int, default=0, metavar="N", help="also add N plain nodes (default: none)")
    up.add_argument(
        "--time-scale",
        type=float,
        default=10.0,
        metavar="X",
        help="simulated seconds per real one, for migrations and reboots (default: %(default)g)",
    )
    up.add_argument("--seed", type=int, default=0, help="seed of everything random (default: %(default)s)")
    up.add_argument(
        "--owner", type=int, metavar="PID", help="when this process has ended, the next `up` removes the testbed"
    )
    commands.add_parser("down", help="stop a testbed and remove all of it")
    commands.add_parser("status", help="show the parts and what they use; exits with 1 when one is not running")

    kubeconfig = commands.add_parser("kubeconfig", help="print the path of a kubeconfig")
    kubeconfig.add_argument(
        "--service-account",
        metavar="NAMESPACE/NAME",
        help="for this service account, which is made when it does not exist (default: the administrator)",
    )
    load = commands.add_parser("load", help="fill the cluster with a scenario and wait until it has settled")
    scenarios.add_arguments(load)
    inject = commands.add_parser("inject", help="switch a fault on or off")
    faults.add_arguments(inject)
    commands.add_parser("build", help="only build the parts")
    commands.add_parser("sweep", help="remove testbeds and test processes whose owner was killed, and name the others")
    return main


def run(args: argparse.Namespace) -> int:
    home = Home(args.name)
    match args.command:
        case "build":
            build_all()
        case "sweep":
            print("\n".join(f"machine: testbed {name} is up beside this" for name in cluster.sweep()))
        case "up":
            cluster.up(home, args.time_scale, args.seed, args.owner)
            if args.nodes:
                with Api(home.kubeconfig()) as api:
                    scenarios.add_plain_nodes(api, args.nodes)
        case "down":
            cluster.down(home)
        case "status":
            return show(home)
        case "kubeconfig":
            require_up(home)
            account = args.service_account
            print(service_account_kubeconfig(home, account) if account else home.kubeconfig())
        case "load" | "inject":
            require_up(home)
            act = scenarios.run if args.command == "load" else faults.run
            with Api(home.kubeconfig()) as api:
                return act(args, api)
    return 0


def require_up(home: Home) -> None:
    settings = home.settings()
    if settings is None or not settings.ready:
        raise TestbedError(f"There is no testbed {home.name}; start it with `testbed --name {home.name} up`.")
    dead = cluster.died(home)
    if dead:
        raise TestbedError(cluster.obituary(home, dead))


def main(argv: Sequence[str] | None = None) -> int:
    try:
        return run(parser().parse_args(argv))
    except (TestbedError, ApiError) as error:
        print(f"testbed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
