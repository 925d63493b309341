# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMIs that do not run, and what is asked of the pods they would get."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


def machine(domain: Object | None = None, devices: Object | None = None, **spec: Any) -> Object:
    """A VMI that virt-api has taken, with no more than what is given; its guest has 1 GiB unless `domain` says else."""
    whole = {"memory": {"guest": "1Gi"}, **(domain or {}), "devices": devices or {}}
    return {
        "metadata": {"namespace": "shop", "name": "db", "uid": "u1"},
        "spec": {"architecture": "amd64", "domain": whole, **spec},
        "status": {"phase": "Pending"},
    }


def annotated(item: Object, **annotations: str) -> Object:
    """Annotations by their last parts; the tests know which are meant."""
    names = {"hooks": "hooks.kubevirt.io/hookSidecars", "mesh": "sidecar.istio.io/inject"}
    found = {names[name]: value for name, value in annotations.items()}
    return {**item, "metadata": {**item["metadata"], "annotations": found}}


def listed(name: str, namespace: str = "shop", **more: Any) -> Object:
    """An object of a list."""
    return {"metadata": {"namespace": namespace, "name": name}, **more}
