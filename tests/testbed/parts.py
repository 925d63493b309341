# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes that make a testbed: how each is started.

In which order they start, and what is done in between, is cluster.py's matter.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from testbed.build import binary
from testbed.home import PACKAGE, Home, Settings
from testbed.simulator.facts import OUTAGE_LABEL

SERVICE_CIDR = "10.96.0.0/16"
STAGES = PACKAGE / "stages"
# Users of the parts: (common name, organizations) of their client certificates.
USERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "admin": ("testbed-admin", ("system:masters",)),
    "kube-scheduler": ("system:kube-scheduler", ()),
    "kube-controller-manager": ("system:kube-controller-manager", ()),
    # virt-api recognises KubeVirt's components by these names and reverts what others write into a VMI's status.
    "virt-api": (
        "system:serviceaccount:kubevirt:kubevirt-apiserver",
        ("system:serviceaccounts", "system:serviceaccounts:kubevirt"),
    ),
    "virt-controller": (
        "system:serviceaccount:kubevirt:kubevirt-controller",
        ("system:serviceaccounts", "system:serviceaccounts:kubevirt"),
    ),
}
PORTS = ("etcd", "etcd-peer", "api", "virt-api", "virt-api-console", "virt-controller")


@dataclass(frozen=True)
class Part:
    """One process: its name, its command line, and what it needs in its environment beside the caller's."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


def etcd(home: Home, settings: Settings) -> Part:
    client = f"https://127.0.0.1:{settings.ports['etcd']}"
    peer = f"https://127.0.0.1:{settings.ports['etcd-peer']}"
    pki = home.pki
    return Part(
        "etcd",
        (
            str(binary("etcd")),
            "--name=testbed",
            f"--data-dir={home.etcd}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=testbed={peer}",
            f"--cert-file={pki}/etcd.crt",
            f"--key-file={pki}/etcd.key",
            f"--trusted-ca-file={pki}/ca.crt",
            "--client-cert-auth",
            f"--peer-cert-file={pki}/etcd.crt",
            f"--peer-key-file={pki}/etcd.key",
            f"--peer-trusted-ca-file={pki}/ca.crt",
            "--peer-client-cert-auth",
            # A testbed does not outlive its machine.
            "--unsafe-no-fsync",
            "--log-level=warn",
        ),
    )


def kube_apiserver(home: Home, settings: Settings) -> Part:
    pki = home.pki
    return Part(
        "kube-apiserver",
        (
            str(binary("kube-apiserver")),
            f"--etcd-servers=https://127.0.0.1:{settings.ports['etcd']}",
            f"--etcd-cafile={pki}/ca.crt",
            f"--etcd-certfile={pki}/etcd.crt",
            f"--etcd-keyfile={pki}/etcd.key",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={settings.ports['api']}",
            f"--tls-cert-file={pki}/kube-apiserver.crt",
            f"--tls-private-key-file={pki}/kube-apiserver.key",
            f"--client-ca-file={pki}/ca.crt",
            "--authorization-mode=Node,RBAC",
            f"--service-cluster-ip-range={SERVICE_CIDR}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={pki}/sa.pub",
            f"--service-account-signing-key-file={pki}/sa.key",
            # virt-api refuses to start without the whole front-proxy set.
            f"--requestheader-client-ca-file={pki}/ca.crt",
            "--requestheader-allowed-names=front-proxy",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-username-headers=X-Remote-User",
            f"--proxy-client-cert-file={pki}/front-proxy.crt",
            f"--proxy-client-key-file={pki}/front-proxy.key",
            # virt-handler's pods are privileged.
            "--allow-privileged=true",
            # Its own address is loopback, which no Endpoints object may hold.
            "--endpoint-reconciler-type=none",
            "--profiling=false",
        ),
        # Room for its garbage, not all that the machine has: the heap it needs is well below. Collected less often, a
        # start and a run of maintenance cost it a third less.
        {"GOGC": "400", "GOMEMLIMIT": "1400MiB"},
    )


def kube_controller_manager(home: Home, settings: Settings) -> Part:
    return Part(
        "kube-controller-manager",
        (
            str(binary("kube-controller-manager")),
            f"--kubeconfig={home.kubeconfig('kube-controller-manager')}",
            f"--service-account-private-key-file={home.pki}/sa.key",
            f"--root-ca-file={home.pki}/ca.crt",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            "--secure-port=0",
            # A node that is gone is noticed in a minute, and not one whose lease kwok renews late on a busy machine.
            "--node-monitor-period=2s",
            "--node-monitor-grace-period=60s",
            "--profiling=false",
        ),
    )


def kube_scheduler(home: Home, settings: Settings) -> Part:
    return Part(
        "kube-scheduler",
        (
            str(binary("kube-scheduler")),
            f"--kubeconfig={home.kubeconfig('kube-scheduler')}",
            "--leader-elect=false",
            "--secure-port=0",
            "--profiling=false",
        ),
    )


def kwok(home: Home, settings: Settings) -> Part:
    stages = [f"--config={path}" for path in sorted(STAGES.glob("*.yaml"))]
    return Part(
        "kwok",
        (
            str(binary("kwok")),
            f"--kubeconfig={home.kubeconfig()}",
            # A node with this label has no kubelet: its lease is no longer renewed and its pods are left as they are.
            f"--manage-nodes-with-label-selector=!{OUTAGE_LABEL}",
            "--node-lease-duration-seconds=40",
            *stages,
        ),
    )


def virt_api(home: Home, settings: Settings) -> Part:
    pki = home.pki
    return Part(
        "virt-api",
        (
            str(binary("virt-api")),
            f"--kubeconfig={home.kubeconfig('virt-api')}",
            "--listen=127.0.0.1",
            f"--port={settings.ports['virt-api']}",
            f"--console-server-port={settings.ports['virt-api-console']}",
            f"--tls-cert-file={pki}/virt-api.crt",
            f"--tls-key-file={pki}/virt-api.key",
            f"--handler-cert-file={pki}/virt-handler-client.crt",
            f"--handler-key-file={pki}/virt-handler-client.key",
        ),
        # It decodes each write of a VM twice and keeps nothing: collecting that garbage less often saves a third of it,
        # up to a size at which many VMs have left their garbage.
        {"GOGC": "400", "GOMEMLIMIT": "320MiB"},
    )


def virt_controller(home: Home, settings: Settings) -> Part:
    pki = home.pki
    return Part(
        "virt-controller",
        (
            str(binary("virt-controller")),
            f"--kubeconfig={home.kubeconfig('virt-controller')}",
            "--listen=127.0.0.1",
            f"--port={settings.ports['virt-controller']}",
            "--launcher-image=quay.io/kubevirt/virt-launcher:v1.8.4",
            f"--prom-cert-file={pki}/virt-controller.crt",
            f"--prom-key-file={pki}/virt-controller.key",
            # It ends when it cannot renew its lease in time, and nobody would start it again.
            "--leader-elect-lease-duration=90s",
            "--leader-elect-renew-deadline=60s",
            "--leader-elect-retry-period=2s",
        ),
    )


def simulator(home: Home, settings: Settings) -> Part:
    return Part(
        "simulator",
        (
            sys.executable,
            "-m",
            "testbed.simulator",
            f"--kubeconfig={home.kubeconfig()}",
            f"--time-scale={settings.time_scale}",
            f"--seed={settings.seed}",
        ),
        # Where `python -m testbed…` finds this package.
        {"PYTHONPATH": str(PACKAGE.parent)},
    )
