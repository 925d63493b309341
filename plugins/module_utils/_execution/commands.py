# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is to be done now, as values, and what came of it.

Whoever carries a command out asks first whether it is done already: a command may come again after a lost answer, a
crash or from a second process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Migrate:
    """Create the migration of this name. `target`: empty where only labels are asked for; `selector` pins its pod.

    binding: as in Execution.
    """

    action: str
    namespace: str
    vmi: str
    uid: str
    name: str
    source: str
    target: str
    selector: Mapping[str, str]
    binding: bool = False


@dataclass(frozen=True, slots=True)
class Evict:
    """Ask for the eviction of this very pod."""

    action: str
    namespace: str
    pod: str
    uid: str


@dataclass(frozen=True, slots=True)
class Interrupt:
    """End this very VMI so that its owner starts it again elsewhere, or (`stop`) leaves it off until it is started.

    Who was not told to end yet is spared, and its mark taken off: if_refused: unless KubeVirt says that it cannot be
    migrated. begins: if not, anyway, as another plan has come or the drain has given up.
    """

    action: str
    namespace: str
    vmi: str
    uid: str
    owner_kind: str
    owner: str
    owner_uid: str
    node: str
    stop: bool
    if_refused: bool = False
    begins: bool = True


@dataclass(frozen=True, slots=True)
class Start:
    """Let this VM run as it did before it was stopped for the node, unless somebody else has stopped it since."""

    action: str
    namespace: str
    vm: str
    uid: str
    node: str


@dataclass(frozen=True, slots=True)
class TakeMarkOff:
    """Forget that this VM or replica set, of this kind, was stopped for the node: it runs again, or is gone."""

    action: str
    kind: str
    namespace: str
    name: str
    uid: str
    node: str


Command: TypeAlias = "Migrate | Evict | Interrupt | Start | TakeMarkOff"


# How a refusal begins of what was only put to the server, and says nothing of what comes of it when it is done.
UNFORETOLD = "it cannot be foretold"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a command. `refused`: the server's words, empty if it was carried out.

    passing: it may be carried out a little later, as when a disruption budget forbids an eviction for now. lost: no
    answer came, or none that tells whether it was carried out; without words of the server, a look tells.
    needless: nothing was done, as others have seen to it, or what it is about is not there any more. spared: it is
    there, and was not told to end, which nobody wants by now. unasked: nobody was asked, as another command had no
    answer, or nothing may be done any more.
    """

    command: Command
    refused: str = ""
    passing: bool = False
    lost: bool = False
    needless: bool = False
    spared: bool = False
    unasked: bool = False
