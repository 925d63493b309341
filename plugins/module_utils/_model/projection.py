# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which fields of an object are kept: a small language for subsets of JSON, made of functions.

Each function below returns a `Projection`. What it keeps has the API's shape and place, so code that reads a projected
object reads the full one too; projecting twice is the same as projecting once.

An allow list, not a deny list: what nobody has decided to keep (environment variables, secrets of guests, managed
fields, times that change without meaning) never reaches a snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

Projection = Callable[[Any], Any]


def fields(whole: str = "", /, **nested: Projection) -> Projection:
    """Of an object the named fields: those in `whole` (separated by spaces) as they are, the others projected."""
    kept: list[tuple[str, Projection | None]] = [*((name, None) for name in whole.split()), *nested.items()]

    def project(value: Any) -> Any:
        if value is None:
            return None
        return {name: part(value[name]) if part else value[name] for name, part in kept if name in value}

    return project


def each(item: Projection, where: Callable[[Any], bool] | None = None) -> Projection:
    """Of a list all items, each projected; with `where` only those that still say something."""

    def project(value: Any) -> Any:
        if value is None:
            return None
        items = map(item, value)
        return list(filter(where, items)) if where else list(items)

    return project


def more_than(*names: str) -> Callable[[Any], bool]:
    """For `each`: whether an object has other fields than these."""
    known = frozenset(names)
    return lambda item: not known.issuperset(item)


def typed(*types: str) -> Callable[[Any], bool]:
    """For `each`: whether a condition is of one of these types."""
    wanted = frozenset(types)
    return lambda item: item.get("type") in wanted


def keys(
    *names: str,
    prefixes: tuple[str, ...] = (),
    but: Collection[str] = (),
    parts: Mapping[str, Projection] | None = None,
) -> Projection:
    """Of a map the given keys and those that begin with one of `prefixes`, without the keys in `but`.

    parts: keys of which only a projection of their content is kept.
    """
    wanted, unwanted, projected = frozenset(names), frozenset(but), parts or {}

    def project(value: Any) -> Any:
        if value is None:
            return None
        kept = {
            key: content
            for key, content in value.items()
            if key in wanted or (key.startswith(prefixes) and key not in unwanted)
        }
        return kept | {key: part(value[key]) for key, part in projected.items() if key in value}

    return project


def presence(value: Any) -> Any:
    """That a field is there, and nothing of what it holds."""
    return None if value is None else {}


def metadata(annotations: Projection | None = None, more: str = "") -> Projection:
    """What all objects keep of their metadata: identity, age, owners, labels, the annotations named, and `more`."""
    owners = each(fields("apiVersion kind name uid controller"))
    plain = f"name namespace uid labels creationTimestamp deletionTimestamp {more}"
    if annotations is None:
        return fields(plain, ownerReferences=owners)
    return fields(plain, ownerReferences=owners, annotations=annotations)


def resource(whole: str = "", /, *, annotations: Projection | None = None, **nested: Projection) -> Projection:
    """An object of the API: its type where it names it, its metadata, and the given fields."""
    return fields(f"apiVersion kind {whole}", metadata=metadata(annotations), **nested)


# Conditions without their times: a heartbeat is no change.
condition = fields("type status reason")
explained_condition = fields("type status reason message")
conditions = each(condition)
explained_conditions = each(explained_condition)
