# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resources of the containers that stand beside the guest's: of console, disks, file systems and hooks.

Follows pkg/virt-controller/services/serialconsolelog.go and renderresources.go, pkg/container-disk/container-disk.go
and pkg/virtiofs/resources.go. Each kind has amounts of its own, which KubeVirt's configuration may replace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import (
    Configuration,
    SupportContainer,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import CPU, EPHEMERAL_STORAGE, MEMORY

# `limits` and `requests` by name, as the API has them.
Resources = dict[str, dict[str, Any]]

_NONE = SupportContainer()


def console_log(configuration: Configuration, exact: bool) -> Resources:
    """`exact` here and below: the pod's requests are to equal its limits."""
    return _sized(configuration, "guest-console-log", exact, _both("5m", "35M"), _both("15m", "60M"))


def container_disk(configuration: Configuration, exact: bool) -> Resources:
    found = _sized(configuration, "container-disk", exact, _both("1m", "1M"), _both("10m", "40M"))
    found["requests"][EPHEMERAL_STORAGE] = "50M"
    return found


def container_disk_binary(configuration: Configuration, exact: bool) -> Resources:
    limits = _both("10m" if exact else "100m", "40M")
    return _sized(configuration, "container-disk", exact, _both("10m", "1M"), limits)


def file_system(configuration: Configuration, exact: bool) -> Resources:
    return _sized(configuration, "virtiofs", exact, _both("10m", "1M"), _both("100m", "80M"))


def hook(configuration: Configuration, exact: bool) -> Resources:
    """Nothing by default, which a quality of service Guaranteed does not allow."""
    return _sized(configuration, "sidecar", exact, {}, _both("200m", "64M") if exact else {})


def _both(cpu: str, memory: str) -> dict[str, Any]:
    return {CPU: cpu, MEMORY: memory}


def _sized(
    configuration: Configuration, kind: str, exact: bool, requests: dict[str, Any], limits: dict[str, Any]
) -> Resources:
    given = configuration.support_containers.get(kind, _NONE)
    limits = {**limits, **_stated(given.limits)}
    return {"limits": limits, "requests": dict(limits) if exact else {**requests, **_stated(given.requests)}}


def _stated(amounts: Mapping[str, Any]) -> dict[str, Any]:
    """Nothing but cpu and memory counts, and zero counts as not given."""
    return {name: amount for name, amount in amounts.items() if name in (CPU, MEMORY) and quantity.parse(amount)}
