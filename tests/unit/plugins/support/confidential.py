# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest that is told a secret in each way in which one can be told.

Each is another one: what is known for a secret Ansible strikes out wherever else it stands.
"""

from __future__ import annotations

import json

from unit.plugins.support.fake_api import Object


def notes(secret: str) -> dict[str, str]:
    """Annotations."""
    return {
        "kubevirt.io/ignitiondata": f"{secret} of ignition",
        "hooks.kubevirt.io/hookSidecars": json.dumps(
            [{"image": "hook:1", "args": ["--password", f"{secret} of a hook"]}]
        ),
        "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"spec": {"userData": f"{secret} of before"}}),
    }


def domain(secret: str) -> Object:
    kernel = {"kernelArgs": f"password={secret}", "container": {"image": "boot:1", "kernelPath": "/boot"}}
    sev = {"session": f"{secret} of a session", "dhCert": f"{secret} of a certificate"}
    return {"devices": {}, "firmware": {"kernelBoot": kernel}, "launchSecurity": {"sev": sev}}


def spec(secret: str) -> Object:
    """Without its domain."""
    header = {"name": "Authorization", "value": f"Bearer {secret}"}
    data = {"userData": f"{secret} of a user", "networkData": f"{secret} of a network"}
    encoded = {"userDataBase64": f"{secret} of another user", "networkDataBase64": f"{secret} of another network"}
    return {
        "livenessProbe": {"exec": {"command": ["check", f"--password={secret}"]}},
        "readinessProbe": {"httpGet": {"port": 80, "httpHeaders": [header]}},
        "volumes": [
            {"name": "init", "cloudInitNoCloud": data},
            {"name": "drive", "cloudInitConfigDrive": encoded},
        ],
    }
