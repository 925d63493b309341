# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Speak with the oracle: the program that runs the real kube-scheduler on cases."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from testbed.build import KUBERNETES, GoModule, build
from testbed.gotoolchain import find_go

Json = dict[str, Any]

# The flags carry the version that a feature's availability is decided by.
ORACLE = GoModule("oracle", (".",), KUBERNETES.ldflags, Path(__file__).resolve().parent)


class OracleError(Exception):
    """The oracle could not work on a case: the case is wrong, or the oracle is."""


def program() -> Path:
    """Path of the oracle; it is built when the cache does not hold it."""
    if not ORACLE.output.is_dir():
        build(find_go(), ORACLE)
    return ORACLE.output / "oracle"


def store(cases: Sequence[Json], *, tolerant: bool = False) -> Iterator[Json]:
    """The same cases as an API server would have stored their objects, and marked `stored`; those that are stay.

    Raises `OracleError` for a case that no API server would take; `tolerant`: that one is `{"error": text}` instead.
    """
    answers = _converse("store", [case for case in cases if not case.get("stored")], tolerant=tolerant)
    for case in cases:
        if case.get("stored"):
            yield case
        else:
            answer = next(answers, None)
            if answer is None:
                raise OracleError("oracle store answered fewer cases than it was given")
            yield answer if "error" in answer else {**case, **answer, "stored": True}


def judge(cases: Iterable[Json]) -> Iterator[list[Json]]:
    """The answers of kube-scheduler to stored cases, one for each pod asked about. Raises `OracleError`."""
    for answer in _converse("judge", cases):
        yield answer["answers"]


def timed(case: Json) -> float:
    """Seconds that kube-scheduler takes to find a node for a pod, on average over those a stored case asks about.

    It works as it does by default, with several threads for one pod, but looks at all nodes. Raises `OracleError`.
    """
    (answer,) = _converse("time", [case])
    seconds: float = answer["seconds"]
    return seconds


def _converse(command: str, cases: Iterable[Json], *, tolerant: bool = False) -> Iterator[Json]:
    """One answer a case, in order. Cases are read while answers are given: neither side holds them all."""
    with subprocess.Popen([program(), command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        failures: list[BaseException] = []
        writer = threading.Thread(target=_write, args=(process.stdin, cases, failures), daemon=True)
        writer.start()
        for line in process.stdout:
            answer = json.loads(line)
            if "error" in answer and not tolerant:
                process.kill()
                raise OracleError(f"oracle {command} failed: {answer['error']}")
            yield answer
        writer.join()
        if failures:
            raise failures[0]
    if process.returncode:
        raise OracleError(f"oracle {command} ended with exit code {process.returncode}")


def _write(stream: IO[str], cases: Iterable[Json], failures: list[BaseException]) -> None:
    try:
        with stream:
            for case in cases:
                stream.write(json.dumps({key: value for key, value in case.items() if key in FIELDS}) + "\n")
    except BrokenPipeError:
        pass  # The oracle has ended; what it said before tells why.
    except BaseException as failure:  # noqa: BLE001 -- handed to the thread that reads
        failures.append(failure)


# What the oracle is told of a case; kept cases have more.
FIELDS = ("lists", "asked", "profile", "scores")
