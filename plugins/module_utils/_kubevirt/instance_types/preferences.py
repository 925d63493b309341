# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a preference sets of a VMI, as far as its pod shows it, where the VM leaves it open.

Follows pkg/instancetype/preference/apply.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object

_ATTACHED = ("GraphicsDevice", "PodInterface", "SerialConsole")
# Words for topologies that KubeVirt has used before.
_FORMERLY = {
    "preferCores": "cores",
    "preferSockets": "sockets",
    "preferThreads": "threads",
    "preferSpread": "spread",
    "preferAny": "any",
}
_RATIO = 2


def topology(preference: Object | None) -> str:
    """Into what the CPUs of an instance type go: sockets, cores, threads, any or spread."""
    wanted = ((preference or {}).get("cpu") or {}).get("preferredCPUTopology")
    wanted = "sockets" if wanted is None else wanted
    return _FORMERLY.get(wanted, wanted)


def spread(preference: Object) -> tuple[int, str]:
    """How CPUs are spread: the ratio, and across what."""
    options = (preference.get("cpu") or {}).get("spreadOptions") or {}
    ratio = options.get("ratio") or preference.get("preferSpreadSocketToCoreRatio") or _RATIO
    return int(ratio), str(options.get("across") or "SocketsCores")


def apply_attachments(preference: Object, spec: JsonObject) -> None:
    """What the VM gets by itself, which is decided before it is given a network."""
    wanted, devices = preference.get("devices") or {}, spec["domain"].setdefault("devices", {})
    for name in _ATTACHED:
        if wanted.get(f"preferredAutoattach{name}") is not None:
            _complete(devices, f"autoattach{name}", wanted[f"preferredAutoattach{name}"])


def apply_preference(preference: Object, spec: JsonObject, annotations: dict[str, str]) -> None:
    """After the instance type has been applied."""
    domain = spec["domain"]
    _cpu_features(preference.get("cpu") or {}, domain)
    apply_attachments(preference, spec)
    _devices(preference.get("devices") or {}, domain["devices"])
    _hyperv(preference.get("features") or {}, domain)
    _firmware(preference.get("firmware") or {}, domain)
    if machine := (preference.get("machine") or {}).get("preferredMachineType"):
        domain["machine"] = {**(domain.get("machine") or {})}
        domain["machine"]["type"] = domain["machine"].get("type") or machine
    _complete(spec, "terminationGracePeriodSeconds", preference.get("preferredTerminationGracePeriodSeconds"))
    _complete(spec, "architecture", preference.get("preferredArchitecture"))
    for key, value in (preference.get("annotations") or {}).items():
        annotations.setdefault(key, value)


def _complete(part: JsonObject, name: str, value: Any) -> None:
    """Set what is not there yet, or empty text."""
    if value is not None and part.get(name) in (None, ""):
        part[name] = deepcopy(value)


def _cpu_features(wanted: Object, domain: JsonObject) -> None:
    features = wanted.get("preferredCPUFeatures") or ()
    if features:
        cpu = domain.get("cpu") or {}
        own = cpu.get("features") or []
        known = {feature["name"] for feature in own}
        added = [dict(feature) for feature in features if feature["name"] not in known]
        domain["cpu"] = {**cpu, "features": [*own, *added]}


def _devices(wanted: Object, devices: JsonObject) -> None:
    _complete(devices, "tpm", wanted.get("preferredTPM"))
    if model := wanted.get("preferredInterfaceModel"):
        for interface in devices.get("interfaces") or ():
            interface["model"] = interface.get("model") or model


def _hyperv(wanted: Object, domain: JsonObject) -> None:
    preferred = wanted.get("preferredHyperv")
    if preferred is not None:
        features = domain.get("features") or {}
        own = {name: state for name, state in (features.get("hyperv") or {}).items() if state is not None}
        domain["features"] = {**features, "hyperv": {**deepcopy(preferred), **own}}


def _firmware(wanted: Object, domain: JsonObject) -> None:
    """By BIOS, or by EFI with all that is preferred of it. A VM that says which of them takes nothing from here."""
    own = (domain.get("firmware") or {}).get("bootloader") or {}
    if own.get("bios") is not None or own.get("efi") is not None:
        return
    if wanted.get("preferredUseBios"):
        loader: JsonObject = {"bios": {}}
    elif wanted.get("preferredEfi") is not None:
        loader = {"efi": deepcopy(wanted["preferredEfi"])}
    elif wanted.get("preferredUseEfi"):
        loader = {"efi": {}}
    else:
        return
    domain["firmware"] = {**(domain.get("firmware") or {}), "bootloader": loader}
