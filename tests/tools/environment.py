# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a stack's virtual environment and collection tree, once for each state of its lock files."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.home import cache
from tools import interpreters
from tools.interpreters import Interpreter
from tools.stacks import COLLECTION, REPOSITORY, Stack, ToolsError

KUBERNETES_CORE = "ansible_collections/kubernetes/core/"


class MissingPythonError(ToolsError):
    """The machine has no Python of the versions a stack runs on."""


def interpreter(stack: Stack) -> Interpreter:
    found = interpreters.find(stack.pythons)
    if found is None:
        wanted = " or ".join(stack.pythons)
        raise MissingPythonError(f"no Python {wanted} with venv and ensurepip was found; install one")
    return found


def venv(name: str, python: Interpreter, lock: Path) -> Path:
    """The virtual environment `name` with exactly the packages of `lock`; made where it does not exist yet."""
    with _made_once(f"venv/{name}", python, lock) as (folder, missing):
        if missing:
            _say(f"Making the environment {folder} (a minute or two, once for each state of {lock.name})")
            _run(python.path, "-m", "venv", folder)
            # Nothing is compiled on the user's machine; reuse alone is published as source only, and is plain Python.
            binary = ("--only-binary=:all:", "--no-binary=reuse")
            pinned = ("--progress-bar=off", "--require-hashes", "--no-deps", "-r", lock)
            _run(folder / "bin/python", "-m", "pip", "install", *binary, *pinned)
    return folder


def wheels(stack: Stack, python: Interpreter) -> Path:
    """Folder with `pip-<version>-….whl` and the unpacked kubernetes.core; no Galaxy server is asked."""
    with _made_once(f"wheels/{stack.name}", python, stack.wheels) as (folder, missing):
        if missing:
            _say(f"Fetching kubernetes.core from the ansible package into {folder} (once)")
            folder.mkdir(parents=True)
            pinned = ("--progress-bar=off", "--require-hashes", "--no-deps", "-r", stack.wheels)
            _run(python.path, "-m", "pip", "download", *pinned, "-d", folder)
            (bundle,) = folder.glob("ansible-*.whl")
            with zipfile.ZipFile(bundle) as archive:
                archive.extractall(folder, [name for name in archive.namelist() if name.startswith(KUBERNETES_CORE)])
            bundle.unlink()
    return folder


def tree(stack: Stack, wheels_folder: Path) -> Path:
    """`stack.tree`, where Ansible and Python find this repository and kubernetes.core under their full names."""
    for name, target in ((COLLECTION, REPOSITORY), (Path(KUBERNETES_CORE), wheels_folder / KUBERNETES_CORE)):
        link = stack.tree / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink() or link.readlink() != target:
            link.unlink(missing_ok=True)
            link.symlink_to(target)
    return stack.tree


@contextmanager
def _made_once(name: str, python: Interpreter, lock: Path) -> Iterator[tuple[Path, bool]]:
    """Yield a cache folder keyed by what it is made from, and whether the caller has to fill it.

    Several runs may ask at once: one fills, the others wait. A folder that was left half made is made anew.
    """
    key = hashlib.sha256(str(python.path).encode() + lock.read_bytes()).hexdigest()[:12]
    folder = cache() / f"{name}-{key}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    done = folder.with_name(f"{folder.name}.done")
    with folder.with_name(f"{folder.name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        missing = not done.exists()
        if missing:
            shutil.rmtree(folder, ignore_errors=True)
        yield folder, missing
        done.touch()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _run(*command: str | Path) -> None:
    """Run a step of the setup; what it says goes to stderr, as stdout may be read by a program."""
    code = subprocess.run(command, stdout=sys.stderr, check=False).returncode
    if code:
        words = " ".join(str(word) for word in command)
        raise ToolsError(f"The setup step failed with exit code {code}: {words}")
