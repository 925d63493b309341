# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make demo`: start a cluster, run an application on it, maintain all its nodes, and see what became of it."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import yaml

from demo import outcomes
from demo.history import History
from demo.outcomes import NAMESPACE, Cluster, Outcome
from demo.picture import draw
from demo.running import FOLDER, NodeTime, Playbook, PlaybookError, reckon
from testbed import cluster
from testbed.api import Api
from testbed.handle import RunningTestbed
from testbed.home import PACKAGE, Home, TestbedError

TIME_SCALE = 60.0
RUN = FOLDER / "run.yml"
EXAMPLES = FOLDER.parents[1] / "examples"
INTRODUCTION = """\
Six nodes in three zones run an application: databases, caches, and black boxes that live beside a cache. All six nodes
are to be rebooted, one after the other, by ansible-playbook, and nobody is to notice.

The control plane is a real one and decides everything: API server, scheduler and controllers of Kubernetes and of
KubeVirt. It runs on this machine alone. Only the kubelets and the hypervisors are simulated.
"""


def main() -> int:
    # Ansible's own lines come between these.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    began = time.monotonic()
    print(INTRODUCTION)
    home = Home(f"demo-{os.getpid()}")
    try:
        with tempfile.TemporaryDirectory(prefix="virtops-demo-") as scratch:
            say("A cluster")
            cluster.up(home, time_scale=TIME_SCALE, seed=0, owner_pid=os.getpid())
            with Api(home.kubeconfig()) as api:
                good = play(RunningTestbed(home, api), Path(scratch))
    except (TestbedError, PlaybookError) as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    finally:
        cluster.down(home)
    print(f"\nAll of it took {time.monotonic() - began:.0f} s.")
    return 0 if good else 1


def play(testbed: RunningTestbed, scratch: Path) -> bool:
    settings = yaml.safe_load(RUN.read_text())
    nodes = settings["plan_maintenance_nodes"]
    playbook = Playbook(testbed, Path(sys.executable).with_name("ansible-playbook"), scratch)
    testbed.run("load", "customapp-nodes")

    say("An application", "ansible-playbook examples/customapp.yml")
    playbook.run(str(EXAMPLES / "customapp.yml"))
    before = show(testbed.api)
    good = judge(outcomes.at_home(before))

    kubeconfig = scratch / "maintenance.kubeconfig"
    say(
        "An account with the rights of maintenance",
        f"ansible-playbook virtops.kubevirt.access -e access_path={kubeconfig.name}",
    )
    playbook.run(
        "virtops.kubevirt.access",
        "--extra-vars",
        json.dumps({"access_path": str(kubeconfig), "access_kubevirt_role": False}),
    )

    say("A new kernel for every node", f"ansible-playbook virtops.kubevirt.rolling_maintenance -e @{RUN.name}")
    command = [str(PACKAGE / "testbed"), "--name", testbed.name]
    hook = {"rolling_maintenance_tasks": str(FOLDER / "reboot.yml"), "testbed_command": command}
    hook["rolling_maintenance_kubeconfig"] = str(kubeconfig)
    with History(testbed.kubeconfig, NAMESPACE) as history:
        playbook.run(
            "virtops.kubevirt.rolling_maintenance", "--extra-vars", f"@{RUN}", "--extra-vars", json.dumps(hook)
        )
    after = show(testbed.api)
    tell_times(reckon(playbook.entries(), nodes))

    say("What has become of it")
    return good & judge(
        [
            *outcomes.at_home(after),
            *outcomes.maintained(after, before, settings["plan_maintenance_run"]),
            *outcomes.drained(playbook.entries()),
            *outcomes.remembered(history),
            *outcomes.came_true(playbook.entries()),
        ]
    )


def say(title: str, command: str = "") -> None:
    print(f"\n━━ {title} " + "━" * (80 - len(title)))
    if command:
        print(f"   $ {command}")


def show(api: Api) -> Cluster:
    """Draw the cluster as it is now."""
    now = Cluster.now(api)
    print("\n" + "\n".join(f"    {line}" for line in draw(now.nodes, now.pods)))
    print("\n    ▣ virtual machine   ○ pod   * high-performance node")
    return now


def judge(found: Iterable[Outcome]) -> bool:
    found = list(found)
    print()
    for outcome in found:
        print(f"    {'✔' if outcome.holds else '✘ NOT TRUE:'} {outcome.sentence}")
    return all(outcome.holds for outcome in found)


def tell_times(times: Iterable[NodeTime]) -> None:
    print(f"\n    {'seconds':<16}{'node':>8}{'reboot':>10}{'VMs, pods':>12}{'Ansible':>10}")
    for entry in times:
        print(f"    {entry.node:<16}{entry.total:8.1f}{entry.hook:10.1f}{entry.moving:12.1f}{entry.overhead:10.1f}")


if __name__ == "__main__":
    sys.exit(main())
