# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run has to remember, kept in the cluster: so it can be resumed by a controller that has never seen it.

A document is bytes under a name, compressed and kept in ConfigMaps: a head, and chunks beside it if it is large. The
chunks are written first and removed last, and only the head says which of them count; so a reader finds the document as
it was before a write or after it, whatever dies in between. Nothing is kept but what the caller gives, and nothing owns
the objects: they go when the run is released or aborted.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.objects import find
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.listing import read_whole
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.paths import (
    collection_path,
    object_path,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import May
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.namespaces import create_in
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.nodes import FIELD_MANAGER
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.leases import run_slug
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import RUN_LABEL
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, embedded

# Which part of a document a ConfigMap is.
PART_LABEL, HEAD, CHUNK = "virtops.kubevirt/run-document", "head", "chunk"
# Bytes. The API takes ConfigMaps of up to 1 MiB; a document that is larger unpacked than this is none of ours.
CHUNK_SIZE, LARGEST = 500 * 1024, 256 * 1024 * 1024
BROKEN = "DocumentBroken"
_PAGE = 500
# A head that is replaced while its chunks are read, so often in a row, is no coincidence any more.
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """generation: 1 for the first that was kept under the name, and one more with each that replaced it."""

    name: str
    content: bytes
    generation: int
    sha256: str


class RunStore:
    """The documents of one run in one namespace. All methods raise Failure."""

    def __init__(self, client: Client, run: str, namespace: str) -> None:
        self.namespace = namespace
        self.run = run
        self._client = client
        self._label = f"{RUN_LABEL}={run}"
        self._all = collection_path("v1", namespace, "configmaps")

    def briefly(self) -> RunStore:
        """The same documents, for who asks anew later when something has failed for a moment."""
        return RunStore(self._client.briefly(), self.run, self.namespace)

    def guarded(self, may: May) -> RunStore:
        """The same documents; may: asked before anything is written or removed."""
        return RunStore(self._client.guarded(may), self.run, self.namespace)

    def names(self) -> list[str]:
        """Of all documents, sorted."""
        heads = self._list(f"{self._label},{PART_LABEL}={HEAD}")
        return sorted(str((item.get("data") or {}).get("name", "")) for item in heads)

    def get(self, name: str) -> StoredDocument | None:
        """None if there is none of that name. Raises Failure, with the reason BROKEN if it cannot be read."""
        before = ""
        for _attempt in range(_ATTEMPTS):
            head = self._read(self._name(name))
            if head is None:
                return None
            packed = self._packed(head)
            if packed is not None:
                return self._document(name, head, packed)
            if head["metadata"]["resourceVersion"] == before:
                raise self._broken(name, "a part of it is gone")
            before = head["metadata"]["resourceVersion"]
        raise self._broken(name, "it was replaced again and again while it was read")

    def put(self, name: str, content: bytes, *, after: int | None = None) -> StoredDocument:
        """Keep the content under the name; nothing is written if that is there already, and can be read.

        after: the generation that it is to follow, 0 for none. Status 409 if another is there, or somebody else wrote
        at the same time.
        """
        if len(content) > LARGEST:
            raise self._too_large(name, len(content))
        head = self._read(self._name(name))
        data = (head or {}).get("data") or {}
        generation = _number(data.get("generation"))
        digest = hashlib.sha256(content).hexdigest()
        if head and data.get("sha256") == digest and self._is_whole(name, head):
            return StoredDocument(name, content, generation, digest)
        if after is not None and after != generation:
            raise self._outdated(name, after, generation)
        document = StoredDocument(name, content, generation + 1, digest)
        names = self._write(document, head)
        for chunk in _chunks(head) if head else ():
            if chunk not in names:
                self._remove(chunk, None)  # its name tells its content
        return document

    def delete_all(self) -> int:
        """Remove everything of the run, heads first; how many objects there were."""
        items = sorted(self._list(self._label), key=lambda item: item["metadata"]["labels"].get(PART_LABEL) != HEAD)
        for item in items:
            self._remove(item["metadata"]["name"], item["metadata"]["uid"])
        return len(items)

    def _write(self, document: StoredDocument, before: JsonObject | None) -> list[str]:
        """The chunks, whose names it returns, then the head. A write whose answer was lost is found done by them."""
        packed = gzip.compress(document.content, 6, mtime=0)
        parts = [packed[start : start + CHUNK_SIZE] for start in range(0, len(packed), CHUNK_SIZE)]
        chunks = parts if len(parts) > 1 else []
        name = self._name(document.name)
        names = [f"{name}-{document.generation}-{document.sha256[:8]}-{number}" for number in range(len(chunks))]
        for chunk, part in zip(names, chunks, strict=True):
            self._create(self._object(chunk, document.name, CHUNK, part, {}))
        data = {
            "name": document.name,
            "run": self.run,
            "generation": str(document.generation),
            "sha256": document.sha256,
            "chunks": json.dumps(names),
        }
        head = self._object(name, document.name, HEAD, b"" if chunks else packed, data)
        self._write_head(document, head, before)
        return names

    def _write_head(self, document: StoredDocument, head: JsonObject, before: JsonObject | None) -> None:
        try:
            if before is None:
                self._post(head)
            else:
                head["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"]
                path = object_path("v1", self.namespace, "configmaps", head["metadata"]["name"])
                self._client.replace(path, self._attempted(document.name), head, fieldManager=FIELD_MANAGER)
        except Failure as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            found = self._read(head["metadata"]["name"])
            if not found or found.get("data") != head["data"]:
                raise

    def _create(self, chunk: JsonObject) -> None:
        """Its name tells its content, so one that is there already was written by a request whose answer was lost."""
        try:
            self._post(chunk)
        except Failure as error:
            if error.status != HTTPStatus.CONFLICT:
                raise

    def _post(self, item: JsonObject) -> None:
        attempted = self._attempted(item["metadata"]["name"])
        create_in(self._client, self.namespace, self._all, attempted, item, dry_run=False, fieldManager=FIELD_MANAGER)

    def _object(self, name: str, document: str, part: str, content: bytes, data: Mapping[str, str]) -> JsonObject:
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": {RUN_LABEL: self.run, PART_LABEL: part},
                "annotations": {"virtops.kubevirt/document": document},
            },
            "data": dict(data),
            "binaryData": {"content": base64.b64encode(content).decode()} if content else {},
        }

    def _packed(self, head: JsonObject) -> bytes | None:
        """None if a chunk is gone, as it is when the head has been replaced since."""
        names = _chunks(head)
        if not names:
            return _binary(head)
        chunks = [self._read(name) for name in names]
        return None if None in chunks else b"".join(_binary(chunk) for chunk in chunks if chunk)

    def _document(self, name: str, head: JsonObject, packed: bytes) -> StoredDocument:
        data = head.get("data") or {}
        try:
            unpacking = zlib.decompressobj(wbits=31)
            content = unpacking.decompress(packed, LARGEST)
        except zlib.error as error:
            raise self._broken(name, f"it cannot be unpacked, {error}") from error
        if not unpacking.eof or hashlib.sha256(content).hexdigest() != data.get("sha256"):
            raise self._broken(name, "its content is not what its checksum says")
        return StoredDocument(name, content, _number(data.get("generation")), data["sha256"])

    def _is_whole(self, name: str, head: JsonObject) -> bool:
        packed = self._packed(head)
        try:
            return packed is not None and bool(self._document(name, head, packed).sha256)
        except Failure as error:
            if error.reason != BROKEN:
                raise
            return False

    def _list(self, selector: str) -> list[JsonObject]:
        query: dict[str, str | int] = {"labelSelector": selector, "limit": _PAGE}
        try:
            return read_whole(self._client, self._all, f"list the documents of run {self.run}", query, list)
        except Failure as error:
            if error.gone:
                return []
            raise

    def _read(self, name: str) -> JsonObject | None:
        path = object_path("v1", self.namespace, "configmaps", name)
        return find(self._client, path, f"read {self.namespace}/{name}, a document of run {self.run}")

    def _remove(self, name: str, uid: str | None) -> None:
        path = object_path("v1", self.namespace, "configmaps", name)
        attempted = f"remove {self.namespace}/{name}, a document of run {self.run}"
        self._client.delete(path, attempted, uid, dry_run=False)

    def _name(self, document: str) -> str:
        """Hashed, as nodes may have long names, and one run be called as another with a document's name."""
        slug = run_slug(self.run)
        return f"virtops-run-{slug}-{hashlib.sha256(f'{slug}/{document}'.encode()).hexdigest()[:12]}"

    def _attempted(self, document: str) -> str:
        return f"keep document {document} of run {self.run}"

    def _outdated(self, name: str, after: int, found: int) -> Failure:
        return Failure(
            self._attempted(name),
            self._client.server,
            f"generation {found} of it is there, not {after}",
            "Somebody else goes on with this run: read it again.",
            status=HTTPStatus.CONFLICT,
            reason="Conflict",
        )

    def _too_large(self, name: str, size: int) -> Failure:
        return Failure(
            self._attempted(name),
            self._client.server,
            f"it has {-(-size // 2**20)} MiB, and at most {LARGEST >> 20} MiB are kept",
            "Maintain fewer nodes in a run, or fewer in a batch.",
            reason="DocumentTooLarge",
        )

    def _broken(self, name: str, why: str) -> Failure:
        return Failure(
            f"read document {name} of run {self.run}",
            self._client.server,
            why,
            f"Start the run under a new name, or remove what is left of it with playbook abort; the document is "
            f"ConfigMap {self.namespace}/{self._name(name)}.",
            reason=BROKEN,
        )


def _chunks(head: JsonObject) -> list[str]:
    """Their names, in order. Those that a head cannot have are passed over: the checksum tells, and they stay."""
    names = embedded((head.get("data") or {}).get("chunks"))
    if not isinstance(names, list):
        return []
    own = f"{head['metadata']['name']}-"
    return [name for name in names if isinstance(name, str) and name.startswith(own)]


def _binary(item: JsonObject) -> bytes:
    try:
        return base64.b64decode((item.get("binaryData") or {}).get("content") or "", validate=True)
    except ValueError:
        return b""


def _number(text: object) -> int:
    return int(str(text)) if str(text).isdecimal() else 0
