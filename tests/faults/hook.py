# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The maintenance itself: `hook.py KUBECONFIG NODE JOURNAL` notes what it finds on its node, and takes a moment."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

# Beside this folder, which only the line above knows.
from testbed.api import Api
from testbed.waiting import wait_for

SECONDS = 1.5
_PATIENCE = 300.0


def look(api: Api, name: str) -> dict[str, object]:
    node = api.get(f"/api/v1/nodes/{name}")
    pods = api.items("/api/v1/pods", fieldSelector=f"spec.nodeName={name}")
    vms = [pod for pod in pods if pod["metadata"].get("labels", {}).get("kubevirt.io") == "virt-launcher"]
    return {
        "node": name,
        "at": time.time(),
        "cordoned": node["spec"].get("unschedulable", False),
        "mark": node["metadata"].get("annotations", {}).get("virtops.kubevirt/maintenance", ""),
        "vms": [pod["metadata"]["name"] for pod in vms if pod["status"].get("phase") not in ("Succeeded", "Failed")],
    }


def patiently(api: Api, name: str) -> dict[str, object]:
    """The same, as people who maintain a node do: an API server that is away is looked at later."""
    seen: dict[str, object] = {}
    wait_for(f"a look at {name}", lambda: bool(seen.update(look(api, name)) or seen), _PATIENCE)
    return seen


def main(kubeconfig: str, name: str, journal: str) -> None:
    with Api(kubeconfig) as api:
        for _look in range(2):
            seen = patiently(api, name)
            with Path(journal).open("a") as file:
                file.write(json.dumps(seen) + "\n")
            time.sleep(SECONDS / 2)


if __name__ == "__main__":
    main(*sys.argv[1:])
