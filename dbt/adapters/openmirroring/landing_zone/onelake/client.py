"""Azure's clients with the settings for OneLake: endpoints, retries and timeouts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from azure.core.credentials import TokenCredential
from azure.core.pipeline import PipelineRequest, PipelineResponse
from azure.core.pipeline.transport import RequestsTransport
from azure.storage.blob import BlobServiceClient, ContainerClient
from azure.storage.filedatalake import DataLakeServiceClient, FileSystemClient

from dbt.adapters.openmirroring.landing_zone.errors import LandingZoneUnavailableError
from dbt.adapters.openmirroring.landing_zone.onelake.url import OneLakeUrl
from dbt.adapters.openmirroring.rest.azure_requests import Retry

# the version in OneLake's documentation
_API_VERSION = "2021-06-08"

# bytes of one upload request
BLOCK = 8 * 1024 * 1024

# seconds in which a failed request is retried; `Claim` relies on this limit
_RETRY_SECONDS = 90

# more than there can be in this time
_MOST_RETRIES = 1000

_CONDITIONS = {"if-match", "if-none-match", "x-ms-source-if-match"}


@dataclass(frozen=True)
class OneLakeClient:
    """The connection to a workspace, shared by all threads.

    Args:
        files: the client for its DFS API
        blobs: the client for its Blob API
    """

    place: OneLakeUrl
    files: FileSystemClient
    blobs: ContainerClient

    @classmethod
    def connect(cls, place: OneLakeUrl, credential: TokenCredential) -> OneLakeClient:
        """Create the clients. They send no request yet."""
        options: dict[str, Any] = {
            "api_version": _API_VERSION,
            "transport": RequestsTransport(connection_timeout=10, read_timeout=30),
            "retry_policy": _OneLakeRetry(),
            "permit_redirects": False,
            "raw_response_hook": _refuse_ignored_conditions,
            "max_single_put_size": BLOCK,
            "max_block_size": BLOCK,
        }
        url = place.account_url
        files = DataLakeServiceClient(url, credential, **options)
        blobs = BlobServiceClient(url.replace(".dfs.", ".blob.", 1), credential, **options)
        return cls(
            place,
            files.get_file_system_client(place.workspace),
            blobs.get_container_client(place.workspace),
        )


class _OneLakeRetry(Retry):
    """Retries for Azure Storage's pipeline, whose own policy handles neither 429 nor Retry-After.

    Every request of this package can be sent again. If the answer to a successful request is
    lost, the caller recognizes its result in OneLake. Deleting a folder is retried after 409,
    because it fails while Fabric reads the folder (specification, "Drop table").
    """

    def __init__(self) -> None:
        super().__init__(
            retry_total=_MOST_RETRIES,
            retry_connect=_MOST_RETRIES,
            retry_read=_MOST_RETRIES,
            retry_status=_MOST_RETRIES,
            retry_backoff_factor=1,
            retry_backoff_max=15,
            timeout=_RETRY_SECONDS,
        )

    def is_temporary(self, settings: dict[str, Any], response: PipelineResponse[Any, Any]) -> bool:
        answer, method = response.http_response, response.http_request.method
        if answer.status_code == 409 and method == "DELETE":
            return bool(answer.headers.get("x-ms-error-code") != "DirectoryNotEmpty")
        return super().is_temporary(settings, response)

    def send(self, request: PipelineRequest[Any]) -> PipelineResponse[Any, Any]:
        # Storage's pipeline sets these options for its own retry policy. It expects
        # `location_mode` in the response.
        options = request.context.options
        options.pop("hosts", None)
        location = options.pop("location_mode", None)
        response = super().send(request)
        response.http_response.location_mode = location
        return response


def _refuse_ignored_conditions(response: PipelineResponse[Any, Any]) -> None:
    """Raise an error if OneLake has ignored a condition of the request.

    OneLake reports the headers that it ignores (documentation, "OneLake API parity").
    """
    ignored = response.http_response.headers.get("x-ms-rejected-headers", "")
    conditions = _CONDITIONS & {name.strip().lower() for name in ignored.split(",")}
    if conditions:
        raise LandingZoneUnavailableError(
            f"OneLake ignored {', '.join(sorted(conditions))}. Without it, two runs could publish "
            "the same table at once. The publication was stopped."
        )
