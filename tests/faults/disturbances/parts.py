# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of the control plane that stand still for a while, or are gone."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from faults.invocation import Going
from faults.scene import Scene
from testbed import cluster, processes

# Seconds: of a server that is updated or loses its machine, and until what has missed it has ended.
_LONG, _LAST_WORDS = 90.0, 15.0


def server_frozen(scene: Scene, _going: Going) -> str:
    """The API server answers nobody for a while."""
    return _frozen(scene, "kube-apiserver")


def server_away(scene: Scene, _going: Going) -> str:
    """The API server answers nobody for so long that others do not outlive it."""
    return stand_still(scene, lambda: time.sleep(_LONG))


def server_ended(scene: Scene, _going: Going) -> str:
    """The API server is not there for a while."""
    processes.stop([processes.running(scene.testbed.home)["kube-apiserver"]])
    time.sleep(_LONG)
    return f"kube-apiserver ended, {', '.join(cluster.revive(scene.testbed.home))} started {_LONG:.0f} s later"


def controller_away(scene: Scene, _going: Going) -> str:
    """Nothing that is asked of KubeVirt is carried out for long."""
    return _frozen(scene, "virt-controller", lambda: time.sleep(_LONG))


def controller_frozen(scene: Scene, _going: Going) -> str:
    return _frozen(scene, "virt-controller")


def virt_api_frozen(scene: Scene, _going: Going) -> str:
    """Nothing of KubeVirt can be created, changed or evicted for a while."""
    return _frozen(scene, "virt-api")


def scheduler_frozen(scene: Scene, _going: Going) -> str:
    return _frozen(scene, "kube-scheduler")


def stand_still(scene: Scene, meanwhile: Callable[[], object]) -> str:
    """The API server answers nobody until `meanwhile` has ended, which is long."""
    return _frozen(scene, "kube-apiserver", meanwhile)


def _frozen(scene: Scene, part: str, meanwhile: Callable[[], object] | None = None) -> str:
    """meanwhile: what lasts long, else a while; what has not outlived that is started again, as by a kubelet."""
    is_long = meanwhile is not None
    meanwhile = meanwhile or partial(time.sleep, scene.random.uniform(3, 20))
    process, begun = processes.running(scene.testbed.home)[part], time.monotonic()
    process.suspend()
    try:
        meanwhile()
    finally:
        process.resume()
    lasted = time.monotonic() - begun
    # What lost its lease meanwhile ends by itself, a moment later.
    revived: list[str] = []
    until = time.monotonic() + (_LAST_WORDS if is_long else 0)
    while time.monotonic() < until:
        revived += cluster.revive(scene.testbed.home)
        time.sleep(1)
    return f"{part} frozen for {lasted:.0f} s" + "".join(f", {name} started again" for name in revived)
