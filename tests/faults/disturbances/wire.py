# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands between the run and the API server, and what lets the run pass there."""

from __future__ import annotations

import time

from faults.disturbances.contract import later
from faults.invocation import Going
from faults.scene import Scene


def server_troubled(scene: Scene, _going: Going) -> str:
    """What stands before the API server delays, refuses and loses answers."""
    seconds, share = scene.random.uniform(5, 25), scene.random.choice((0.1, 0.3))
    scene.proxy.trouble = share
    time.sleep(seconds)
    scene.proxy.trouble = 0.0
    done = ", ".join(f"{count} {how}" for how, count in sorted(scene.proxy.done.items()))
    return f"{share:.0%} of the requests in trouble for {seconds:.0f} s: {done or 'none'}"


def answers_lost(scene: Scene, _going: Going) -> str:
    """From now on, to the run's end: some answers to writes get lost, and some requests meet a busy server."""
    scene.proxy.lost, scene.proxy.busy = 0.15, 0.05
    return "15 % of the answers to writes are lost and 5 % of all requests refused, from now on"


def watches_dropped(scene: Scene, _going: Going) -> str:
    scene.proxy.dropped += 1
    return "all watches dropped"


def token_rotated(scene: Scene, _going: Going) -> str:
    """The kubeconfig gets a new token at once, and the old one is refused a little later."""
    seconds = scene.random.uniform(0, 10)
    scene.rotate_token()
    later(seconds, lambda: scene.proxy.accept(scene.proxy.issued))
    return f"a new token in the kubeconfig, the old one refused after {seconds:.0f} s"


def token_expired(scene: Scene, _going: Going) -> str:
    """The token is refused, until somebody writes a new one into the kubeconfig."""
    seconds = scene.random.uniform(2, 15)
    scene.proxy.accept("")
    time.sleep(seconds)
    scene.rotate_token()
    scene.proxy.accept(scene.proxy.issued)
    return f"token refused for {seconds:.0f} s"
