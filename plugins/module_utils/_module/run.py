# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a module: make it, do its work, and end it in one of two ways, a result or one clear error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from ansible_collections.kubernetes.core.plugins.module_utils.k8s.core import AnsibleK8SModule
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import ExpectedError
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.mistake import Mistake

Module: TypeAlias = AnsibleK8SModule
Work = Callable[[Module], Mapping[str, Any]]


class Incomplete(Exception):
    """The work ended short of its aim after it had changed things: `result` says what was done and what is left."""

    def __init__(self, failure: Failure | Mistake, result: Mapping[str, Any]) -> None:
        super().__init__(str(failure))
        self.failure = failure
        self.result = result


@contextmanager
def explained(attempted: str, remedy: str = "Remove the cause and run the task again.") -> Iterator[None]:
    """Say what could not be done where something cannot be worked with. Raises Mistake instead of ExpectedError."""
    try:
        yield
    except ExpectedError as error:
        raise Mistake(attempted, [str(error).rstrip(".")], remedy) from error


def run(work: Work, **settings: Any) -> None:
    """Exit with what `work` returns, or fail with the sentence and the machine fields of what it raises.

    settings: of AnsibleModule (argument_spec, supports_check_mode, ...).
    """
    module = Module(**settings)
    try:
        result = work(module)
    except Incomplete as error:
        module.fail_json(msg=str(error), error=error.failure.to_json(), **error.result)
    except (Failure, Mistake) as error:
        module.fail_json(msg=str(error), error=error.to_json())
    except ExpectedError as error:
        module.fail_json(msg=str(error))
    else:
        module.exit_json(**result)
