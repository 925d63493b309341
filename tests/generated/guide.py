# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of the guide to rights: for each need its rights, what each is for, and who has the need."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.right import Need, Right
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.roles import MODULES, ROLES

BEGIN = ".. The rest is made by `make generate`.\n"
ALL = tuple(dict.fromkeys(need for needs in (*ROLES.values(), *MODULES.values()) for need in needs))


def filled_in(text: str) -> str:
    """The guide with its tables as they should be."""
    head, _begin, _tables = text.partition(BEGIN)
    return head + BEGIN + "".join(f"\n{_section(need)}" for need in ALL)


def _section(need: Need) -> str:
    return "\n".join([need.title, "-" * len(need.title), "", *_whose(need), "", *_table(need), ""])


def _whose(need: Need) -> Iterator[str]:
    roles, modules = ([name for name, needs in table.items() if need in needs] for table in (ROLES, MODULES))
    yield f"Roles: {', '.join(roles)}."
    if modules:
        yield ""
        yield f"Modules: {'; '.join(modules)}."


def _table(need: Need) -> Iterator[str]:
    yield from (".. list-table::", "   :header-rows: 1", "   :widths: 12 44 44", "")
    yield from _row("Verb", "Resource", "To …")
    for right, why in need.reasons.items():
        yield from _row(right.verb, f"``{_resource(right)}``{_place(right)}", why)


def _resource(right: Right) -> str:
    return f"{right.resource}.{right.group}" if right.group else right.resource


def _place(right: Right) -> str:
    if right.of_leases:
        return " in the namespace of the Leases"
    return f", of ``{right.name}`` only" if right.name else ""


def _row(*cells: str) -> Iterator[str]:
    first, *others = cells
    yield f"   * - {first}"
    yield from (f"     - {cell}" for cell in others)
