# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An `ansible-playbook` that maintains the nodes, as a person starts it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import yaml

from faults.scene import Scene

# A VM that cannot be migrated may be stopped, and no other.
_POLICIES = [{"expression": "status.conditions[?type=='LiveMigratable'].status | [0] != 'True'", "policy": "stop"}]
_UNDOING = 120.0
# What a process that outlives the run holds open is not waited for any longer.
_LAST_WORDS = 15.0


class Going(subprocess.Popen[bytes]):
    """One that has begun, with a process group of its own.

    A limit on the size of files is the run's, and not its log's: that is written here.
    """

    def __init__(self, argv: list[str], environment: dict[str, str], log: Path) -> None:
        super().__init__(
            argv,
            bufsize=0,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._copying = threading.Thread(target=self._copy, args=(log,), daemon=True)
        self._copying.start()

    def end(self) -> int:
        """By force, if it has not ended yet. Its log is complete then; the exit code."""
        if self.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
        code = self.wait()
        self._copying.join(_LAST_WORDS)
        return code

    def _copy(self, log: Path) -> None:
        if self.stdout is not None:
            # As it comes, for who follows the run.
            with self.stdout, log.open("wb", buffering=0) as output:
                shutil.copyfileobj(self.stdout, output)


def begin(scene: Scene, run: str, log: Path) -> Going:
    """Start a run. Only the scene's own one writes the journal, and has tasks besides."""
    hook, journal = scene.folder / f"{run}-hook.yml", scene.journal if run == scene.run else scene.folder / run
    script = Path(__file__).with_name("hook.py")
    argv = [sys.executable, str(script), str(scene.testbed.kubeconfig), "{{ inventory_hostname }}", str(journal)]
    tasks = scene.tasks if run == scene.run else []
    hook.write_text(yaml.safe_dump([{"ansible.builtin.command": {"argv": argv}, "delegate_to": "localhost"}, *tasks]))
    given = {
        "rolling_maintenance_kubeconfig": str(scene.kubeconfig),
        "rolling_maintenance_tasks": str(hook),
        "rolling_maintenance_rebalance": False,
        "plan_maintenance_nodes": list(scene.nodes),
        "plan_maintenance_batch": scene.batch,
        "plan_maintenance_run": run,
        "plan_maintenance_policies": _POLICIES,
        "plan_maintenance_delete_emptydir_data": True,
        "plan_maintenance_force": True,
        "uncordon_wait_sleep": 1,
        **scene.variables,
    }
    return _start(scene, "rolling_maintenance", given, log)


def give_up(scene: Scene, run: str) -> int:
    """Undo what a run has left; the exit code."""
    given = {"abort_run": run, "abort_kubeconfig": str(scene.testbed.kubeconfig), "abort_force": True}
    going = _start(scene, "abort", given, scene.folder / f"{run}-abort.log")
    with contextlib.suppress(subprocess.TimeoutExpired):
        going.wait(_UNDOING)
    return going.end()


def _start(scene: Scene, name: str, given: dict[str, Any], log: Path) -> Going:
    playbook = scene.folder / f"{name}.yml"
    playbook.write_text(f"- import_playbook: virtops.kubevirt.{name}\n")
    program = Path(sys.executable).with_name("ansible-playbook")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_"))}
    environment |= {
        "ANSIBLE_HOME": str(scene.folder / "home"),
        "ANSIBLE_COLLECTIONS_PATH": os.environ["PYTHONPATH"].split(os.pathsep)[0],
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
    }
    variables = {**given, "ansible_python_interpreter": sys.executable}
    return Going([str(program), "-e", json.dumps(variables), str(playbook)], environment, log)
