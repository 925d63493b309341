# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the real parts of the testbed once from pinned Go modules, into a cache keyed by what they are built from."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from testbed.gotoolchain import find_go
from testbed.home import PACKAGE, TestbedError, cache
from testbed.locks import locked

SOURCES = PACKAGE / "binaries"
PROGRESS_SECONDS = 10
FIGURES = "build.json"


@dataclass(frozen=True)
class GoModule:
    """A folder, usually of `binaries/`. Each is a Go module of its own: the versions they depend on conflict."""

    name: str
    packages: tuple[str, ...]
    ldflags: str = "-s -w"
    parent: Path = SOURCES

    @property
    def folder(self) -> Path:
        return self.parent / self.name

    def sources(self) -> list[Path]:
        return sorted(p for p in self.folder.rglob("*") if p.suffix in {".go", ".mod", ".sum"})

    def key(self) -> str:
        """Changes exactly when what is built from changes."""
        digest = hashlib.sha256(repr((self.packages, self.ldflags)).encode())
        for path in self.sources():
            digest.update(str(path.relative_to(self.folder)).encode() + b"\0" + path.read_bytes())
        return digest.hexdigest()[:12]

    @property
    def output(self) -> Path:
        return cache() / "bin" / f"{self.name}-{self.key()}"


KUBERNETES_VERSION = "v1.36.3"
_VERSION = "k8s.io/component-base/version"

ETCD = GoModule("etcd", ("go.etcd.io/etcd/server/v3",))
KUBERNETES = GoModule(
    "kubernetes",
    tuple(
        f"k8s.io/kubernetes/cmd/{command}"
        for command in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
    ),
    # Without them the API server calls itself v0.0.0 and clients turn away.
    f"-s -w -X {_VERSION}.gitVersion={KUBERNETES_VERSION} -X {_VERSION}.gitMajor=1 -X {_VERSION}.gitMinor=36",
)
KUBEVIRT = GoModule(
    "kubevirt", ("./manifests", "kubevirt.io/kubevirt/cmd/virt-api", "kubevirt.io/kubevirt/cmd/virt-controller")
)
KWOK = GoModule("kwok", ("sigs.k8s.io/kwok/cmd/kwok",))

# Longest first: two are built at a time.
MODULES = (KUBERNETES, KUBEVIRT, KWOK, ETCD)


def binary(name: str) -> Path:
    """Path of a built binary."""
    for module in MODULES:
        if any(binary_name(package) == name for package in module.packages):
            return module.output / name
    raise KeyError(name)


def binary_name(package: str) -> str:
    # etcd's main package is the server module itself, whose last element is its major version.
    return "etcd" if package == ETCD.packages[0] else package.rsplit("/", 1)[-1]


def build_all() -> None:
    """Build what the cache does not hold; returns at once when it holds everything."""
    missing = [module for module in MODULES if not module.output.is_dir()]
    if not missing:
        return
    go = find_go()
    say(f"building {', '.join(m.name for m in missing)} with {go}; this happens once and takes some 10 minutes in all")
    with ThreadPoolExecutor(max_workers=2) as pool:
        for future in [pool.submit(build, go, module) for module in missing]:
            future.result()


def build(go: Path, module: GoModule) -> None:
    """Build one module; of several builds at the same time one works and the others wait for it."""
    with locked(cache() / "bin" / f".{module.name}.lock"):
        output = module.output
        if output.is_dir():
            return
        started = time.monotonic()
        # Under the lock the name is ours alone: what a killed build left there goes first.
        target = output.parent / f".{module.name}.partial"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        _go_build(go, module, target)
        seconds = time.monotonic() - started
        (target / FIGURES).write_text(json.dumps({"seconds": seconds}))
        target.rename(output)
        say(f"{module.name}: built in {seconds:.0f} s")
        _drop_older(module)


def _go_build(go: Path, module: GoModule, target: Path) -> None:
    # etcd's binary would be named after its major version if Go chose the name.
    output = str(target / "etcd") if module is ETCD else f"{target}/"
    command = [str(go), "build", "-v", "-trimpath", "-ldflags", module.ldflags, "-o", output, *module.packages]
    environment = {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-mod=readonly -buildvcs=false",
        "GOWORK": "off",
    }
    with subprocess.Popen(
        command, cwd=module.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        lines = list(_with_progress(module, process))
    if process.returncode:
        said = "\n".join(lines[-20:])
        raise TestbedError(f"Building {module.name} failed with exit code {process.returncode}:\n{said}")


def _with_progress(module: GoModule, process: subprocess.Popen[str]) -> Iterator[str]:
    """The compiler's lines (`-v` prints a package per line), with a sign of life now and then."""
    downloads = packages = 0
    last = time.monotonic()
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("go: downloading"):
            downloads += 1
        else:
            packages += 1
        if time.monotonic() - last >= PROGRESS_SECONDS:
            last = time.monotonic()
            say(f"{module.name}: {downloads} modules downloaded, {packages} packages compiled")
        yield line.rstrip()


def _drop_older(module: GoModule) -> None:
    """Remove builds of other keys that nothing has used for a month; other checkouts may still use newer ones."""
    for path in module.output.parent.glob(f"{module.name}-*"):
        if path != module.output and time.time() - path.stat().st_atime > 30 * 86400:
            shutil.rmtree(path, ignore_errors=True)


def build_seconds() -> dict[str, float]:
    """How long each module of the present cache took to build."""
    return {
        module.name: json.loads((module.output / FIGURES).read_text())["seconds"]
        for module in MODULES
        if module.output.is_dir()
    }


def say(text: str) -> None:
    print(f"testbed: {text}", file=sys.stderr, flush=True)
