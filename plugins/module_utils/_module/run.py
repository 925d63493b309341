# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a module: make it, do its work, and end it in one of two ways, a result or one clear error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.core import AnsibleK8SModule
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import ExpectedError, MissingLibrary
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.kubeconfig_texts import harmless
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.libraries import how_to_install
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.texts import understood


class TextReadingModule(AnsibleModule):  # type: ignore[misc]  # Ansible is published without types
    """Takes options also as the texts that a survey gives. `given`: names of those that the task gives.

    Of a kubeconfig that is given by its content only what may be a secret is struck from what is shown.
    """

    params: JsonObject
    given: frozenset[str] = frozenset()

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        given = self.params.get("kubeconfig")
        if isinstance(given, Mapping):
            others = {name: self.params.get(name) for name in ("api_key", "password", "proxy_headers")}
            self.no_log_values -= harmless(given, others)

    def _load_params(self) -> None:
        super()._load_params()
        try:
            self.params = understood("read the options of the task", self.argument_spec, self.params)
        except InvalidRequest as error:
            # Without the arguments: what of them must not be shown is found out later.
            self.fail_json(msg=str(error), error=error.to_json(), invocation={})
        # Later all others have their defaults.
        self.given = frozenset(
            name
            for name, option in self.argument_spec.items()
            if any(self.params.get(alias) is not None for alias in (name, *(option.get("aliases") or ())))
        )


class Module(AnsibleK8SModule):  # type: ignore[misc]  # kubernetes.core is published without types
    """What a task is done with."""

    @property
    def given(self) -> frozenset[str]:
        """Names of the options that the task gives, also those that it gives as they are by default."""
        found: frozenset[str] = self._module.given
        return found


Work = Callable[[Module], Mapping[str, Any]]


class Incomplete(Exception):
    """The work ended short of its aim after it had changed things: `result` says what was done and what is left."""

    def __init__(self, failure: Failure | InvalidRequest, result: Mapping[str, Any]) -> None:
        super().__init__(str(failure))
        self.failure = failure
        self.result = result


@contextmanager
def explained(attempted: str, remedy: str = "Remove the cause and run the task again.") -> Iterator[None]:
    """Say what could not be done. Raises InvalidRequest for ExpectedError, but MissingLibrary as it is."""
    try:
        yield
    except MissingLibrary:
        raise
    except ExpectedError as error:
        raise InvalidRequest(attempted, [str(error).rstrip(".")], remedy) from error


def run(work: Work, **settings: Any) -> None:
    """Exit with what `work` returns, or fail with the sentence and the machine fields of what it raises.

    settings: of AnsibleModule (argument_spec, supports_check_mode, ...).
    """
    module = Module(module_class=TextReadingModule, **settings)
    try:
        result = work(module)
    except Incomplete as error:
        module.fail_json(msg=str(error), error=error.failure.to_json(), **error.result)
    except (Failure, InvalidRequest) as error:
        module.fail_json(msg=str(error), error=error.to_json())
    except MissingLibrary as error:
        module.fail_json(msg=how_to_install(error))
    except ExpectedError as error:
        module.fail_json(msg=str(error))
    else:
        module.exit_json(**result)
