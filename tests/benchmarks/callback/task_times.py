# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each task costs the controller: one JSON line a task in the file VIRTOPS_TASK_TIMES, workers included."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: task_times
type: notification
short_description: Keeps what each task costs
description: Writes the wall time of each task, and the processor time of Ansible and all its processes meanwhile.
"""


# Seconds that a worker which has told its result may take to end.
_MOST = 5.0


class CallbackModule(CallbackBase):  # type: ignore[misc]  # Ansible is published without types
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "task_times"

    def __init__(self) -> None:
        super().__init__()
        self._path = Path(os.environ["VIRTOPS_TASK_TIMES"])
        # Its action, and the state that it asks for, as the task is written.
        self._task = ("", "")
        self._begun = (time.time(), 0.0)

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        self._next((task.action, task.args.get("state", "")))

    def v2_playbook_on_stats(self, stats: Any) -> None:
        self._next(("", ""))

    def _next(self, task: tuple[str, str]) -> None:
        for worker in multiprocessing.active_children():  # what they have used counts when they have been waited for
            worker.join(_MOST)
        now, used = time.time(), sum(os.times()[:4])
        action, state = self._task
        if action:
            entry = {"action": action, "state": state, "wall": now - self._begun[0], "cpu": used - self._begun[1]}
            with self._path.open("a") as file:
                file.write(json.dumps(entry) + "\n")
        self._task, self._begun = task, (now, used)
