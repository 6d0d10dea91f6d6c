"""Requests to Fabric's REST API, and its errors.

The rules come from "Microsoft Fabric REST API", its articles "Long running operations",
"Pagination" and "Throttling".
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

from azure.core.credentials import TokenCredential
from azure.core.rest import HttpRequest, HttpResponse

from dbt.adapters.openmirroring.rest.azure_requests import (
    RestClient,
    RestError,
    Retry,
    body_of,
    error_text,
    json_object,
)
from dbt.adapters.openmirroring.service.reports import (
    PAUSE,
    Clock,
    ServiceError,
    ServiceUnavailableError,
)
from dbt.adapters.openmirroring.text.shown import shown

# Tokens are sent only to this host: URLs in answers are never followed.
API = "https://api.fabric.microsoft.com/v1"

# seconds that an operation may take
TIMEOUT = 600.0

# the limit for the pages of a list; a page has about a hundred elements
_MOST_PAGES = 1000

NOT_FOUND = (
    "Check the workspace and the item in `landing_zone`, and that the identity may see them."
)

_WAYS_OUT = {
    "CapacityNotActive": "The capacity of the workspace is paused. Resume it, or assign the "
    "workspace to another one; then select `Resume replication` on the page of the mirrored "
    "database in the Fabric portal.",
    401: "Fabric does not accept the token. Check `authentication` in the profile.",
    403: "The identity needs the right for it in the workspace, and a service principal also the "
    "tenant setting `Service principals can use Fabric APIs`.",
    404: NOT_FOUND,
    429: "Fabric throttles this identity. Run again later, or with fewer tables at once.",
}


class FabricError(RestError, ServiceError):
    """Fabric's REST API refused a request, or did not answer."""


class FabricUnavailableError(FabricError, ServiceUnavailableError):
    """Fabric's REST API does not answer now."""


class FabricApi:
    """Fabric's REST API, with the rights of an identity.

    Every method raises FabricError if Fabric refuses a request or cannot be reached. The message
    begins with the argument `doing`, which says what was not done.

    Args:
        credential: the credential to get tokens from
        clock: the clock to wait for Fabric with
    """

    def __init__(self, credential: TokenCredential, clock: Clock = time) -> None:
        self._clock = clock
        self._client = RestClient(
            API,
            str(urlsplit(API).hostname),
            Retry(retry_status=5),
            credential,
            refused=FabricError,
            unanswered=FabricUnavailableError,
        )

    def pages(self, method: str, path: str, key: str, doing: str) -> Iterator[dict[str, Any]]:
        """Yield the elements of all pages of a list.

        Args:
            key: the name of the list in a page

        Raises:
            FabricError: if the list does not end
        """
        query = ""
        seen: set[str] = set()
        while query not in seen and len(seen) < _MOST_PAGES:
            seen.add(query)
            body = self.ask(method, f"{path}{query}", doing)
            elements = body.get(key)
            yield from map(json_object, elements if isinstance(elements, list) else ())
            query = _continuation(body)
            if not query:
                return
        raise FabricUnavailableError(
            f"{doing}: after {len(seen):,} pages, Fabric names "
            f"{'one that it has sent before' if query in seen else 'still another one'}. "
            "Run again later."
        )

    def ask(self, method: str, path: str, doing: str) -> dict[str, Any]:
        """Send a request that changes nothing. So it can be retried after any failure."""
        return body_of(self._answer(method, path, doing))

    def run(
        self, path: str, doing: str, body: Any = None, has_result: bool = False
    ) -> dict[str, Any]:
        """Send a request that changes something, and wait until its operation has ended.

        Args:
            has_result: whether a long running operation has a result when it has ended

        Returns:
            the result of a long running operation that has one; otherwise the answer
        """
        response = self._send(HttpRequest("POST", f"{API}/{path}", json=body), doing)
        id_ = response.headers.get("x-ms-operation-id")
        if response.status_code == 202 and id_:
            # the URL in the header `Location` is not used, because it may name another host
            operation = f"operations/{quote(id_, safe='')}"
            self._wait(operation, doing)
            if has_result:
                return self.ask("GET", f"{operation}/result", doing)
        return body_of(response)

    def _wait(self, operation: str, doing: str) -> None:
        """Wait until a long running operation has ended."""
        deadline = self._clock.monotonic() + TIMEOUT
        while self._clock.monotonic() < deadline:
            response = self._answer("GET", operation, doing)
            status = body_of(response).get("status")
            if status == "Succeeded":
                return
            if status == "Failed":
                raise _refusal(doing, response)
            seconds = response.headers.get("Retry-After", "")
            self._clock.sleep(float(seconds) if seconds.isdigit() else PAUSE)
        raise FabricError(
            f"{doing} within {TIMEOUT / 60:g} minutes. It may be later: look at its page in "
            "the Fabric portal, and repeat the operation."
        )

    def _answer(self, method: str, path: str, doing: str) -> HttpResponse:
        request = HttpRequest(method, f"{API}/{path}")
        return self._send(request, doing, retry_on_methods=frozenset(("GET", "POST")))

    def _send(self, request: HttpRequest, doing: str, **options: Any) -> HttpResponse:
        response = self._client.call(request, doing, **options)
        if response.status_code >= 300:
            raise _refusal(doing, response)
        return response


def _continuation(body: dict[str, Any]) -> str:
    """Return the query of a list's next page, with its question mark; empty after the last one.

    The rest of the URL is not used, because it may name any host. The separate continuation token
    is not used, because it is already encoded.
    """
    try:
        following = urlsplit(str(body.get("continuationUri") or "")).query
    except ValueError:  # not a URL
        return ""
    return f"?{following}" if following else ""


def _refusal(doing: str, response: HttpResponse) -> FabricError:
    body = body_of(response)
    error = json_object(body.get("error")) or body
    code, status = str(error.get("errorCode") or error.get("code") or ""), response.status_code
    told = error_text(error) or f"HTTP {status} {shown(response.reason)}"
    request = error.get("requestId") or response.headers.get("RequestId")
    way_out = _WAYS_OUT.get(code) or _WAYS_OUT.get(status) or ""
    if status >= 500:
        way_out = "Fabric has an internal problem. Run again later."
    identified = f" (request {shown(request)})" if request else ""
    is_temporary = status >= 500 or status in (408, 429)
    error_class = FabricUnavailableError if is_temporary else FabricError
    return error_class(
        f"{doing}. Fabric says {told.rstrip('.')}{identified}. {way_out}".rstrip(), status
    )
