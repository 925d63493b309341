# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All rules. A new one is a function from a `Tree` to sentences, named here."""

from __future__ import annotations

from unit.architecture import (
    api_paths,
    arrows,
    circles,
    crumbs,
    files,
    libraries,
    maps,
    modules,
    names,
    purity,
    registries,
    roles,
    scenarios,
)
from unit.architecture.tree import Rule

RULES: dict[str, Rule] = {
    "arrows": arrows.check,
    "circles": circles.check,
    "crumbs": crumbs.check,
    "maps": maps.check,
    "named": maps.named,
    "names": names.check,
    "purity": purity.check,
    "size": files.size,
    "header": files.header,
    "machine_paths": files.machine_paths,
    "registries": registries.check,
    "modules": modules.check,
    "roles": roles.check,
    "scenarios": scenarios.check,
    "libraries": libraries.check,
    "api_paths": api_paths.check,
}
