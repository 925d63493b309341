# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that run beside the guest and change how it is defined: hooks of the VMI, and network bindings' own.

Follows pkg/hooks/hooks.go and pkg/network/netbinding/netbinding.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher import traits
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object

ANNOTATION = "hooks.kubevirt.io/hookSidecars"


class HookError(ValueError):
    """KubeVirt cannot make a pod, as a hook cannot be understood or is not configured: a clause that says which."""


@dataclass(frozen=True, slots=True)
class Hook:
    """image: empty for KubeVirt's own. claim: name of a PersistentVolumeClaim that it needs, or empty."""

    image: str
    claim: str = ""


def hooks(vmi: Object, configuration: Configuration) -> list[Hook]:
    """In the order of their containers. Raises HookError."""
    return [*_own(vmi), *_bindings(vmi, configuration)]


def _own(vmi: Object) -> Iterator[Hook]:
    text = (vmi["metadata"].get("annotations") or {}).get(ANNOTATION)
    if text is None:
        return
    try:
        for entry in json.loads(text) or ():
            yield Hook(entry.get("image") or "", (entry.get("pvc") or {}).get("name") or "")
    except (ValueError, RecursionError, TypeError, AttributeError) as error:
        raise HookError(f"its annotation {ANNOTATION} is no JSON list of objects ({error})") from error


def _bindings(vmi: Object, configuration: Configuration) -> Iterator[Hook]:
    names = [entry["binding"]["name"] for entry in traits.interfaces(vmi) if traits.has(entry, "binding")]
    for name in dict.fromkeys(names):
        plugin = configuration.network_bindings.get(name)
        if plugin is None:
            raise HookError(f"KubeVirt's configuration has no network binding {name!r}")
        if plugin.get("sidecarImage"):
            yield Hook(plugin["sidecarImage"])
