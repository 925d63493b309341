# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of the control plane that stand still for a while."""

from __future__ import annotations

import time

from faults.invocation import Going
from faults.scene import Scene
from testbed import processes


def server_frozen(scene: Scene, _going: Going) -> str:
    """The API server answers nobody for a while."""
    return _frozen(scene, "kube-apiserver")


def controller_frozen(scene: Scene, _going: Going) -> str:
    return _frozen(scene, "virt-controller")


def virt_api_frozen(scene: Scene, _going: Going) -> str:
    """Nothing of KubeVirt can be created, changed or evicted for a while."""
    return _frozen(scene, "virt-api")


def scheduler_frozen(scene: Scene, _going: Going) -> str:
    return _frozen(scene, "kube-scheduler")


def _frozen(scene: Scene, part: str) -> str:
    seconds = scene.random.uniform(3, 20)
    process = processes.running(scene.testbed.home)[part]
    process.suspend()
    try:
        time.sleep(seconds)
    finally:
        process.resume()
    return f"{part} frozen for {seconds:.0f} s"
