# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names and addresses under which nodes say that they are reached, and which of them are to be believed.

A node's kubelet writes them, so who has taken one over writes what they like. They end up on the command line of ssh:
what could be an option there is no address, and neither is what leads back to the controller.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import brief

_Ip: TypeAlias = "ipaddress.IPv4Address | ipaddress.IPv6Address"

# Of the API. Those in _NUMBERS are addresses, the others are names.
TYPES: Final = ("InternalIP", "InternalDNS", "Hostname", "ExternalIP", "ExternalDNS")
_NUMBERS = frozenset({"InternalIP", "ExternalIP"})

_NAME = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_THIS_MACHINE = re.compile(r"localhost[46]?(?:\..*)?", re.IGNORECASE)
# An address in one of its unusual forms: 127.1 and 0x7f000001 are this machine.
_NUMBERS_ALONE = re.compile(r"(?:(?:[0-9]+|0[xX][0-9A-Fa-f]*)\.?){1,4}")


def addresses(node: Object) -> dict[str, list[str]]:
    """By their types, as the node has them."""
    found: dict[str, list[str]] = {}
    for entry in (node.get("status") or {}).get("addresses") or ():
        found.setdefault(entry["type"], []).append(entry["address"])
    return found


def usable(node: Object, kinds: Sequence[str]) -> Iterator[str]:
    """What can be connected to, types in this order."""
    found = addresses(node)
    for kind in kinds:
        yield from (text for text in found.get(kind, ()) if _problem(kind, text) is None)


def unusable(node: Object, kinds: Sequence[str]) -> Iterator[str]:
    """A clause for each address that leads to no node."""
    found = addresses(node)
    for kind in kinds:
        for text in found.get(kind, ()):
            if problem := _problem(kind, text):
                yield f"its {kind} {brief(text)!r} {problem}"


def host_problem(text: str) -> str | None:
    """Why a host of the inventory cannot be called so, a clause that follows its name; None if it can."""
    address = _ip(text)
    if address:
        return _ip_problem(address)
    if not _NAME.fullmatch(text):
        return "is no name of a host"
    return "is this machine's name" if _THIS_MACHINE.fullmatch(text) else None


def _problem(kind: str, text: str) -> str | None:
    address = _ip(text)
    if address:
        return _ip_problem(address)
    if kind in _NUMBERS:
        return "is no IP address"
    return host_problem(text) or ("may be taken for an IP address" if _NUMBERS_ALONE.fullmatch(text) else None)


def _ip(text: str) -> _Ip | None:
    try:
        # The name of an interface, which may follow an address, can be any text.
        return None if "%" in text else ipaddress.ip_address(text)
    except ValueError:
        return None


def _ip_problem(address: _Ip) -> str | None:
    inner = getattr(address, "ipv4_mapped", None) or address
    if inner.is_loopback or inner.is_unspecified or inner.is_multicast:
        return "is no address of another machine"
    return None
