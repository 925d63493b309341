# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run `ansible-test sanity`, which insists on places of its own."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from testbed.home import cache
from tools.stacks import BUILD, COLLECTION, REPOSITORY
from tools.workspace import Command, Workspace

# ansible-test fetches pip's bootstrap script from a server of its own; this one installs the pinned wheel instead.
PIP_BOOTSTRAP = """\
import sys
sys.path.insert(0, {wheel!r})
from pip._internal.cli.main import main
sys.exit(main(["install", *[word for word in sys.argv[1:] if word not in ("--no-setuptools", "--no-wheel")]]))
"""


def commands(workspace: Workspace, only: Sequence[str] = ()) -> Iterator[Command]:
    """Prepare a copy of the collection and ansible-test's home; yield the commands that check the copy.

    `only`: names of ansible-test's tests; all of them without.
    """
    home = _home(workspace)
    copy = _copy(workspace)
    homes = {"HOME": str(home), "ANSIBLE_HOME": str(home / ".ansible")}
    words = ("sanity", "--local", "--requirements", "--color", "no", "--python", workspace.python.version)
    # Where ansible-test sees no files it skips everything and succeeds; it fails on a named file that it does not see.
    yield workspace.command("ansible-test", *words, "--test", "empty-init", "meta/runtime.yml", cwd=copy, **homes)
    which = [word for name in only for word in ("--test", name)]
    yield workspace.command("ansible-test", *words, *which, cwd=copy, **homes)


def _copy(workspace: Workspace) -> Path:
    """Copy what git would commit: ansible-test takes only a real path that ends in the collection's full name."""
    root = BUILD / f"sanity-{workspace.stack.name}"
    shutil.rmtree(root, ignore_errors=True)
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        source, target = REPOSITORY / name, root / COLLECTION / name
        if source.exists() or source.is_symlink():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    # Without a repository of its own the copy belongs to this one, which ignores all that lies here.
    subprocess.run(["git", "init", "--quiet", root / COLLECTION], check=True)
    shutil.copytree(workspace.wheels / "ansible_collections/kubernetes", root / "ansible_collections/kubernetes")
    return root / COLLECTION


def _home(workspace: Workspace) -> Path:
    """A home directory of ansible-test's own, kept in the cache with the environments it makes there."""
    home = cache() / "ansible-test" / workspace.stack.name
    (wheel,) = workspace.wheels.glob("pip-*.whl")
    bootstrap = home / ".ansible/test/cache" / f"get_pip_{workspace.stack.pip.replace('.', '_')}.py"
    bootstrap.parent.mkdir(parents=True, exist_ok=True)
    bootstrap.write_text(PIP_BOOTSTRAP.format(wheel=str(wheel)), encoding="utf-8")
    return home
