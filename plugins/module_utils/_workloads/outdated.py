# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which VMIs of a replica set are not what its template would make today.

A replica set never changes or replaces a VMI because of its template. KubeVirt's webhook fills a new VMI up with
defaults, so a running VMI is compared with a new one after admission, not with the template.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Object = Mapping[str, Any]

# Of the firmware: each VMI gets its own, unless the template gives one to all.
_UNIQUE = ("uuid", "serial")


def is_outdated(vmi: Object, fresh: Object, template: Object) -> bool:
    """Whether a VMI differs from `fresh`, an admitted new one of the template, in anything the template decides on."""
    have, wanted = vmi["metadata"], fresh["metadata"]
    marks = any(
        (have.get(kind) or {}).get(key) != value
        for kind in ("labels", "annotations")
        for key, value in (wanted.get(kind) or {}).items()
    )
    given = _firmware(template.get("spec") or {})
    return marks or _comparable(vmi["spec"], given) != _comparable(fresh["spec"], given)


def _comparable(spec: Object, given: Object) -> dict[str, Any]:
    own = {key: value for key, value in _firmware(spec).items() if key not in _UNIQUE or key in given}
    return {**spec, "domain": {**(spec.get("domain") or {}), "firmware": own}}


def _firmware(spec: Object) -> Object:
    return (spec.get("domain") or {}).get("firmware") or {}
