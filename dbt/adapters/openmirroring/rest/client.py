"""A client of a REST API with JSON: Fabric's, or that of Livy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from azure.core import PipelineClient
from azure.core.credentials import TokenCredential
from azure.core.exceptions import AzureError, ClientAuthenticationError
from azure.core.pipeline.policies import (
    BearerTokenCredentialPolicy,
    HeadersPolicy,
    RequestIdPolicy,
    UserAgentPolicy,
)
from azure.core.pipeline.transport import RequestsTransport
from azure.core.rest import HttpRequest, HttpResponse

from dbt.adapters.openmirroring.__version__ import version
from dbt.adapters.openmirroring.rest import scopes
from dbt.adapters.openmirroring.rest.azure_requests import Retry, reason
from dbt.adapters.openmirroring.text.errors import RunError
from dbt.adapters.openmirroring.text.shown import shown


class RestError(RunError):
    """A REST API refused a request, or did not answer.

    Args:
        status: the HTTP status; None without an answer
    """

    def __init__(self, msg: str, status: int | None = None) -> None:
        super().__init__(msg)
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
            ) from None
        except AzureError as error:
            message = f"{doing}: {self._place} cannot be reached: {reason(error)}"
            raise self._unanswered(message) from None


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
