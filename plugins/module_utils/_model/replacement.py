# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that come in place of those that were evicted, counted by the controller that makes them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    SUCCEEDED,
    Object,
    controller,
    has_ended,
)

# Of a generated name, the letters that are made up, and how many can stand before them.
_RANDOM, _LONGEST_START = 5, 58
# A kind of controller whose pods come again by the names that they had.
_KEEPS_NAMES = "StatefulSet"


@dataclass
class Replacement:
    """Everything in it is JSON. controller: its uid. ready: how many of its pods are to be ready again.

    known: uids of the pods it had at first. pods: those that it has beside them now, `namespace/name` by their order.
    idle: uids of known ones that have not been ready yet. over: uids of pods that had done their work at first, as
    those of a Job do; who does it later counts like one that is ready. is_late: whether some are to come instead of
    pods that had gone before.
    """

    controller: str
    kind: str
    title: str
    ready: int
    known: list[str]
    pods: list[dict[str, str]] = field(default_factory=list)
    done: bool = False
    idle: list[str] = field(default_factory=list)
    over: list[str] = field(default_factory=list)
    is_late: bool = False

    @classmethod
    def of(
        cls, pod: Object, pods: Iterable[Object], gone: Collection[str] = (), former: Collection[str] = ()
    ) -> Replacement | None:
        """Of a pod, among all pods of its namespace; None if nothing makes it anew.

        One that is going already was ready for all anybody knows, and what comes instead may be there, or not yet.
        gone: names of others that had gone when they were to be looked at. former: uids of pods that come instead of
        none, as they were there before any was evicted.
        """
        owner = controller(pod)
        if owner is None:
            return None
        return cls._awaited(pod, _made_by(owner["uid"], pods), gone, former)

    @classmethod
    def of_gone(
        cls,
        name: str,
        gone: Collection[str],
        pods: Iterable[Object],
        former: Collection[str] = (),
        *,
        ready: bool = False,
    ) -> Replacement | None:
        """Of a pod that is one of the `gone` ones. gone, pods, former: as in `of`.

        None if as many have come and are ready, unless those are wanted as well, or nobody can tell them.
        """
        pods = list(pods)
        alike = next((pod for pod in pods if _is_alike(pod, name)), None)
        owner = None if alike is None else controller(alike)
        if alike is None or owner is None:
            return None
        own = _made_by(owner["uid"], pods)
        found = cls._awaited(alike, own, gone, former)
        return found if ready or not found._is_whole(own) else None

    @classmethod
    def _awaited(cls, pod: Object, own: Sequence[Object], gone: Iterable[str], former: Collection[str]) -> Replacement:
        """By the controller of a pod. own: its pods.

        The youngest ones are taken for what came instead, but those of the same names where these are kept.
        """
        owner, leaves = controller(pod) or {}, is_going(pod)
        going = sum(is_going(entry) and (leaves or entry["metadata"]["uid"] in former) for entry in own)
        names = {name for name in gone if any(_is_alike(entry, name) for entry in own)}
        if owner["kind"] == _KEEPS_NAMES:
            came = [entry for entry in own if entry["metadata"]["name"] in names]
        else:
            came = _youngest(own, len(names) + going, former)
        late = len(names) + going - sum(is_ready(entry) or _is_over(entry) for entry in came)
        new = {entry["metadata"]["uid"] for entry in came}
        known = {uid: entry for entry in own if (uid := entry["metadata"]["uid"]) not in new}
        idle = [uid for uid, entry in known.items() if not is_ready(entry)]
        over = [entry["metadata"]["uid"] for entry in own if _is_over(entry)]
        title = f"{pod['metadata']['namespace']}/{owner['name']}"
        ready = sum(map(is_ready, own)) + late
        return cls(owner["uid"], owner["kind"], title, ready, list(known), idle=idle, over=over, is_late=late > 0)

    def count_again(self, pods: Iterable[Object], *, untouched: bool) -> None:
        """Before one of its pods is evicted: others that have come to be ready are to be ready afterwards as well.

        So are those that were not there at first, if there are more than come instead of pods. Who has done its work
        by then has another one in its place, if one is to come. untouched: whether none of its pods has been evicted,
        so that it has been told to have fewer where fewer are there, ready or not for the moment.
        """
        own = _made_by(self.controller, pods)
        over = [uid for pod in own if _is_over(pod) and (uid := pod["metadata"]["uid"]) not in self.over]
        self.ready -= len(over)
        self.over += over
        ready = {pod["metadata"]["uid"] for pod in own if is_ready(pod)}
        self.ready += len(ready.intersection(self.idle))
        if untouched and not self.is_late:
            self.ready = min(self.ready, sum(1 for pod in own if not (is_going(pod) or has_ended(pod))))
        self.ready = max(self.ready, len(ready))
        self.idle = [uid for uid in self.idle if uid not in ready]

    def take_over(self, other: Replacement) -> None:
        """What another one of the same controller knows of pods that had gone before."""
        if other.is_late:
            self.is_late = True
            self.ready = max(self.ready, other.ready)
            # Who is ready by now is counted there.
            self.idle = [uid for uid in self.idle if uid in other.idle]

    def look(self, pods: Iterable[Object]) -> None:
        """Compare with the pods that there are now."""
        own = _made_by(self.controller, pods)
        new = sorted((pod for pod in own if pod["metadata"]["uid"] not in self.known), key=_age)
        self.pods = [
            {"name": str(pod["metadata"]["name"]), "node": str(pod["spec"].get("nodeName") or "")} for pod in new
        ]
        self.done = self._is_whole(own)

    def _is_whole(self, own: Iterable[Object]) -> bool:
        served = (pod for pod in own if _is_over(pod) and pod["metadata"]["uid"] not in self.over)
        return sum(map(is_ready, own)) + sum(1 for _pod in served) >= self.ready

    def status(self) -> str:
        waiting = [pod["name"] for pod in self.pods if not pod["node"]]
        homeless = f", {', '.join(waiting)} has no node" if waiting else ""
        return f"{self.kind} {self.title} has not as many pods ready again as before{homeless}"


def is_ready(pod: Object) -> bool:
    """Whether it serves, and is not about to end."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    ready = any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)
    return ready and not is_going(pod)


def _is_over(pod: Object) -> bool:
    """Whether it is one of a Job that has done its work, so that none comes instead.

    Of others it is one whose containers have ended well when they were told to.
    """
    succeeded = (pod.get("status") or {}).get("phase") == SUCCEEDED
    return succeeded and not is_going(pod) and (controller(pod) or {}).get("kind") == "Job"


def is_going(pod: Object) -> bool:
    """Whether it is about to end, though it may go on until its grace period is over."""
    return bool(pod["metadata"].get("deletionTimestamp"))


def _made_by(owner: str, pods: Iterable[Object]) -> list[Object]:
    return [pod for pod in pods if (controller(pod) or {}).get("uid") == owner]


def _youngest(pods: Iterable[Object], number: int, former: Collection[str]) -> list[Object]:
    """Of those that are to stay, without the former ones.

    Who has done its work may have done so long ago, unless it has come after former ones that are still there.
    """
    pods = list(pods)
    since = max((_age(pod)[0] for pod in pods if pod["metadata"]["uid"] in former), default="")
    others = (pod for pod in pods if pod["metadata"]["uid"] not in former)
    staying = [
        pod for pod in others if (_age(pod)[0] > since if _is_over(pod) else not (is_going(pod) or has_ended(pod)))
    ]
    return sorted(staying, key=_age)[max(0, len(staying) - number) :]


def _is_alike(pod: Object, name: str) -> bool:
    """Whether a pod has that name, or one that was made of the same.

    Follows SimpleNameGenerator in k8s.io/apiserver/pkg/storage/names/generate.go, and getPodName in
    pkg/controller/statefulset/stateful_set_utils.go.
    """
    owner = controller(pod) or {}
    if owner.get("kind") == _KEEPS_NAMES:
        kept, _dash, ordinal = name.rpartition("-")
        return kept == owner["name"] and ordinal.isdecimal()
    start = str(pod["metadata"].get("generateName") or "")[:_LONGEST_START]
    return name == pod["metadata"]["name"] or bool(start and name[:-_RANDOM] == start)


def _age(pod: Object) -> tuple[str, str]:
    return str(pod["metadata"].get("creationTimestamp") or ""), str(pod["metadata"]["name"])
