# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one exception of everything that reaches out of the process: the API and files."""

from __future__ import annotations

import re
from http import HTTPStatus

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import sentence

NAME_UNKNOWN, NAME_UNRESOLVED = "NameUnknown", "NameUnresolved"
# Reasons of failures without an answer that time does not mend.
_LASTING = frozenset({"CertificateInvalid", NAME_UNKNOWN, "TlsFailed"})

_UNAUTHORIZED = re.compile(r'User ".*" cannot \S+ (resource|path) "')
# Of an object that was sent with fieldValidation=Strict (k8s.io/apimachinery, pkg/runtime/error.go).
_UNKNOWN_FIELD = re.compile(r'strict decoding error: .*unknown field "')
_BY_WEBHOOK = re.compile(r'admission webhook ".*" denied the request')

# What a Go server says of a path that it knows nothing of (NotFound in net/http); an API server does so of kinds.
NOT_SERVED = "NotServed"


class Failure(Exception):
    """Something outside did not work out. The fields are for programs, the text is the sentence for people.

    attempted: a verb with its object, as in "list pods". where: the server or path it was tried on. status: of HTTP,
    where there was an answer. reason: one word of the server's or the system's. message: the other side's own words.
    remedy: what the reader can do, a sentence. details: further data for programs, such as the rules that are missing.
    unanswered: it was asked, and no answer came. What has neither status nor that was judged on this side. unsent: no
    connection came about, so nothing can have been done. retry_after: seconds that the server asks to wait before the
    next try. considered: the answer is one of somebody who has looked at what was asked for, such as a disruption
    budget or a webhook, and not of a server that is busy. unadmitted: a webhook that has a say could not be asked, so
    that nothing was done. maybe_done: what it was to change has perhaps been changed all the same. foreign: a 404 of no
    API server, but of something before it, such as a proxy without a server for now. since: time of day at which the
    server fell silent, where somebody asks on; empty if unknown. tries: how often it was asked since then. bare: the
    message without these two, if it says them itself. announced: people have been told meanwhile that it lasts.
    unasked: it is why something else was not asked for, and has no status, which would be taken for an answer to that.
    """

    def __init__(
        self,
        attempted: str,
        where: str,
        message: str,
        remedy: str,
        *,
        status: int | None = None,
        reason: str = "",
        details: JsonObject | None = None,
        unanswered: bool = False,
        unsent: bool = False,
        retry_after: float | None = None,
        considered: bool = False,
        unadmitted: bool = False,
        maybe_done: bool = False,
        foreign: bool = False,
        since: str = "",
        tries: int = 0,
        bare: str = "",
        announced: bool = False,
        unasked: bool = False,
    ) -> None:
        super().__init__(sentence(f"Cannot {attempted} ({where}): {message.rstrip('.')}. {remedy}"))
        self.attempted = attempted
        self.where = where
        self.message = message
        self.remedy = remedy
        self.status = status
        self.reason = reason
        self.details = details or {}
        self.unanswered = unanswered
        self.unsent = unsent
        self.retry_after = retry_after
        self.considered = considered
        self.unadmitted = unadmitted
        self.maybe_done = maybe_done
        self.foreign = foreign
        self.since = since
        self.tries = tries
        self.bare = bare or message
        self.announced = announced
        self.unasked = unasked

    def replaced(
        self, *, message: str | None = None, remedy: str | None = None, details: JsonObject | None = None
    ) -> Failure:
        """The same in other words; `details` are added."""
        return Failure(
            self.attempted,
            self.where,
            self.message if message is None else message,
            self.remedy if remedy is None else remedy,
            status=self.status,
            reason=self.reason,
            details={**self.details, **(details or {})},
            unanswered=self.unanswered,
            unsent=self.unsent,
            retry_after=self.retry_after,
            considered=self.considered,
            unadmitted=self.unadmitted,
            maybe_done=self.maybe_done,
            foreign=self.foreign,
            since=self.since,
            tries=self.tries,
            bare=self.bare if message is None else "",
            announced=self.announced,
            unasked=self.unasked,
        )

    def following(self, before: Failure | None) -> Failure:
        """The same, where somebody has asked on after the one before; None if that was over, or there was none."""
        since, tries = (before.since, before.tries) if before is not None else ("", 0)
        self.since, self.tries = since or self.since, tries + max(1, self.tries)
        return self

    @property
    def in_vain(self) -> str:
        """How often it was tried and since when, for the end of a clause; empty if that is unknown."""
        often = f"tried {self.tries} times" if self.tries > 1 else "in trouble"
        return f"{often} since {self.since}" if self.since else ""

    @property
    def at_the_end(self) -> str:
        """The message, for who has asked on in vain until his time was over."""
        return f"{self.bare.rstrip('.')}, {self.in_vain}" if self.since else self.message

    @property
    def passing(self) -> bool:
        """Whether the same request may well succeed a little later: there was no answer, or one of an ailing server."""
        if self.status is None:
            return self.unanswered and self.reason not in _LASTING
        if self.status == HTTPStatus.NOT_FOUND:
            return self.foreign and not self.unserved
        return self.status == HTTPStatus.TOO_MANY_REQUESTS or self._ailing

    @property
    def gone(self) -> bool:
        """Whether there is no such object, by the API server itself: a proxy's page not found is nobody's end."""
        return self.status == HTTPStatus.NOT_FOUND and not self.foreign

    @property
    def unserved(self) -> bool:
        """Whether the API server does not serve the kind, as it is not installed."""
        return self.gone or (self.status == HTTPStatus.NOT_FOUND and self.reason == NOT_SERVED)

    @property
    def untouched(self) -> bool:
        """Whether the server has certainly not carried it out, and may well do so a little later."""
        if self.status is None:
            return self.unsent and self.passing
        if self.status == HTTPStatus.TOO_MANY_REQUESTS:
            return not self.considered
        return self._ailing and (self.unadmitted or self.retry_after is not None)

    @property
    def ambiguous(self) -> bool:
        """Whether the server may have carried it out: no answer came, or one of a server that fails."""
        return self.passing and not self.untouched and not self.considered

    @property
    def concerns_all(self) -> bool:
        """Whether other requests of the kind would be refused as well: it is about who asks, not about what for.

        Or about fields that the server does not know, as what serves them is too old; or a proxy lets nothing through.
        Authorization says so in words of the API server's own (forbiddenMessage in k8s.io/apiserver,
        endpoints/handlers/responsewriters/errors.go); admission, a webhook or a policy, forbids one object.
        """
        if self.status is not None and self.unsent:
            return True
        if self.status == HTTPStatus.FORBIDDEN:
            return bool(_UNAUTHORIZED.search(self.message)) and not _BY_WEBHOOK.search(self.message)
        return self.status == HTTPStatus.UNAUTHORIZED or self.field_unknown

    @property
    def field_unknown(self) -> bool:
        """Whether a field was sent that the server does not know."""
        return self.status == HTTPStatus.BAD_REQUEST and bool(_UNKNOWN_FIELD.search(self.message))

    @property
    def _ailing(self) -> bool:
        """Whether the answer is one of a server that fails for now: what one cannot do at all it does not learn."""
        if self.status is None or self.status == HTTPStatus.NOT_IMPLEMENTED:
            return False
        return self.status >= HTTPStatus.INTERNAL_SERVER_ERROR

    def to_json(self) -> JsonObject:
        return {
            "attempted": self.attempted,
            "object": self.where,
            "status": self.status,
            "reason": self.reason,
            "server_message": self.message,
            "remedy": self.remedy,
            **self.details,
        }
