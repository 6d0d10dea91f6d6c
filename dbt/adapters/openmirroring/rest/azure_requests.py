"""Requests to REST APIs: a client, retries that keep the reason, and that reason in words."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from math import inf
from typing import Any
from urllib.parse import urlsplit

from azure.core import PipelineClient
from azure.core.credentials import TokenCredential
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ServiceRequestError,
    ServiceRequestTimeoutError,
    ServiceResponseError,
    ServiceResponseTimeoutError,
)
from azure.core.pipeline import PipelineRequest, PipelineResponse
from azure.core.pipeline.policies import (
    BearerTokenCredentialPolicy,
    HeadersPolicy,
    RequestIdPolicy,
    RetryPolicy,
    UserAgentPolicy,
)
from azure.core.pipeline.transport import RequestsTransport
from azure.core.rest import HttpRequest, HttpResponse

from dbt.adapters.openmirroring.__version__ import version
from dbt.adapters.openmirroring.rest import scopes
from dbt.adapters.openmirroring.text.errors import RunError
from dbt.adapters.openmirroring.text.shown import shown

# Seconds in which a name that was never resolved is looked up again. A name that was resolved
# before has the patience of all other failures, because then the network is away for a moment.
_NAME_SECONDS = 5.0

# seconds that are left for the last attempt
_LAST_ATTEMPT = 1.0

# the longest wait before an attempt that a service may ask for, in seconds
_LONGEST_WAIT = 300.0

# Too many requests, and in Fabric no capacity for another Spark ("Concurrency limits and
# queueing"). Such a request was not carried out.
_THROTTLED = (429, 430)


class Gate:
    """The way of all requests to one host: a budget, and a pause while the host asks for one.

    Args:
        budget: the requests in any minute, of which a fifth may come at once
    """

    def __init__(self, budget: float = inf) -> None:
        self._lock = threading.Lock()
        self._interval = 60 / (budget * 4 / 5)
        self._ahead = 60 / 4 if budget < inf else 0
        self._next = self._opens = 0.0

    def wait(self, sleep: Callable[[float], None]) -> None:
        """Wait until a request may be sent, and count it."""
        with self._lock:
            now = time.monotonic()
            self._next = max(self._next, now) + self._interval
            rest = max(self._next - self._ahead, self._opens) - now
        if rest > 0:
            sleep(rest)

    @contextmanager
    def closed(self, seconds: float) -> Iterator[None]:
        """Let the requests of other threads wait too, while this one waits for so many seconds."""
        with self._lock:
            self._opens = opens = max(self._opens, time.monotonic() + seconds)
        try:
            yield
        finally:
            with self._lock:
                if self._opens == opens:
                    self._opens = 0.0


@cache
def gate_to(host: str) -> Gate:
    """Return the gate of this process to a host.

    Fabric allows an identity 200 requests a minute ("Throttling in Microsoft Fabric REST APIs").
    A quarter is left for the user's other programs.
    """
    return Gate(150) if host.endswith("api.fabric.microsoft.com") else Gate()


class Retry(RetryPolicy[Any, Any]):
    """Azure's retries. They end with the last answer of the service, or with the last failure.

    Azure's own policy waits until its time is over, and then raises "Response timeout" or
    "Request timeout", whatever the service has answered. It does not repeat every throttled
    request.

    Args:
        most_attempts: after so many attempts, only throttled requests are repeated

    Attributes:
        gate: lets each attempt pass; None without a budget
    """

    def __init__(self, most_attempts: float = inf, **options: Any) -> None:
        super().__init__(**options)
        self._most_attempts = most_attempts
        self._resolved: set[str] = set()
        self.gate: Gate | None = None

    def send(self, request: PipelineRequest[Any]) -> PipelineResponse[Any, Any]:
        if self.gate:
            transport: Any = request.context.transport
            self.gate.wait(transport.sleep)
        return super().send(request)

    def sleep(
        self,
        settings: dict[str, Any],
        transport: Any,
        response: PipelineResponse[Any, Any] | None = None,
    ) -> None:
        if not self.gate:
            return super().sleep(settings, transport, response)
        asked = self.get_retry_after(response) if response else None
        with self.gate.closed(asked or 0):
            super().sleep(settings, transport, response)
        return self.gate.wait(transport.sleep)

    def configure_retries(self, options: dict[str, Any]) -> dict[str, Any]:
        settings = super().configure_retries(options)
        settings["started"] = time.monotonic()
        settings["seconds"] = settings["timeout"]
        return settings

    def increment(
        self,
        settings: dict[str, Any],
        response: PipelineRequest[Any] | PipelineResponse[Any, Any] | None = None,
        error: Exception | None = None,
    ) -> bool:
        host = unresolved_host(error) if error else None
        is_unknown = host is not None and host not in self._resolved
        settings["seconds"] = _NAME_SECONDS if is_unknown else settings["timeout"]
        return self._rest(settings) > 0 and super().increment(settings, response, error)

    def is_retry(self, settings: dict[str, Any], response: PipelineResponse[Any, Any]) -> bool:
        self._resolved.add(str(urlsplit(response.http_request.url).hostname))
        wait = self.get_retry_after(response) or 0
        longest = min(_LONGEST_WAIT, self._rest(settings))
        return wait <= longest and self.is_temporary(settings, response)

    def is_temporary(self, settings: dict[str, Any], response: PipelineResponse[Any, Any]) -> bool:
        """Check whether the same request may succeed later."""
        if response.http_response.status_code in _THROTTLED:
            return True
        # a request without methods to repeat starts something with each attempt
        may_repeat = settings["methods"] and len(settings["history"]) < self._most_attempts
        return bool(may_repeat and super().is_retry(settings, response))

    def get_backoff_time(self, settings: dict[str, Any]) -> float:
        tried = len(settings["history"])
        longest = min(settings["max_backoff"], settings["backoff"] * 2**tried)
        return min(random.uniform(0, longest), self._rest(settings))

    def _rest(self, settings: dict[str, Any]) -> float:
        """Return the seconds in which another attempt may begin."""
        deadline = settings["started"] + settings["seconds"] - _LAST_ATTEMPT
        return float(deadline - time.monotonic())


def reason(error: AzureError) -> str:
    """Return in one sentence why a request failed, in the words of the service if it answered."""
    if isinstance(error, HttpResponseError) and error.response is not None:
        headers = getattr(error.response, "headers", {})  # the type in azure-core has none
        code = headers.get("x-ms-error-code")
        status = ", ".join(filter(None, (f"HTTP {error.status_code}", code)))
        return f"{_first_line(error)} ({status})."
    host = unresolved_host(error)
    if host:
        return f"the name {shown(host)} cannot be resolved."
    if isinstance(error, (ServiceRequestTimeoutError, ServiceResponseTimeoutError)):
        return "there was no answer in time."
    is_of_network = isinstance(error, (ServiceRequestError, ServiceResponseError))
    return f"{_first_line(_innermost(error) if is_of_network else error)}."


def unresolved_host(error: Exception) -> str | None:
    """Return the host whose name could not be resolved; None if the error is another one."""
    chain = list(_chain(error))
    if not any(isinstance(each, socket.gaierror) for each in chain):
        return None
    hosts = (_host(each) for each in chain)
    return next(filter(None, hosts), "of the host")


def _host(error: BaseException) -> str | None:
    """Return the host of a request, from an error of requests or of urllib3."""
    url = getattr(getattr(error, "request", None), "url", None)
    if url:
        return urlsplit(str(url)).hostname
    host = getattr(getattr(error, "conn", None), "host", None)
    return str(host) if host else None


def _innermost(error: BaseException) -> BaseException:
    *_, last = _chain(error)
    return last if str(last) else error


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and the errors in it: Azure, requests and urllib3 wrap those below them."""
    seen: list[BaseException] = []
    found: BaseException | None = error
    while found is not None and found not in seen:
        yield found
        seen.append(found)
        inside = (getattr(found, name, None) for name in ("inner_exception", "reason"))
        below = (*inside, *found.args[:1], found.__cause__, found.__context__)
        found = next((each for each in below if isinstance(each, BaseException)), None)


def _first_line(error: BaseException) -> str:
    lines = str(getattr(error, "message", None) or error).strip().splitlines()
    return shown(lines[0] if lines else type(error).__name__).rstrip(".")


class RestError(RunError):
    """A REST API refused a request, or did not answer.

    Args:
        status: the HTTP status; None without an answer
    """

    def __init__(self, text: str, status: int | None = None, *, code: str = "") -> None:
        super().__init__(text, code=code)
        self.status = status


class RestClient(PipelineClient[HttpRequest, HttpResponse]):
    """A client of a REST API. It follows no redirects.

    Args:
        url: the URL of the API
        place: the API in messages
        retry: which requests are sent again, and when
        credential: gets Fabric's tokens; None if the API needs none
        headers: headers of every request
        refused, unanswered: the errors for a request without a token, and without an answer
    """

    def __init__(
        self,
        url: str,
        place: str,
        retry: Retry,
        credential: TokenCredential | None,
        headers: Mapping[str, str] | None = None,
        refused: type[RestError] = RestError,
        unanswered: type[RestError] = RestError,
    ) -> None:
        retry.gate = gate_to(str(urlsplit(url).hostname))
        self._place = place
        self._refused = refused
        self._unanswered = unanswered
        policies: list[Any] = [
            RequestIdPolicy(),
            UserAgentPolicy(f"dbt-openmirroring/{version}"),
            HeadersPolicy({**(headers or {})}),
            retry,
        ]
        if credential:
            policies.append(BearerTokenCredentialPolicy(credential, scopes.FABRIC))
        transport = RequestsTransport(connection_timeout=10, read_timeout=60)
        super().__init__(url, transport=transport, policies=policies)

    def call(self, request: HttpRequest, doing: str, **options: Any) -> HttpResponse:
        """Send a request.

        Args:
            doing: what was not done if the request fails; the message begins with it
            options: the options of the retries

        Raises:
            RestError: if there is no token, or no answer
        """
        try:
            return self.send_request(request, **options)
        except ClientAuthenticationError as error:
            raise self._refused(
                f"{doing}: there is no token for Fabric. {shown(error.message)} Check "
                "`authentication` in the profile.",
                401,
                code="OM702",
            ) from None
        except AzureError as error:
            message = f"{doing}: {self._place} cannot be reached: {reason(error)}"
            code = "OM704" if unresolved_host(error) else ""
            raise self._unanswered(message, code=code) from None


def body_of(response: HttpResponse) -> dict[str, Any]:
    """Return the JSON object of an answer; empty if there is none."""
    try:
        return json_object(response.json())
    except (ValueError, RecursionError):
        return {}


def json_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def error_text(error: Any) -> str:
    """Return the error of Fabric or Apache Livy (`msg`) in one line; empty if there is none."""
    error = json_object(error)
    code = error.get("errorCode") or error.get("code")
    words = (code, error.get("message") or error.get("msg"))
    more = [error_text(detail) for detail in error.get("moreDetails") or ()]
    return shown("; ".join([": ".join(str(word) for word in words if word), *more]))
