# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was seen in the cluster meanwhile, and what of it must never be."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from types import TracebackType
from typing import Self

from faults.migrations import Migrations
from faults.rules import broken
from faults.scene import ENDED, NODES, Scene, title
from integration.clusters import KUBEVIRT, MIGRATIONS, VMIS
from testbed.api import Api, Object, resource_path

_PAUSE = 0.3
# The lists are not of one moment: what is wrong must be seen so many times in a row.
_TIMES = 4
# So long after its migration a VM's pod may stand at the source: it ends by itself.
_ENDING = 15.0


class History:
    """Looks at the cluster within a `with` statement. `wrong`: what must never be, a sentence each.

    lost: titles and uids of VMIs that were there and are no more. migrations: all that were seen.
    """

    def __init__(self, scene: Scene) -> None:
        self.wrong: set[str] = set()
        self.lost: set[tuple[str, str]] = set()
        self.trouble: list[str] = []
        self.migrations = Migrations(scene.run)
        self._scene = scene
        self._known: set[tuple[str, str]] = set(scene.before.items())
        self._moved: dict[str, float] = {}
        # Rules that were broken before anything happened.
        self._allowed: set[str] | None = None
        self._seen: Counter[str] = Counter()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        with Api(self._scene.testbed.kubeconfig) as api:
            last = False
            while not last:
                # One more look after the end was called sees what came before it.
                last = self._over.is_set()
                try:
                    self._look(api)
                except Exception as error:  # noqa: BLE001  # the API server is away, as a disturbance has it
                    self.trouble.append(repr(error))
                time.sleep(_PAUSE)

    def _look(self, api: Api) -> None:
        vmis = api.items(resource_path(KUBEVIRT, VMIS))
        migrations = api.items(resource_path(KUBEVIRT, MIGRATIONS))
        pods = api.items("/api/v1/pods", labelSelector="kubevirt.io=virt-launcher")
        self.migrations.see(vmis, migrations)
        now = {(title(vmi), vmi["metadata"]["uid"]) for vmi in vmis if vmi["status"].get("phase") not in ENDED}
        self.lost |= self._known - now
        self._known |= now
        moving: defaultdict[str, int] = defaultdict(int)
        for item in migrations:
            if (item.get("status") or {}).get("phase") not in ENDED:
                moving[f"{item['metadata']['namespace']}/{item['spec']['vmiName']}"] += 1
        found = {f"{name} has {count} migrations at once" for name, count in moving.items() if count > 1}
        self._moved |= dict.fromkeys(moving, time.monotonic())
        recent = {name for name, moment in self._moved.items() if time.monotonic() - moment < _ENDING}
        found |= {f"{name} runs twice" for name in _twice(vmis, pods) - recent}
        going = [pod for pod in pods if pod["status"].get("phase") not in ENDED]
        against = set(broken(going, api.items(NODES)))
        if self._allowed is None:
            self._allowed = against
        self._judge(found | against - self._allowed)

    def _judge(self, found: set[str]) -> None:
        """What was found at this look: only what is seen several times in a row counts."""
        self._seen = Counter({sentence: self._seen[sentence] + 1 for sentence in found})
        self.wrong |= {sentence for sentence, times in self._seen.items() if times >= _TIMES}


def _twice(vmis: list[Object], pods: list[Object]) -> set[str]:
    names = {vmi["metadata"]["uid"]: title(vmi) for vmi in vmis}
    count: defaultdict[str, int] = defaultdict(int)
    for pod in pods:
        ready = any(
            (entry["type"], entry["status"]) == ("Ready", "True") for entry in pod["status"].get("conditions", ())
        )
        if ready and not pod["metadata"].get("deletionTimestamp") and pod["status"].get("phase") == "Running":
            count[pod["metadata"]["labels"].get("kubevirt.io/created-by", "")] += 1
    return {names[uid] for uid, number in count.items() if number > 1 and uid in names}
