# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is made from the table of rights, and what of it is not as it should be."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.roles import ROLES

from generated import guide, manifests

REPOSITORY = Path(__file__).resolve().parents[2]
GUIDE = REPOSITORY / "docs/docsite/rst/rights.rst"
MANIFESTS = REPOSITORY / "roles/access/files"


def texts() -> dict[Path, str]:
    """By path, what each file should hold."""
    found = {MANIFESTS / f"{role}.yml": manifests.text(role) for role in ROLES}
    return {**found, GUIDE: guide.filled_in(GUIDE.read_text())}


def stale() -> dict[Path, str]:
    """Those that hold something else, or are not there."""
    return {path: text for path, text in texts().items() if not path.exists() or path.read_text() != text}
