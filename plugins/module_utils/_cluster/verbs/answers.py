# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all commands are carried out with, and how what is seen or refused becomes the answer to one of them."""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import UNFORETOLD, Answer, Command
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, has_ended

# Of a webhook with side effects (k8s.io/apiserver, pkg/admission/plugin/webhook/errors/statuserror.go).
_NO_DRY_RUN = "does not support dry run"


@dataclass(frozen=True, slots=True)
class VerbSettings:
    """run: label of the run on what is created. owner: who is named on what is stopped.

    grace_period: of evicted pods in seconds, None for their own. unschedulable_timeout: of migrations, in seconds. What
    no command of a plan needs may be left out.
    """

    run: str = ""
    owner: str = ""
    grace_period: int | None = None
    unschedulable_timeout: int = 0
    dry_run: bool = False


def elsewhere(vmi: JsonObject | None, uid: str, source: str) -> str:
    """Why a VM is not the one that was seen, or not where it was seen; empty if it is: watches lag behind."""
    if vmi is None or has_ended(vmi) or vmi["metadata"]["uid"] != uid:
        return "it has just ended"
    node = (vmi.get("status") or {}).get("nodeName") or ""
    return "" if node == source else f"it has just moved to {node}"


def answer_of(command: Command, error: Failure) -> Answer:
    """The server's no to one command. Raises the failure again where it concerns all commands."""
    if error.status is None or error.concerns_all:
        raise error
    # A budget's own words say all; of a server that is busy, or of a proxy before it, the status is news.
    tells = error.considered or error.unadmitted
    own = error.message.partition(", ")[2] if error.passing and tells else ""
    words = f"{UNFORETOLD}, as {error.message}" if _NO_DRY_RUN in error.message else own or error.message
    return Answer(command, words, error.passing, lost=error.maybe_done)
