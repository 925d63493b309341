# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who made an object, and makes another one when it is gone."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object


def controller(item: Object) -> Object | None:
    """The owner reference of its controller, of which there is one at most."""
    owners = item["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)
