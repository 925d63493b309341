# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring a testbed up, look at it, take it down."""

from __future__ import annotations

import datetime
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil

from testbed import install, parts, pki, processes
from testbed.api import Api
from testbed.build import build_all, say
from testbed.home import Home, Settings, TestbedError, existing, testbeds
from testbed.locks import locked
from testbed.ports import answers, choose
from testbed.waiting import wait_for

ALL_PARTS = (
    parts.etcd,
    parts.kube_apiserver,
    parts.kube_controller_manager,
    parts.kube_scheduler,
    parts.kwok,
    parts.virt_api,
    parts.virt_controller,
    parts.simulator,
)
NAMES = tuple(make.__name__.replace("_", "-") for make in ALL_PARTS)
LOOPBACK = ("127.0.0.1", "localhost")
# The name under which kube-apiserver's aggregator verifies virt-api.
VIRT_API_HOSTS = (*LOOPBACK, "virt-api", "virt-api.kubevirt", "virt-api.kubevirt.svc")


class Testbed:
    """One testbed while it is being started."""

    __test__ = False

    def __init__(self, home: Home, settings: Settings) -> None:
        self.home = home
        self.settings = settings
        self.started: list[str] = []

    def start(self, make: Callable[[Home, Settings], parts.Part]) -> None:
        part = make(self.home, self.settings)
        processes.spawn(self.home, part.name, part.command, part.environment)
        self.started.append(part.name)

    def wait(self, what: str, check: Callable[[], bool], timeout: float = 90) -> None:
        """Wait for a condition, but no longer than all started parts live."""

        def check_alive() -> bool:
            dead = died(self.home, self.started)
            if dead:
                raise TestbedError(f"While waiting for {what}:\n{obituary(self.home, dead)}")
            return check()

        wait_for(what, check_alive, timeout)

    def write_credentials(self) -> None:
        folder = self.home.pki
        authority = pki.Authority(folder)
        authority.issue("etcd", "etcd", hosts=LOOPBACK)
        authority.issue("kube-apiserver", "kube-apiserver", hosts=(*LOOPBACK, "kubernetes.default.svc"))
        authority.issue("front-proxy", "front-proxy")
        authority.issue("virt-api", "virt-api", hosts=VIRT_API_HOSTS)
        authority.issue("virt-controller", "virt-controller", hosts=LOOPBACK)
        authority.issue("virt-handler-client", "kubevirt.io:system:client:virt-handler")
        pki.signing_key(folder)
        server = f"https://127.0.0.1:{self.settings.ports['api']}"
        for user, (common_name, organizations) in parts.USERS.items():
            certificate = authority.issue(f"user-{user}", common_name, organizations)
            pki.write_kubeconfig(self.home.kubeconfig(user), server, authority.cert, pki.certificate_user(certificate))
        # The administrator's own kubeconfig, had nobody renewed it.
        authority.lifetime = -datetime.timedelta(minutes=1)
        outdated = authority.issue("user-expired", *parts.USERS["admin"])
        pki.write_kubeconfig(self.home.kubeconfig("expired"), server, authority.cert, pki.certificate_user(outdated))

    def run(self) -> None:
        """Start everything; returns when every part does its work."""
        self.write_credentials()
        self.start(parts.etcd)
        self.start(parts.kube_apiserver)
        with Api(self.home.kubeconfig()) as api, ThreadPoolExecutor(max_workers=1) as pool:
            rendered = pool.submit(install.manifests)
            self.wait("kube-apiserver to be ready", lambda: api.get("/readyz") is not None)
            say(f"{self.home.name}: etcd and kube-apiserver are ready")
            for make in (parts.kube_controller_manager, parts.kube_scheduler, parts.kwok):
                self.start(make)
            objects = rendered.result()
            install.install_definitions(api, objects)
            port, ca = self.settings.ports["virt-api"], self.home.pki / "ca.crt"
            install.install_configuration(api, ca, port)
            install.install_access(api, objects)
            say(f"{self.home.name}: KubeVirt's resource definitions and roles are installed")
            for make in (parts.virt_api, parts.virt_controller, parts.simulator):
                self.start(make)
            self.wait("virt-api to listen", lambda: answers(port))
            install.install_webhooks(api, objects, ca, port)
            install.install_workloads(api, objects)
            self.wait("virt-controller to lead", lambda: leads(api))
            self.wait("the simulator to watch", lambda: "ready" in self.home.log("simulator").read_text())


def leads(api: Api) -> bool:
    lease = api.get("/apis/coordination.k8s.io/v1/namespaces/kubevirt/leases/virt-controller")
    return bool(lease["spec"].get("holderIdentity"))


def died(home: Home, expected: list[str] | tuple[str, ...] = NAMES) -> list[str]:
    """Parts that should run and do not."""
    alive = processes.running(home)
    return [name for name in expected if name not in alive]


def obituary(home: Home, dead: list[str]) -> str:
    return "\n".join(
        f"{name} of testbed {home.name} is not running; its last lines:\n{indented(processes.tail(home, name))}"
        for name in dead
    )


def indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def up(home: Home, time_scale: float, seed: int, owner_pid: int | None) -> None:
    """Bring a testbed up; one that is up already is left as it is."""
    build_all()
    remove_stale(except_for=home)
    with locked(lock_file(home)):
        settings = home.settings()
        if settings and settings.ready:
            dead = died(home)
            if not dead:
                say(f"{home.name} is up already")
                return
            say(f"{obituary(home, dead)}\n{home.name}: starting anew")
        remove(home)
        owner = (owner_pid, psutil.Process(owner_pid).create_time()) if owner_pid else None
        started = time.monotonic()
        home.create()
        with locked(testbeds() / ".ports.lock"):
            settings = Settings(choose(parts.PORTS), owner, time_scale, seed)
            home.write(settings)
        try:
            Testbed(home, settings).run()
        except BaseException:
            # The processes go, the logs stay to be read until the next `up` or `down`.
            processes.stop_all(home)
            raise
        home.write(replace(settings, ready=True))
        say(f"{home.name} is up after {time.monotonic() - started:.0f} s")


def revive(home: Home) -> list[str]:
    """Start the parts that have ended, as a kubelet does; their names."""
    settings, dead = home.settings(), died(home)
    if settings is None:
        raise TestbedError(f"There is no testbed {home.name}.")
    for name, make in zip(NAMES, ALL_PARTS, strict=True):
        if name in dead:
            Testbed(home, settings).start(make)
    return dead


def down(home: Home) -> bool:
    """Take a testbed down; nothing of it remains. False when there was none."""
    with locked(lock_file(home)):
        found = home.root.is_dir()
        remove(home)
    return found


def remove(home: Home) -> None:
    processes.stop_all(home)
    if home.root.is_dir():
        shutil.rmtree(home.root)


def sweep() -> list[str]:
    """Remove what nobody owns any more, testbeds and processes of killed test runs; the names of testbeds that stay."""
    processes.stop(processes.orphans())
    remove_stale()
    return [home.name for home in existing() if processes.running(home)]


def remove_stale(except_for: Home | None = None) -> None:
    """Clean up after testbeds whose `up` or owner was killed."""
    for home in existing():
        if home == except_for:
            continue
        # A lock that somebody holds belongs to a testbed that is being started or taken down right now.
        with locked(lock_file(home), wait=False) as held:
            if held and is_stale(home):
                say(f"removing testbed {home.name}, which somebody left behind")
                remove(home)


def is_stale(home: Home) -> bool:
    settings = home.settings()
    if settings is None or not settings.ready:
        return True
    return settings.owner is not None and not processes.alive(settings.owner)


def lock_file(home: Home) -> Path:
    return testbeds() / f".{home.name}.lock"
