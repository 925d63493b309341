# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what the client library raises to a Failure: what went wrong on the way to the API, and what helps.

The library wraps the cause several times over (its own exceptions, urllib3's, ssl's, the system's), differently from
version to version. So the whole chain is looked through, and the innermost exception that is known decides.
"""

from __future__ import annotations

import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from datetime import timezone
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import (
    NAME_UNKNOWN,
    NAME_UNRESOLVED,
    NOT_SERVED,
    Failure,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, embedded
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import brief

try:
    import urllib3.exceptions as urllib3_errors
    from kubernetes.client.exceptions import ApiException
except ImportError:  # AnsibleK8SModule says which library is missing before any of this is used
    TRANSPORT_ERRORS: tuple[type[BaseException], ...] = ()
    _UNCONNECTED: tuple[type[BaseException], ...] = ()
else:
    TRANSPORT_ERRORS = (ApiException, urllib3_errors.HTTPError, OSError)
    # What keeps a connection from coming about, so that nothing was asked.
    _UNCONNECTED = (
        urllib3_errors.NewConnectionError,
        urllib3_errors.ConnectTimeoutError,
        ConnectionRefusedError,
        socket.gaierror,
    )

_NO_SUCH_PATH = "404 page not found"
_TAG = re.compile(r"<[^>]*>")
# What a refusal says whose reason is a rule.
_BUDGET, _BY_WEBHOOK = "DisruptionBudget", "admission webhook"
_BUDGETS = "more than one PodDisruptionBudget"
# Of an admission that came to no end (k8s.io/apiserver, pkg/admission/plugin/webhook): nothing has been done then.
_UNADMITTED = "failed calling webhook"
# By which OpenSSL tells that this side or the other one wants no such connection (SSL_R_* in include/openssl/sslerr.h):
# no TLS at all, none of this kind, or not with this certificate. Anything else may be the end of a server or a proxy.
_REFUSED = re.compile(
    r"WRONG_VERSION_NUMBER|RECORD_LAYER_FAILURE|UNSUPPORTED_PROTOCOL|NO_PROTOCOLS_AVAILABLE|PEM_LIB|KEY_TOO_SMALL"
    r"|ALERT_(PROTOCOL_VERSION|HANDSHAKE_FAILURE|INSUFFICIENT_SECURITY|ACCESS_DENIED|UNKNOWN_CA|\w*CERTIFICATE\w*)"
)
# By which http.client (HTTPConnection._tunnel) tells of a proxy that has understood and refused; not if only for now.
_TUNNEL, _FOR_NOW = re.compile(r"Tunnel connection failed: (4\d\d) (.*)"), ("404", "408", "421", "425", "429")
# X509_V_ERR_* of OpenSSL.
_EXPIRED, _NOT_YET_VALID, _WRONG_HOST, _WRONG_ADDRESS = 10, 9, 62, 64

_TRUST = (
    "Give the certificate authority of the cluster as certificate-authority-data in the kubeconfig or as ca_cert, "
    "and check that the address is really that of the cluster."
)
_CERTIFICATE_REMEDIES = {
    _EXPIRED: "Renew the API server's certificate, and check the clock of this machine.",
    _NOT_YET_VALID: "Check the clock of this machine and of the control plane.",
    _WRONG_HOST: "Use a name that the certificate holds, or add the name in use to the API server's certificate.",
    _WRONG_ADDRESS: "Use a name or address that the certificate holds, or add this one to the server's certificate.",
}
_STATUS_REMEDIES = {
    400: "Check that the server's version is supported.",
    401: "Check the credentials: the client certificate may have expired, or the token be wrong or too old.",
    403: "Grant the permission to the user or service account.",
    404: "Check the name, and that host, kubeconfig and context point to the right cluster.",
    409: "Somebody else writes the object at the same time: try again.",
    410: "Try again.",
    429: "The API server is overloaded: try again later, with a smaller page_size if the task has one.",
    501: "Check that the server's version is supported, and what stands between, such as a proxy or load balancer.",
}
_NETWORK_REMEDY = "Check the address and port, and that the API server runs and is reachable from this machine."
PROVIDER_REMEDY = (
    "Check the identity provider's address and certificate authority in the kubeconfig, and that it is reachable from "
    "this machine."
)
_GRANT_REMEDY = "Log in to the identity provider again, as its refresh token in the kubeconfig may have run out."
_CLIENT_REMEDY = (
    "Check the client's id, secret and address of the identity provider in the kubeconfig, and its settings."
)
# Errors of OAuth 2.0, RFC 6749 section 5.2, and of its library: those that time may mend, and those of settings.
_PASSING_GRANTS = ("missing_token", "server_error", "temporarily_unavailable")
_OF_THE_CLIENT = (
    "invalid_client",
    "unauthorized_client",
    "invalid_request",
    "unsupported_grant_type",
    "insecure_transport",
)
_PROXY_REMEDY = "Check the proxy in the kubeconfig, in the option proxy, or in the environment."
_FOREIGN_REMEDY = (
    "This is no answer of a Kubernetes API server: check what stands between, such as a proxy or load balancer, and "
    "that the address is that of an API server."
)
_CUT_REMEDY = "Try again, and check the API server and what stands between, such as a proxy or load balancer."

Explained = tuple[str, str, str]  # reason, message, remedy


def failure(error: BaseException, attempted: str, where: str, *, always_served: bool = False) -> Failure:
    """What to tell about an error of TRANSPORT_ERRORS. `where`: what to call the server if the error does not say.

    always_served: all API servers know what was asked for, so that who does not is none.
    """
    chain = list(_chain(error))
    where = next(filter(None, map(_address, chain)), where)
    for known in chain:
        if getattr(known, "status", None) and hasattr(known, "body"):
            return _from_answer(known, attempted, where, always_served=always_served)
    if proxy := _refused_by_proxy(chain):
        status, message = int(proxy[1]), f"the proxy on the way answered {proxy[1]}, {brief(proxy[2])}"
        return Failure(attempted, where, message, _PROXY_REMEDY, status=status, reason="ProxyRefused", unsent=True)
    unsent = any(isinstance(known, _UNCONNECTED) for known in chain)
    for cause, explain in _CAUSES:
        for known in reversed(chain):
            if isinstance(known, cause):
                reason, message, remedy = _of_proxy(chain) or explain(known)
                return Failure(attempted, where, message, remedy, reason=reason, unanswered=True, unsent=unsent)
    reason = type(chain[-1]).__name__
    return Failure(attempted, where, _words(error), _NETWORK_REMEDY, reason=reason, unanswered=True, unsent=unsent)


def unreadable(error: Exception, status: int, attempted: str, where: str) -> Failure:
    """What to tell about an answer of which json.loads makes nothing."""
    if isinstance(error, RecursionError):
        return Failure(
            attempted,
            where,
            "an object in the answer nests deeper than can be read",
            "Find it among those that were asked for, and remove it.",
            reason="NestsTooDeep",
        )
    text = error.object.decode(errors="replace") if isinstance(error, UnicodeDecodeError) else getattr(error, "doc", "")
    return not_json(str(text), status, attempted, where)


def ungranted(error: Any, attempted: str, where: str, reason: str) -> Failure:
    """What to tell where an identity provider answers, and gives no token, by an error of OAuth 2.0 or of reading it.

    Of those of OAuth 2.0 some pass, such as an answer without a token. What cannot be read is mostly another site's.
    """
    passes, remedy = False, _CLIENT_REMEDY
    if isinstance(error, KeyError):
        words = f"its answer has no {error.args[0]}"
    elif not hasattr(error, "error"):
        words = "its answer is not the JSON that was asked for"
    else:
        passes = str(error.error) in _PASSING_GRANTS
        remedy = PROVIDER_REMEDY if passes else remedy if str(error.error) in _OF_THE_CLIENT else _GRANT_REMEDY
        words = brief(f"{error.error}: {error.description}" if error.description else str(error.error))
    message = f"the identity provider gives no token: {words}"
    return Failure(attempted, where, message, remedy, reason=reason, unanswered=passes, unsent=True)


def not_json(text: str | None, status: int, attempted: str, where: str) -> Failure:
    """What is none is nobody's answer, such as a page of a proxy that knows no better for a moment.

    text: None for JSON that is none of an API server's.
    """
    message = f"the answer is JSON of something else: status {status}"
    if text is not None:
        # What has begun as JSON may hold a secret.
        words = "JSON with a mistake" if text.lstrip().startswith(("{", "[")) else _first_words(text) or "an empty page"
        message = f"the answer is not JSON: status {status}, {words}"
    return Failure(
        attempted,
        where,
        message,
        "Check that the address is that of an API server, not of a web page or proxy before it.",
        reason="NotJson",
        unanswered=True,
    )


def _of_proxy(chain: list[BaseException]) -> Explained | None:
    """What keeps a request from its proxy says nothing of the server. The proxy's address may hold a password."""
    if not TRANSPORT_ERRORS or not any(isinstance(known, urllib3_errors.ProxyError) for known in chain):
        return None
    if any(isinstance(known, socket.gaierror) and known.errno != socket.EAI_AGAIN for known in chain):
        return NAME_UNKNOWN, "the name of the proxy on the way cannot be resolved", _PROXY_REMEDY
    return "ProxyFailed", "the proxy on the way does not answer as one", _PROXY_REMEDY


def _refused_by_proxy(chain: list[BaseException]) -> re.Match[str] | None:
    """What a proxy answers that lets nobody through to the server, such as one with other credentials; it stays so."""
    found = (_TUNNEL.match(str(known)) for known in chain if isinstance(known, OSError))
    return next((match for match in found if match and match[1] not in _FOR_NOW), None)


def _from_answer(error: Any, attempted: str, where: str, *, always_served: bool) -> Failure:
    """From an answer with a status: a Status object of Kubernetes, or whatever a proxy sends."""
    text = error.body.decode(errors="replace") if isinstance(error.body, bytes) else str(error.body or "")
    body = embedded(text)
    answer: JsonObject = body if isinstance(body, dict) else {}
    # KubeVirt's subresources answer with a Status, too (writeError in pkg/virt-api/rest/subresource.go).
    foreign = error.status == HTTPStatus.NOT_FOUND and answer.get("kind") != "Status"
    is_unserved = foreign and text.strip() == _NO_SUCH_PATH and not always_served
    reason = NOT_SERVED if is_unserved else answer.get("reason") or error.reason or ""
    who = "the API server"
    remedy = _STATUS_REMEDIES.get(error.status, "Look into the API server's log, and try again.")
    if foreign and not is_unserved:
        who, remedy = "something before the API server", _FOREIGN_REMEDY
    message = _said(answer) or (_first_words(text) if not answer else "") or reason or "no explanation"
    return Failure(
        attempted,
        where,
        f"{who} answered {error.status}, {message}",
        remedy,
        status=error.status,
        reason=reason,
        retry_after=_seconds((error.headers or {}).get("Retry-After")),
        considered=_is_considered(answer),
        unadmitted=_UNADMITTED in str(answer.get("message") or ""),
        foreign=foreign,
    )


def _first_words(text: str) -> str:
    """Of what is no answer of an API server, such as a proxy's page: its first line that says something."""
    lines = (" ".join(line.split()) for line in _TAG.sub("\n", text).splitlines())
    return brief(next(filter(None, lines), ""))


def _seconds(text: str | None) -> float | None:
    """Of a Retry-After header, a number or a date (RFC 9110, 10.2.3); None if there is none that can be understood."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        pass
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return (at if at.tzinfo else at.replace(tzinfo=timezone.utc)).timestamp() - time.time()


def _is_considered(answer: JsonObject) -> bool:
    """Whether a webhook has said no, or a disruption budget (pkg/registry/core/pod/storage/eviction.go)."""
    words = str(answer.get("message") or "")
    by_budget = any(cause.get("reason") == _BUDGET for cause in _causes_in(answer))
    return by_budget or _BUDGETS in words or _BY_WEBHOOK in words


def _said(answer: JsonObject) -> str:
    """The message, and causes that it leaves out, such as which disruption budget forbids an eviction."""
    message = str(answer.get("message") or "")
    told = (str(cause.get("message") or "") for cause in _causes_in(answer))
    more = [words for words in told if words not in message]
    return ": ".join([message.rstrip("."), *more]) if more else message


def _causes_in(answer: JsonObject) -> list[JsonObject]:
    """Of a Status. A proxy may answer in JSON of its own, with other details or none."""
    details = answer.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    return [cause for cause in causes if isinstance(cause, dict)] if isinstance(causes, list) else []


def _certificate(error: Any) -> Explained:
    remedy = _CERTIFICATE_REMEDIES.get(error.verify_code, _TRUST)
    return "CertificateInvalid", f"the API server's certificate is not valid, {error.verify_message}", remedy


def _handshake(error: Any) -> Explained:
    remedy = "Check that the address is that of an API server, and that it accepts the client certificate."
    # Other parts of OpenSSL complain of files.
    lasts = error.library not in (None, "SSL") or _REFUSED.search(error.reason or "")
    reason = "TlsFailed" if lasts else "TlsDisturbed"
    return reason, f"no secure connection came about, {error.reason or error}", remedy


def _name(error: Any) -> Explained:
    if error.errno == socket.EAI_AGAIN:
        return NAME_UNRESOLVED, f"the host's name cannot be resolved for now, {error.strerror}", "Check the DNS."
    return NAME_UNKNOWN, f"the host's name cannot be resolved, {error.strerror}", "Check the address and the DNS."


def _refused(error: Any) -> Explained:
    return "ConnectionRefused", "connection refused", _NETWORK_REMEDY


def _timeout(error: Any) -> Explained:
    return "Timeout", "there was no answer in time", f"{_NETWORK_REMEDY} On a slow one raise request_timeout."


def _cut(error: Any) -> Explained:
    return "ConnectionLost", "the connection was lost before the answer was complete", _CUT_REMEDY


def _system(error: Any) -> Explained:
    return type(error).__name__, error.strerror or str(error), _NETWORK_REMEDY


def _causes() -> Iterator[tuple[type[BaseException] | tuple[type[BaseException], ...], Callable[[Any], Explained]]]:
    """Specific ones first: most of these are kinds of OSError."""
    yield ssl.SSLCertVerificationError, _certificate
    yield (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError), _cut
    yield ssl.SSLError, _handshake
    yield socket.gaierror, _name
    yield ConnectionRefusedError, _refused
    yield TimeoutError, _timeout
    if TRANSPORT_ERRORS:
        yield urllib3_errors.TimeoutError, _timeout
        yield urllib3_errors.ProtocolError, _cut
    yield ConnectionError, _cut
    yield OSError, _system


_CAUSES = tuple(_causes())


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and all that it wraps, outermost first, without the failure of another request it came upon."""
    seen: set[int] = set()
    waiting: list[Any] = [error]
    while waiting:
        current = waiting.pop(0)
        if isinstance(current, BaseException) and not isinstance(current, Failure) and id(current) not in seen:
            seen.add(id(current))
            yield current
            waiting += [getattr(current, "reason", None), *current.args, current.__cause__, current.__context__]


def _address(error: Any) -> str | None:
    """The server's address, as far as an error of urllib3 names it."""
    # Some have it as a deprecated property, of what is none.
    pool: Any = vars(error).get("pool")
    return f"{pool.scheme}://{pool.host}:{pool.port}" if hasattr(pool, "scheme") else None


def _words(error: BaseException) -> str:
    return str(error).splitlines()[-1] if str(error) else type(error).__name__
