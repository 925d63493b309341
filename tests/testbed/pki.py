# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates and kubeconfigs of a testbed: one authority, short-lived, P-256 keys, all below the testbed's folder."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = datetime.timedelta(days=30)


def write_private(path: Path, content: bytes) -> Path:
    """Write a file that only its owner can read, from its first byte on."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(content)
    return path


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def subject(common_name: str, organizations: Sequence[str] = ()) -> x509.Name:
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization) for organization in organizations]
    return x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def alternative_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


@dataclass(frozen=True)
class Certificate:
    """Two PEM files: the certificate and its key."""

    cert: Path
    key: Path


class Authority:
    """A certificate authority that lives in one folder and issues into it."""

    def __init__(self, folder: Path, lifetime: datetime.timedelta = LIFETIME) -> None:
        self.folder = folder
        self.lifetime = lifetime
        self.key = ec.generate_private_key(ec.SECP256R1())
        name = subject("testbed-ca")
        builder = (
            self._builder(name, self.key.public_key())
            .issuer_name(name)
            # Python 3.13 and later accept a CA only with these two marked critical.
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_ca_key_usage(), critical=True)
        )
        self.certificate = builder.sign(self.key, hashes.SHA256())
        self.cert = write_private(folder / "ca.crt", self.certificate.public_bytes(serialization.Encoding.PEM))

    def _builder(self, name: x509.Name, public_key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            # Clocks of containers and virtual machines may lag a little behind.
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + self.lifetime)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        )

    def issue(
        self, file: str, common_name: str, organizations: Sequence[str] = (), hosts: Sequence[str] = ()
    ) -> Certificate:
        """A certificate for a client and, when `hosts` (DNS names or addresses) are given, for a server too."""
        key = ec.generate_private_key(ec.SECP256R1())
        issuer_key_id = self.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH] + ([ExtendedKeyUsageOID.SERVER_AUTH] if hosts else [])
        builder = (
            self._builder(subject(common_name, organizations), key.public_key())
            .issuer_name(self.certificate.subject)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer_key_id), critical=False
            )
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        )
        if hosts:
            names = x509.SubjectAlternativeName([alternative_name(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self.key, hashes.SHA256())
        return Certificate(
            write_private(self.folder / f"{file}.crt", certificate.public_bytes(serialization.Encoding.PEM)),
            write_private(self.folder / f"{file}.key", key_pem(key)),
        )


def _ca_key_usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def signing_key(folder: Path) -> Certificate:
    """The key pair that signs and verifies service-account tokens."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return Certificate(write_private(folder / "sa.pub", public), write_private(folder / "sa.key", key_pem(key)))


def write_kubeconfig(path: Path, server: str, ca: Path, user: Mapping[str, object]) -> Path:
    """A kubeconfig with everything inside, so that it can be copied away and still works."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "testbed", "cluster": {"server": server, "certificate-authority-data": encoded(ca)}},
        ],
        "users": [{"name": path.stem, "user": user}],
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": path.stem}}],
        "current-context": "testbed",
    }
    return write_private(path, yaml.safe_dump(config, sort_keys=False).encode())


def certificate_user(certificate: Certificate) -> dict[str, str]:
    return {
        "client-certificate-data": encoded(certificate.cert),
        "client-key-data": encoded(certificate.key),
    }


def encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
