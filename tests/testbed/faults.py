# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`testbed inject`: switch faults on and off, list them. What they mean is simulator/fault.py's matter."""

from __future__ import annotations

import argparse
import dataclasses
import re
import time
from collections.abc import Mapping
from typing import Any

from testbed.api import Api, ApiError, object_path
from testbed.home import TestbedError
from testbed.simulator import fault
from testbed.simulator.fault import LATEST, Fault

UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
CONFIG_MAP: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": fault.CONFIG_MAP, "namespace": fault.NAMESPACE},
}
EXAMPLES = """\
examples:
  inject migration-failure --vmi prod/db-1 --phase Running --probability 0.5 --for 60s
  inject never-converges --selector app=db
  inject node-reboot --node worker-3 --duration 20s
  inject node-lost --node worker-3 --for 2s          (a power cycle)
  inject list
  inject clear migration-failure-1
"""


def duration(text: str) -> float:
    """Seconds from `90`, `90s`, `1.5m` or `1h`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration; write for example 90s, 1.5m or 1h")
    return float(match[1]) * UNITS[match[2]]


def labels(text: str) -> dict[str, str]:
    """`a=b,c=d` as a dictionary."""
    pairs = [entry.partition("=") for entry in text.split(",")]
    if not all(key and sign for key, sign, _value in pairs):
        raise argparse.ArgumentTypeError(f"{text!r} is no label selector; write KEY=VALUE[,KEY=VALUE…]")
    return {key: value for key, _sign, value in pairs}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument(
        "fault",
        choices=(*fault.KINDS, "list", "clear"),
        metavar="FAULT",
        help=f"{', '.join(fault.KINDS)}; or list; or clear",
    )
    parser.add_argument("id", nargs="?", default="", metavar="ID", help="with clear: only this one (default: all)")
    parser.add_argument("--vmi", default="", metavar="NAMESPACE/NAME", help="only this VM")
    parser.add_argument("--selector", type=labels, default={}, metavar="KEY=VALUE,…", help="only VMs with these labels")
    parser.add_argument("--node", default="", help="the node; for VM faults: only VMs on it, or migrating to it")
    parser.add_argument(
        "--phase",
        default=fault.RUNNING,
        help=f"where a migration fails: {', '.join(fault.PHASES)} (default: %(default)s)",
    )
    parser.add_argument(
        "--probability", type=float, default=1.0, metavar="P", help="share of the occasions (default: all)"
    )
    parser.add_argument(
        "--after", type=duration, default=0.0, metavar="TIME", help="not before this (real) time has passed"
    )
    parser.add_argument(
        "--for", type=duration, dest="span", metavar="TIME", help="for this (real) time (default: until cleared)"
    )
    parser.add_argument(
        "--duration",
        type=duration,
        default=fault.REBOOT_SECONDS,
        metavar="TIME",
        help="simulated time a reboot takes (default: %(default)g s)",
    )
    parser.add_argument(
        "--factor",
        type=float,
        default=fault.SLOW_FACTOR,
        help="how many times slower a migration is (default: %(default)g)",
    )


def run(args: argparse.Namespace, api: Api) -> int:
    known = read(api)
    if args.fault == "list":
        for item in known.values():
            print(describe(item, time.time()))
    elif args.fault == "clear":
        clear(api, known, args.id)
    else:
        print(inject(api, known, args).id)
    return 0


def read(api: Api) -> dict[str, Fault]:
    """The faults in the cluster by id."""
    try:
        data: Mapping[str, str] = api.get(object_path(CONFIG_MAP)).get("data") or {}
    except ApiError as error:
        if error.status == 404:
            return {}
        raise
    try:
        return {name: fault.from_json(name, text) for name, text in data.items()}
    except ValueError as error:
        raise TestbedError(f"{error} Remove the key.") from error


def inject(api: Api, known: Mapping[str, Fault], args: argparse.Namespace) -> Fault:
    """Add the fault that the words on the command line describe; those that ended by themselves are dropped."""
    now = time.time()
    since = now + args.after
    try:
        new = Fault(
            id=unused(args.fault, known),
            kind=args.fault,
            vmi=args.vmi,
            selector=args.selector,
            node=args.node,
            phase=args.phase,
            probability=args.probability,
            since=since,
            until=since + args.span if args.span is not None else None,
            duration=args.duration,
            factor=args.factor,
        )
    except ValueError as error:
        raise TestbedError(str(error)) from error
    over = {name: None for name, item in known.items() if item.until is not None and item.until + LATEST < now}
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": fault.NAMESPACE}})
    api.apply(CONFIG_MAP)
    api.patch(object_path(CONFIG_MAP), {"data": {**over, new.id: new.to_json()}})
    return new


def unused(kind: str, known: Mapping[str, Fault]) -> str:
    """Ids are counted up, so that the same commands give the same ids, and with them the same chances."""
    number = 1
    while f"{kind}-{number}" in known:
        number += 1
    return f"{kind}-{number}"


def clear(api: Api, known: Mapping[str, Fault], name: str) -> None:
    if name and name not in known:
        raise TestbedError(f"There is no fault {name}; `inject list` shows those that are.")
    if known:
        api.patch(object_path(CONFIG_MAP), {"data": {key: None for key in known if name in {"", key}}})


def describe(item: Fault, now: float) -> str:
    default = {field.name: field.default for field in dataclasses.fields(Fault)}
    shown = {
        name: getattr(item, name) for name in ("vmi", "selector", "node", "phase", "probability", "duration", "factor")
    }
    details = [f"{name}={value}" for name, value in shown.items() if value and value != default[name]]
    if item.since > now:
        details.append(f"in {item.since - now:.0f} s")
    if item.until is not None:
        details.append("over" if item.until <= now else f"for another {item.until - max(now, item.since):.0f} s")
    return f"{item.id:<24}{' '.join(details)}"
