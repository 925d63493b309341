# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What users download holds all that runs, its documentation and its licence, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]

SHIPPED = {
    "CHANGELOG.md",
    "CHANGELOG.rst",
    "COPYING",
    "FILES.json",
    "LICENSES",
    "MANIFEST.json",
    "README.md",
    "changelogs",
    "docs",
    "meta",
    "playbooks",
    "plugins",
    "roles",
}
NEEDED = {"COPYING", "README.md", "MANIFEST.json", "meta/runtime.yml", "meta/execution-environment.yml"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tarball of the collection."""
    target = tmp_path_factory.mktemp("build")
    build = [
        sys.executable,
        "-m",
        "ansible",
        "galaxy",
        "collection",
        "build",
        "--output-path",
        str(target),
        str(REPOSITORY),
    ]
    subprocess.run(build, check=True, capture_output=True)
    (tarball,) = target.glob("virtops-kubevirt-*.tar.gz")
    return tarball


@pytest.fixture(scope="module")
def names(built: Path) -> set[str]:
    """Paths of the files in the built collection."""
    with tarfile.open(built) as archive:
        return {member.name for member in archive if member.isfile()}


def test_nothing_but_what_users_need(names: set[str]) -> None:
    assert {name.split("/")[0] for name in names} <= SHIPPED


def test_nothing_generated_or_for_developers(names: set[str]) -> None:
    assert [name for name in names if "__pycache__" in name or "/fragments/" in name or name.endswith(".pyc")] == []


def test_all_that_runs_is_there(names: set[str]) -> None:
    listing = ["git", "ls-files", "--", "plugins", "roles", "playbooks", "meta"]
    committed = subprocess.run(listing, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout.split()
    assert (NEEDED | set(committed)) - names == set()


def test_it_installs_and_tells_of_itself(built: Path, tmp_path: Path) -> None:
    """Without what it depends on, which comes from elsewhere."""
    ansible, home = [sys.executable, "-m", "ansible"], {"ANSIBLE_HOME": str(tmp_path / "home")}
    place = tmp_path / "collections"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")} | home
    install = [
        *ansible,
        "galaxy",
        "collection",
        "install",
        "--force",
        "--no-deps",
        "--offline",
        "-p",
        str(place),
        str(built),
    ]
    subprocess.run(install, check=True, capture_output=True, env=environment)
    installed = place / "ansible_collections/virtops/kubevirt"
    assert (installed / "meta/ee-requirements.txt").is_file()
    about = [*ansible, "doc", "-t", "role", "virtops.kubevirt.plan_maintenance"]
    told = subprocess.run(
        about,
        check=True,
        capture_output=True,
        text=True,
        env={**environment, "ANSIBLE_COLLECTIONS_PATH": str(place)},
    )
    assert "plan_maintenance_nodes" in told.stdout
