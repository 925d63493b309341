# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documents of plans, held against the schema that the collection has for them."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import from_json
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan

SCHEMA = json.loads((Path(__file__).parents[4] / "docs/schemas/maintenance-plan.json").read_text())


def plan_in(document: object) -> Plan:
    """The plan of a document, which keeps to the schema."""
    jsonschema.validate(document, SCHEMA)
    return from_json(document)
