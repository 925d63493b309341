# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a kubeconfig that is given by its content may be shown.

To Ansible all of it is one secret. It strikes each text in it wherever that stands, also inside of words: after the
`json` with which a cloud's program is called, no path of a JSON file could be read any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

# By the keys that lead there, [] for any of a list. Anything else may be a secret.
_SHOWN = {
    tuple(keys.split("/"))
    for keys in (
        "apiVersion",
        "kind",
        "current-context",
        "clusters/[]/name",
        "clusters/[]/cluster/tls-server-name",
        "contexts/[]/name",
        "contexts/[]/context/cluster",
        "contexts/[]/context/namespace",
        "contexts/[]/context/user",
        "users/[]/name",
        "users/[]/user/username",
        "users/[]/user/as",
        "users/[]/user/as-groups/[]",
        "users/[]/user/exec/apiVersion",
        "users/[]/user/exec/command",
        "users/[]/user/exec/installHint",
        "users/[]/user/exec/interactiveMode",
        "users/[]/user/exec/env/[]/name",
        "users/[]/user/auth-provider/name",
    )
}
_ARGUMENT = ("users", "[]", "user", "exec", "args", "[]")
# What programs of clouds and of OpenID providers are called with, and the flags and variables whose values tell only
# where, and as whom.
_FLAG = re.compile(r"-[A-Za-z]?|--[a-z_-]*")
_WORDS = frozenset(
    "ce cluster config config-helper credentials eks exec-credential generate-token get-token kube kubeconfig "
    "kubernetes login oidc oidc-login token".split()
)
_FLAGS = frozenset(
    "-i --client-id --cluster-id --cluster-name --environment --login --output --profile --region --role-arn "
    "--server-id --tenant-id".split()
)
_VARIABLES = frozenset(
    "AAD_LOGIN_METHOD AAD_SERVICE_PRINCIPAL_CLIENT_ID AWS_DEFAULT_REGION AWS_PROFILE AWS_REGION "
    "AWS_STS_REGIONAL_ENDPOINTS AZURE_CLIENT_ID AZURE_TENANT_ID CLOUDSDK_ACTIVE_CONFIG_NAME CLOUDSDK_CORE_PROJECT "
    "USE_GKE_GCLOUD_AUTH_PLUGIN".split()
)
# Of auth-provider, which gives tokens without a program (config of the kinds azure, gcp and oidc).
_PROVIDER = ("users", "[]", "user", "auth-provider", "config")
_SETTINGS = "apiserver-id client-id config-mode environment expires-in expires-on expiry tenant-id".split()
_SHOWN |= {(*_PROVIDER, setting) for setting in _SETTINGS}
# Notes of whoever has made the kubeconfig; of what stands in them only that of minikube is known.
_NOTES = [("clusters", "[]", "cluster", "extensions", "[]"), ("contexts", "[]", "context", "extensions", "[]")]
_SHOWN |= {(*note, "name") for note in _NOTES}
_SHOWN |= {(*note, "extension", key) for note in _NOTES for key in ("last-update", "provider", "version")}
_SHOWN |= {(*_ARGUMENT[:-1], f"[{flag}]") for flag in _FLAGS}
_SHOWN |= {("users", "[]", "user", "exec", "env", "[]", f"[{name}]") for name in _VARIABLES}
# Where the secret itself may be pasted into, or be a part.
_PATHS = {
    ("clusters", "[]", "cluster", "certificate-authority"),
    *(("users", "[]", "user", key) for key in ("client-certificate", "client-key", "tokenFile")),
}
_PATH = re.compile(r"(~|\.\.?)?(/[\w.@ :-]+)+")
_LONGEST = 255
_SERVERS = {("clusters", "[]", "cluster", "server"), (*_PROVIDER, "idp-issuer-url")}


def harmless(kubeconfig: Mapping[str, Any], others: Mapping[str, Any]) -> set[str]:
    """The texts of a kubeconfig that may be shown. others: options that are secrets."""
    found = list(_leaves(kubeconfig))
    secret = {text for keys, text in found if not _is_shown(keys, text)} | {text for _keys, text in _leaves(others)}
    return {text for _keys, text in found} - secret


def _is_shown(keys: tuple[str, ...], text: str) -> bool:
    if keys in _PATHS:
        return len(text) <= _LONGEST and bool(_PATH.fullmatch(text))
    if keys in _SERVERS:
        return not {"@", "?"}.intersection(text)
    if keys == _ARGUMENT:
        return text in _WORDS or bool(_FLAG.fullmatch(text))
    return keys in _SHOWN


def _leaves(value: Any, *keys: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each that is no list or mapping, as text, with the keys that lead there.

    What follows a flag has that in its last key, and the value of a variable has the variable's name there.
    """
    if isinstance(value, Mapping):
        name = str(value.get("name"))
        for key, inner in value.items():
            yield from _leaves(inner, *keys, f"[{name}]" if key == "value" and name in _VARIABLES else str(key))
    elif isinstance(value, (list, tuple)):
        for before, inner in zip(("", *map(str, value)), value, strict=False):
            yield from _leaves(inner, *keys, f"[{before}]" if before in _FLAGS else "[]")
    else:
        yield keys, str(value)
