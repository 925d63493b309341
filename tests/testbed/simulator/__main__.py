# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the simulator: `python -m testbed.simulator --kubeconfig FILE`. Prints one line for each thing that happens."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
from pathlib import Path

from testbed.simulator.client import Client
from testbed.simulator.fault import Faults
from testbed.simulator.loop import Loop


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="testbed.simulator", description="Play every node's virt-handler and guests.")
    parser.add_argument("--kubeconfig", type=Path, required=True, help="of a user who may impersonate")
    parser.add_argument("--time-scale", type=float, default=1.0, metavar="X", help="simulated seconds in a real one")
    parser.add_argument("--seed", type=int, default=0, help="of the faults' chances")
    return parser.parse_args()


async def simulate(args: argparse.Namespace) -> None:
    client = Client(args.kubeconfig)
    work = asyncio.ensure_future(Loop(client, Faults((), args.seed, args.time_scale)).run())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, work.cancel)
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await work
    finally:
        await client.close()


asyncio.run(simulate(arguments()))
