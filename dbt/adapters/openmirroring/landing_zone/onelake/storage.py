"""A landing zone in OneLake, accessed with the clients of Azure Storage.

Whole files are read and written with the Blob API, which OneLake supports too: a file appears as
a whole or not at all. Files are listed, renamed and deleted with the DFS API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import md5
from operator import attrgetter
from typing import IO, Any, cast
from urllib.parse import quote

import fsspec
from azure.core import MatchConditions
from azure.core.credentials import TokenCredential
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.core.pipeline import PipelineRequest, PipelineResponse
from azure.core.pipeline.transport import HttpTransport, RequestsTransport
from azure.storage.blob import BlobServiceClient, ContainerClient, ContentSettings
from azure.storage.filedatalake import DataLakeServiceClient, FileSystemClient

from dbt.adapters.openmirroring.landing_zone.errors import (
    ConcurrentPublicationError,
    LandingZoneUnavailableError,
    PathExistsError,
)
from dbt.adapters.openmirroring.landing_zone.onelake.claim import (
    ANSWERING,
    CLAIM,
    CONNECTING,
    EXPIRY,
    RETRYING,
    Claim,
)
from dbt.adapters.openmirroring.landing_zone.onelake.url import OneLakeUrl
from dbt.adapters.openmirroring.landing_zone.storage import (
    MAX_RECORD,
    Entry,
    Readable,
    below_root,
    components,
    too_large,
)
from dbt.adapters.openmirroring.rest.azure_requests import Retry, reason, unresolved_host
from dbt.adapters.openmirroring.text.shown import shown, shown_url

# the version in OneLake's documentation
_API_VERSION = "2021-06-08"

# bytes of one upload request
BLOCK = 8 * 1024 * 1024

# more than there can be in the time for them
_MOST_RETRIES = 1000

_CONDITIONS = {"if-match", "if-none-match", "x-ms-source-if-match"}

# parallel uploads, and attempts for files that failed
_UPLOADS = 4
_ROUNDS = 3

_WAITING = (
    "{} is held by another run, or by one that was killed: waiting up to "
    f"{EXPIRY / 60:g} minutes to see which."
)

# checks, before each attempt of a request of this thread, whether it may be sent
_may_send: ContextVar[Callable[[], object]] = ContextVar("may_send", default=bool)

# called with the bytes uploaded so far, and the bytes to upload in total
Progress = Callable[[int, int], None]

# the entries of folders, by the paths of the folders
ByFolder = dict[str, list[Entry]]


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
        transport = RequestsTransport(connection_timeout=CONNECTING, read_timeout=ANSWERING)
        options: dict[str, Any] = {
            "api_version": _API_VERSION,
            "transport": _CheckedTransport(transport),
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
    because it fails while Fabric reads the folder (specification, "Drop table"). Which status it
    has then is documented nowhere, so 423 and the codes of a lease count too.
    """

    def __init__(self) -> None:
        super().__init__(
            retry_total=_MOST_RETRIES,
            retry_connect=_MOST_RETRIES,
            retry_read=_MOST_RETRIES,
            retry_status=_MOST_RETRIES,
            retry_backoff_factor=1,
            retry_backoff_max=15,
            timeout=RETRYING,
        )

    def is_temporary(self, settings: dict[str, Any], response: PipelineResponse[Any, Any]) -> bool:
        answer, method = response.http_response, response.http_request.method
        code = answer.headers.get("x-ms-error-code", "")
        if method == "DELETE" and (answer.status_code in (409, 423) or code.startswith("Lease")):
            return bool(code != "DirectoryNotEmpty")
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


class _CheckedTransport(HttpTransport[Any, Any]):
    """A transport that asks before each attempt. The SDK asks for tokens before it sends one."""

    def __init__(self, transport: RequestsTransport) -> None:
        self._transport = transport

    def open(self) -> None:
        self._transport.open()

    def close(self) -> None:
        self._transport.close()

    def __exit__(self, *_error: object) -> None:
        self.close()

    def send(self, request: Any, **options: Any) -> Any:
        _may_send.get()()
        return self._transport.send(request, **options)


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


class StagingFolder:
    """A folder that is shared with what computes the rows.

    Args:
        url: the URL of the folder, in a scheme that both sides know, such as file, s3a or gs

    Raises:
        ImportError: if a package that fsspec needs for this scheme is not installed
        ValueError: if fsspec does not know this scheme
    """

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        # the other side writes files too, so a cached listing may be outdated
        self._files, root = fsspec.url_to_fs(self._url, use_listings_cache=False)
        self._root = str(root).rstrip("/")

    def url(self, path: str) -> str:
        """Return the URL of a path in the folder."""
        return f"{self._url}/{path}"

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the sizes in bytes of the data files in a subfolder, by name.

        Raises:
            OSError: if the subfolder does not exist or cannot be read
        """
        entries = self._files.ls(f"{self._root}/{folder}", detail=True)
        sizes = {
            str(entry["name"]).rpartition("/")[2]: int(entry["size"])
            for entry in entries
            if entry["type"] == "file"
        }
        return {name: size for name, size in sorted(sizes.items()) if name[:1] not in "._"}

    def open(self, path: str) -> IO[bytes]:
        return cast(IO[bytes], self._files.open(f"{self._root}/{path}", "rb"))

    def create(self, path: str) -> IO[bytes]:
        """Open a new file for writing, and create its folder if needed.

        Raises:
            OSError: if the file cannot be created
        """
        whole = f"{self._root}/{path}"
        self._files.makedirs(whole.rpartition("/")[0], exist_ok=True)
        return cast(IO[bytes], self._files.open(whole, "wb"))

    def clear(self, folder: str) -> None:
        """Remove a subfolder with its content. Errors of the file system are ignored."""
        with suppress(OSError):
            self._files.rm(f"{self._root}/{folder}", recursive=True)


@dataclass(frozen=True)
class OneLakeFile:
    """A file in OneLake. The MD5 is None if its writer sent none."""

    etag: str
    size: int
    md5: bytes | None


@dataclass(frozen=True)
class ListedFiles:
    """The files of a landing zone that were there when it was listed. Implements `Readable`.

    Args:
        storage: the storage that reads a file
        folders: the entries of all folders
    """

    storage: Readable
    folders: ByFolder

    def list(self, folder: str) -> list[Entry]:
        return self.folders.get(folder, [])

    def read(self, path: str) -> bytes | None:
        folder, _, name = path.rpartition("/")
        is_there = any(entry.name == name for entry in self.list(folder))
        return self.storage.read(path) if is_there else None


class OneLakeStorage:
    """A storage in OneLake. Implements `Storage`.

    Each publication has its own object, because the object keeps the claims of the publication.

    Args:
        staging: the folder with files for upload; None if they are written to OneLake
        progress: called with the progress of uploads
        tell: called with a message for the user
    """

    def __init__(
        self,
        client: OneLakeClient,
        staging: StagingFolder | None = None,
        progress: Progress | None = None,
        tell: Callable[[str], object] = str,
    ) -> None:
        self._client = client
        self._files = client.files
        self._blobs = client.blobs
        self._staging = staging
        self._progress = progress
        self._tell = tell
        self._claims: list[Claim] = []
        self._touched: list[str] = []
        """The paths of the changes that were begun, and of folders that were found empty."""

    def url(self, path: str) -> str:
        place = "/".join(components(path))
        if self._staging:
            return self._staging.url(place)
        return f"{self._client.place.files_url}/{place}"

    def collect(self, folder: str) -> Sequence[Entry]:
        return self._upload(folder, self._staging) if self._staging else self.list(folder)

    def list(self, folder: str) -> list[Entry]:
        return self._list(folder, recursive=False).get(folder, [])

    def at_once(self, folder: str = "") -> Readable:
        return ListedFiles(self, self._list(folder, recursive=True))

    def _list(self, folder: str, recursive: bool) -> ByFolder:
        """List a folder, or all folders below it too.

        OneLake was seen to stop a recursive listing after some levels, so folders without content
        are listed again on their own.
        """
        with self._explained("list", folder):
            try:
                listed = list(self._files.get_paths(self._path(folder), recursive=recursive))
            except ResourceNotFoundError:
                return {}
        if not listed:
            self._touched.append(folder)  # a run that could not remove it has left it
        # if the path has GUIDs, OneLake may return names with another prefix of the same depth
        depth = self._client.place.root.count("/") + 1
        folders: ByFolder = {}
        for item in listed:
            *parents, name = item.name.split("/")[depth:]
            size = 0 if item.is_directory else item.content_length
            if not name.startswith(CLAIM):
                entry = Entry(name, size, item.is_directory)
                folders.setdefault("/".join(parents), []).append(entry)
        below = [
            f"{path}/{entry.name}" if path else entry.name
            for path, entries in folders.items()
            for entry in entries
            if recursive and entry.is_folder
        ]
        for path in below:
            if path not in folders:
                folders |= self._list(path, recursive=True)
        return {path: sorted(each, key=attrgetter("name")) for path, each in folders.items()}

    def read(self, path: str) -> bytes | None:
        with self._explained("read", path):
            try:
                download = self._blobs.get_blob_client(self._path(path)).download_blob()
            except ResourceNotFoundError:
                return None
            if download.size > MAX_RECORD:
                raise too_large(f"{path} in {self._where}")
            return download.readall()

    def write(self, path: str, content: bytes) -> None:
        with self._explained("write", path):
            self._put(path, content, overwrite=True)

    def create(self, path: str, content: bytes) -> None:
        with self._explained("write", path):
            try:
                self._put(path, content, overwrite=False)
            except (ResourceExistsError, ResourceModifiedError):
                # Every created content is unique. So the same content means that an earlier
                # attempt succeeded, and only its answer was lost.
                if self.read(path) != content:
                    raise PathExistsError(
                        f"{path} already exists in {self._where}. It was left as it is."
                    ) from None

    def rename(self, source: str, target: str) -> None:
        with self._explained("rename a file to", target):
            staged = self._look(source)
            if not staged:
                raise LandingZoneUnavailableError(f"{source} is not in {self._where}: it is gone.")
            # in case OneLake silently ignores the condition of the rename
            if self._look(target):
                raise self._exists(target)
            if not self._move(source, target, staged):
                # a rename does not create the target folder
                folder = target.rpartition("/")[0]
                with self._change(folder):
                    self._files.create_directory(self._path(folder))
                if not self._move(source, target, staged):
                    raise LandingZoneUnavailableError(
                        f"Cannot rename {source} to {target} in {self._where}: somebody else has "
                        "changed it. It was not published. Run again."
                    )

    def touch(self, path: str, after: int) -> int:  # noqa: ARG002 - of Storage
        raise LandingZoneUnavailableError(
            f"Cannot give {path} in {self._where} a time: OneLake has no request for that. Set "
            "`file_detection: sequential`."
        )

    def flush(self, folder: str, files: Sequence[str] = ()) -> None:
        """Do nothing: OneLake answers only after it has stored a change."""

    def delete(self, path: str) -> None:
        below_root(path)  # raises for the landing zone itself
        with (
            self._explained("delete", path),
            suppress(ResourceNotFoundError),
            self._change(path),
        ):
            # this deletes a file too: other drivers send the same request for files
            self._files.get_directory_client(self._path(path)).delete_directory()

    @contextmanager
    def lock(self, folder: str) -> Iterator[None]:
        """Hold a folder with a file beside it. `Claim` explains why this is safe."""
        *above, name = below_root(folder)
        file = self._blobs.get_blob_client(self._path("/".join((*above, f"{CLAIM}{name}"))))
        claim = Claim(file)
        with self._explained("lock", folder):
            if not claim.take(lambda: self._tell(_WAITING.format(f"{self._where}/{folder}"))):
                raise ConcurrentPublicationError(
                    f"Another run holds {folder} in {self._where}: it is publishing this table "
                    "now. Nothing was changed; run again when it has ended.",
                    code="OM501",
                )
        try:
            self._claims.append(claim)
            self._clear_staging(folder)
            yield
        finally:
            self._free(claim, folder)

    def _free(self, claim: Claim, folder: str) -> None:
        """Release the claim on a folder, even if the cleanup before it fails."""
        try:
            # if the claim is lost, another run may have staged files there
            with suppress(ConcurrentPublicationError):
                claim.check()
                self._clear_staging(folder)
        finally:
            self._claims.remove(claim)
            claim.release()
            if any(f"{path}/".startswith(f"{folder}/") for path in self._touched):
                with suppress(AzureError):  # the folder is not empty
                    self._files.get_file_client(self._path(folder)).delete_file(recursive=False)

    @property
    def _where(self) -> str:
        place = self._client.place
        return f"{place.account_url}/{place.workspace}/{place.root}"

    def _path(self, path: str) -> str:
        return "/".join((self._client.place.root, *components(path)))

    def _clear_staging(self, folder: str) -> None:
        """Remove the files that this run, or a killed one, has staged for upload."""
        if self._staging:
            self._staging.clear(folder)

    @contextmanager
    def _change(self, path: str) -> Iterator[None]:
        """Send the requests of this thread only as long as this run holds its tables."""

        def check() -> None:
            for claim in self._claims:
                claim.check()

        before = _may_send.set(check)
        self._touched.append(path)
        try:
            yield
        finally:
            _may_send.reset(before)

    def _put(self, path: str, content: bytes, **options: Any) -> None:
        digest = md5(content, usedforsecurity=False).digest()
        with self._change(path):
            self._blobs.upload_blob(
                self._path(path),
                content,
                # OneLake refuses content damaged in transit, and stores the digest with the file
                validate_content=True,
                content_settings=ContentSettings(content_md5=bytearray(digest)),
                **options,
            )

    def _move(self, source: str, target: str, staged: OneLakeFile) -> bool:
        """Move a file. Return False if it is still at the source, and the target is missing."""
        # the client decodes the source name once too often
        file = self._files.get_file_client(quote(self._path(source)))
        try:
            with self._change(source):
                file.rename_file(
                    f"{self._client.place.workspace}/{self._path(target)}",
                    match_condition=MatchConditions.IfMissing,
                    source_etag=staged.etag,
                    source_match_condition=MatchConditions.IfNotModified,
                )
        except (ResourceExistsError, ResourceModifiedError, ResourceNotFoundError):
            # an earlier attempt may have succeeded, although its answer was lost
            there, left = self._look(target), self._look(source)
            if not there and not left:
                raise
            # a rename may change the ETag
            if there and (left or (there.size, there.md5) != (staged.size, staged.md5)):
                raise self._exists(target) from None
            return not left
        return True

    def _look(self, path: str) -> OneLakeFile | None:
        try:
            properties = self._blobs.get_blob_client(self._path(path)).get_blob_properties()
        except ResourceNotFoundError:
            return None
        digest = properties.content_settings.content_md5
        return OneLakeFile(properties.etag, properties.size, bytes(digest) if digest else None)

    def _exists(self, path: str) -> PathExistsError:
        return PathExistsError(
            f"{path} already exists in {self._where} with other content. It was left as it is."
        )

    def _upload(self, folder: str, staging: StagingFolder) -> Sequence[Entry]:
        """Upload the files that are staged, and list them.

        Each block is retried on its own. A file appears only with its last block. Files that do
        not appear with their size are uploaded again.
        """
        try:
            sizes = staging.sizes(folder)
            files = list(sizes)
            with self._explained("upload files to", folder):
                for _ in range(_ROUNDS):
                    failures = self._upload_files(folder, files, sizes, staging)
                    landed = self.list(folder)
                    names = {each.name for each in landed if sizes.get(each.name) == each.size}
                    files = [name for name in files if name not in names]
                    if not files:
                        return landed
                if failures:
                    raise failures[-1]
        except OSError as error:
            where, why = shown_url(staging.url(folder)), error.strerror or error
            raise LandingZoneUnavailableError(
                f"Cannot read what Spark has written to {where}: {why}. `staging_location` must "
                "be a folder that Spark and dbt share."
            ) from error
        raise LandingZoneUnavailableError(
            f"{folder}/{files[0]} is not in {self._where} with the {sizes[files[0]]} bytes that "
            f"it has in {shown_url(staging.url(folder))}. Nothing was published; run again."
        )

    def _upload_files(
        self, folder: str, files: Sequence[str], sizes: dict[str, int], staging: StagingFolder
    ) -> Sequence[AzureError]:
        """Upload files in parallel, and return the errors."""
        sent = sizes | dict.fromkeys(files, 0)

        def tell(name: str, size: int) -> None:
            sent[name] = size
            if self._progress:
                self._progress(sum(list(sent.values())), sum(sizes.values()))

        def upload(name: str) -> AzureError | None:
            path = f"{folder}/{name}"
            try:
                with staging.open(path) as content:
                    digest = md5(usedforsecurity=False)
                    for block in iter(lambda: content.read(BLOCK), b""):
                        digest.update(block)
                    content.seek(0)
                    self._blobs.upload_blob(
                        self._path(path),
                        content,
                        length=sizes[name],
                        overwrite=True,
                        # OneLake does not check this digest, but TLS detects damage in transit
                        content_settings=ContentSettings(content_md5=bytearray(digest.digest())),
                        progress_hook=lambda size, _: tell(name, size),
                    )
            except AzureError as error:
                return error
            return None

        with ThreadPoolExecutor(_UPLOADS) as pool:
            return [error for error in pool.map(upload, files) if error]

    @contextmanager
    def _explained(self, action: str, path: str) -> Iterator[None]:
        try:
            yield
        except AzureError as error:
            remedy, code = _remedy(error)
            raise LandingZoneUnavailableError(
                f"Cannot {action} {shown(path)} in {self._where}: {reason(error)} {remedy}",
                code=code,
            ) from error


def _remedy(error: AzureError) -> tuple[str, str]:
    """Return what to do about an error, and the code of its message."""
    if unresolved_host(error):  # perhaps that of the login
        return "Check the network and the DNS of this machine, then run again.", "OM704"
    status = error.status_code if isinstance(error, HttpResponseError) else None
    if isinstance(error, ClientAuthenticationError) or status == 401:
        return (
            "Check `authentication` in the profile; for `default` and `cli`, `az login`.",
            "OM702",
        )
    if status == 403:
        return (
            "The identity needs write access to the mirrored database, and the tenant the setting "
            "that lets apps from outside Fabric access OneLake.",
            "OM703",
        )
    if status == 404:
        remedy = "Check that workspace and item in `landing_zone` exist and are spelled like this."
        return remedy, ""
    if status == 409:
        return "Fabric may be reading it now. Run again later.", "OM705"
    return "Retries did not help. Run again later.", ""
