"""Requests to Fabric's REST API, and its errors.

The rules come from "Microsoft Fabric REST API", its articles "Long running operations",
"Pagination" and "Throttling".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import quote, urlsplit

from azure.core.credentials import TokenCredential
from azure.core.exceptions import AzureError, HttpResponseError
from azure.core.polling import LROPoller
from azure.core.polling.base_polling import (
    LROBasePolling,
    OperationResourcePolling,
    StatusCheckPolling,
)
from azure.core.rest import HttpRequest, HttpResponse

from dbt.adapters.openmirroring.rest.azure_requests import Retry
from dbt.adapters.openmirroring.rest.client import (
    RestClient,
    RestError,
    body_of,
    error_text,
    json_object,
)
from dbt.adapters.openmirroring.service.reports import PAUSE, ServiceError, ServiceUnavailableError
from dbt.adapters.openmirroring.text.shown import shown

# Tokens are sent only to this host: URLs in answers are never followed.
API = "https://api.fabric.microsoft.com/v1"

# seconds that an operation may take
TIMEOUT = 600.0

# the header with the id of a long running operation
_OPERATION_ID = "x-ms-operation-id"

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

    Args:
        credential: the credential to get tokens from

    Every method raises FabricError if Fabric refuses a request or cannot be reached. The message
    begins with the argument `doing`, which says what was not done.
    """

    def __init__(self, credential: TokenCredential) -> None:
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
        options = {"retry_on_methods": frozenset(("GET", "POST"))}
        request = HttpRequest(method, f"{API}/{path}")
        return body_of(self._send(request, doing, **options).http_response)

    def run(
        self, path: str, doing: str, body: Any = None, has_result: bool = False
    ) -> dict[str, Any]:
        """Send a request that changes something, and wait until its operation has ended.

        Args:
            has_result: whether a long running operation has a result when it has ended

        Returns:
            the result of a long running operation that has one; otherwise the answer
        """
        initial = self._send(HttpRequest("POST", f"{API}/{path}", json=body), doing)
        polling: LROBasePolling[None, Any, Any] = LROBasePolling(
            PAUSE, lro_algorithms=[_Operation(), StatusCheckPolling()]
        )
        try:
            poller: LROPoller[None] = LROPoller(self._client, initial, lambda _: None, polling)
            poller.wait(TIMEOUT)
        except HttpResponseError as error:
            raise _refusal(doing, cast(HttpResponse, error.response)) from None
        except AzureError as error:
            raise self._client.unreachable(doing, error) from None
        if not poller.done():
            raise FabricError(
                f"{doing} within {TIMEOUT / 60:g} minutes. It may be later: look at its page in "
                "the Fabric portal, and repeat the operation."
            )
        operation = initial.http_response.headers.get(_OPERATION_ID)
        if has_result and operation and initial.http_response.status_code == 202:
            return self.ask("GET", f"operations/{quote(operation, safe='')}/result", doing)
        return body_of(initial.http_response)

    def _send(self, request: HttpRequest, doing: str, **options: Any) -> Any:
        response = self._client.call(request, doing, **options)
        if response.http_response.status_code >= 300:
            raise _refusal(doing, response.http_response)
        return response


class _Operation(OperationResourcePolling[Any, Any]):
    """The polling of a long running operation by its id.

    The URL in the header `Location` is not used, because it may name another host.
    """

    def __init__(self) -> None:
        # no final request to `Location`: `run` gets the result by the id of the operation
        options = {"final-state-via": "operation-location"}
        super().__init__(_OPERATION_ID, lro_options=options)

    def can_poll(self, pipeline_response: Any) -> bool:
        accepted = pipeline_response.http_response.status_code == 202
        return accepted and super().can_poll(pipeline_response)

    def get_polling_url(self) -> str:
        return f"{API}/operations/{super().get_polling_url()}"


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
