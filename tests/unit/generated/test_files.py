# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is made from the table of rights is as the table is now."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.right import manifests, role_name
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.roles import ROLES, reasons

from generated import files


def test_nothing_is_stale() -> None:
    assert [path.name for path in files.stale()] == [], "run make generate"


def test_a_manifest_of_no_role_is_left_over() -> None:
    assert {path.stem for path in files.MANIFESTS.iterdir()} == set(ROLES)


@pytest.mark.parametrize("role", ROLES)
def test_a_manifest_grants_what_the_role_needs(role: str) -> None:
    written = yaml.safe_load((files.MANIFESTS / f"{role}.yml").read_text())["items"]
    found = {item["kind"]: item for item in written if item["kind"] != "Namespace"}
    wanted = {item["kind"]: item for item in manifests(role_name(role), reasons(ROLES[role]))}
    assert found == wanted, "an account is given by module access_account what the file says"


def test_a_table_that_is_outdated_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outdated = tmp_path / "rights.rst"
    outdated.write_text(files.GUIDE.read_text().replace("- cancel a migration", "- do something"))
    monkeypatch.setattr(files, "GUIDE", outdated)
    assert list(files.stale()) == [outdated]
