"""A landing zone in OneLake, accessed with the clients of Azure Storage.

Whole files are read and written with the Blob API, which OneLake supports too: a file appears as
a whole or not at all. Files are listed, renamed and deleted with the DFS API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path
from typing import Any
from urllib.parse import quote

from azure.core import MatchConditions
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.storage.blob import ContentSettings

from dbt.adapters.openmirroring.landing_zone.errors import (
    ConcurrentPublicationError,
    LandingZoneUnavailableError,
    PathExistsError,
)
from dbt.adapters.openmirroring.landing_zone.onelake.claim import CLAIM, Claim
from dbt.adapters.openmirroring.landing_zone.onelake.client import BLOCK, OneLakeClient
from dbt.adapters.openmirroring.landing_zone.onelake.staging import StagingFolder
from dbt.adapters.openmirroring.landing_zone.storage import (
    MAX_RECORD,
    Entry,
    Readable,
    below_root,
    components,
    too_large,
)
from dbt.adapters.openmirroring.rest.azure_requests import reason, unresolved_host
from dbt.adapters.openmirroring.text.shown import shown, shown_url

# parallel uploads, and attempts for files that failed
_UPLOADS = 4
_ROUNDS = 3

_WAITING = (
    "{} is held by another run, or by one that was killed: waiting up to four and a half minutes "
    "to see which."
)

# called with the bytes uploaded so far, and the bytes to upload in total
Progress = Callable[[int, int], None]


# the entries of folders, by the paths of the folders
ByFolder = dict[str, list[Entry]]


@dataclass(frozen=True)
class OneLakeFile:
    """A file in OneLake. The MD5 is None if its writer sent none."""

    etag: str
    size: int
    md5: bytes | None

    def is_copy_of(self, other: OneLakeFile) -> bool:
        # a rename may change the ETag
        return (self.size, self.md5) == (other.size, other.md5)


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
        ended: the folder of claims that earlier runs of this machine could not delete
    """

    def __init__(
        self,
        client: OneLakeClient,
        staging: StagingFolder | None = None,
        progress: Progress | None = None,
        tell: Callable[[str], object] = str,
        ended: Path | None = None,
    ) -> None:
        self._client = client
        self._files = client.files
        self._blobs = client.blobs
        self._staging = staging
        self._progress = progress
        self._tell = tell
        self._ended = ended
        self._claims: list[Claim] = []
        self._changed: list[str] = []
        """The paths of the changes that were begun."""

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
        """List a folder, or all folders below it too."""
        with self._explained("list", folder):
            try:
                found = list(self._files.get_paths(self._path(folder), recursive=recursive))
            except ResourceNotFoundError:
                return {}
        # if the path has GUIDs, OneLake may return names with another prefix of the same depth
        depth = self._client.place.root.count("/") + 1
        folders: ByFolder = {}
        for item in found:
            *parents, name = item.name.split("/")[depth:]
            size = 0 if item.is_directory else item.content_length
            if not name.startswith(CLAIM):
                entry = Entry(name, size, item.is_directory)
                folders.setdefault("/".join(parents), []).append(entry)
        return {path: sorted(each, key=lambda entry: entry.name) for path, each in folders.items()}

    def read(self, path: str) -> bytes | None:
        with self._explained("read", path):
            try:
                found = self._blobs.get_blob_client(self._path(path)).download_blob()
            except ResourceNotFoundError:
                return None
            if found.size > MAX_RECORD:
                raise too_large(f"{path} in {self._where}")
            return found.readall()

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
                self._files.create_directory(self._path(target.rpartition("/")[0]))
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
        self._begin_change(path)
        with self._explained("delete", path), suppress(ResourceNotFoundError):
            # this deletes a file too: other drivers send the same request for files
            self._files.get_directory_client(self._path(path)).delete_directory()

    @contextmanager
    def lock(self, folder: str) -> Iterator[None]:
        """Hold a folder with a file beside it. `Claim` explains why this is safe."""
        *above, name = below_root(folder)
        file = self._blobs.get_blob_client(self._path("/".join((*above, f"{CLAIM}{name}"))))
        claim = Claim(file, self._ended)
        with self._explained("lock", folder):
            if not claim.take(lambda: self._tell(_WAITING.format(f"{self._where}/{folder}"))):
                raise ConcurrentPublicationError(
                    f"Another run holds {folder} in {self._where}: it is publishing this table "
                    "now. Nothing was changed; run again when it has ended."
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
            if any(path.startswith(f"{folder}/") for path in self._changed):
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

    def _begin_change(self, path: str) -> None:
        for claim in self._claims:
            claim.check()
        self._changed.append(path)

    def _put(self, path: str, content: bytes, **options: Any) -> None:
        self._begin_change(path)
        digest = md5(content, usedforsecurity=False).digest()
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
        self._begin_change(source)
        # the client decodes the source name once too often
        file = self._files.get_file_client(quote(self._path(source)))
        try:
            file.rename_file(
                f"{self._client.place.workspace}/{self._path(target)}",
                match_condition=MatchConditions.IfMissing,
                source_etag=staged.etag,
                source_match_condition=MatchConditions.IfNotModified,
            )
        except (ResourceExistsError, ResourceModifiedError, ResourceNotFoundError):
            # an earlier attempt may have succeeded, although its answer was lost
            found, left = self._look(target), self._look(source)
            if not found and not left:
                raise
            if found and (left or not found.is_copy_of(staged)):
                raise self._exists(target) from None
            return not left
        return True

    def _look(self, path: str) -> OneLakeFile | None:
        try:
            found = self._blobs.get_blob_client(self._path(path)).get_blob_properties()
        except ResourceNotFoundError:
            return None
        digest = found.content_settings.content_md5
        return OneLakeFile(found.etag, found.size, bytes(digest) if digest else None)

    def _exists(self, path: str) -> PathExistsError:
        return PathExistsError(
            f"{path} already exists in {self._where} with other content. It was left as it is."
        )

    def _upload(self, folder: str, staging: StagingFolder) -> Sequence[Entry]:
        """Upload the files that are staged, and list them.

        Each block is retried on its own. A file appears only with its last block. Files that do
        not appear with their size are uploaded again.

        Raises:
            LandingZoneUnavailableError: if the staged files cannot be read, or a file in OneLake
                does not have the same size as in the staging folder
        """
        try:
            sizes = staging.sizes(folder)
        except OSError as error:
            where, why = shown_url(staging.url(folder)), error.strerror or error
            raise LandingZoneUnavailableError(
                f"Cannot read what Spark has written to {where}: {why}. `staging_location` must "
                "be a folder that Spark and dbt share."
            ) from error
        files = list(sizes)
        with self._explained("upload files to", folder):
            for _ in range(_ROUNDS):
                failures = self._upload_files(folder, files, sizes, staging)
                landed = self.list(folder)
                names = {entry.name for entry in landed if sizes.get(entry.name) == entry.size}
                files = [name for name in files if name not in names]
                if not files:
                    return landed
            if failures:
                raise failures[-1]
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
            raise LandingZoneUnavailableError(
                f"Cannot {action} {shown(path)} in {self._where}: {reason(error)} {_remedy(error)}"
            ) from error


def _remedy(error: AzureError) -> str:
    if unresolved_host(error):  # perhaps that of the login
        return "Check the network and the DNS of this machine, then run again."
    status = error.status_code if isinstance(error, HttpResponseError) else None
    if isinstance(error, ClientAuthenticationError) or status == 401:
        return "Check `authentication` in the profile; for `default` and `cli`, `az login`."
    if status == 403:
        return (
            "The identity needs write access to the mirrored database, and the tenant the setting "
            "that lets apps from outside Fabric access OneLake."
        )
    if status == 404:
        return "Check that workspace and item in `landing_zone` exist and are spelled like this."
    if status == 409:
        return "Fabric may be reading it now. Run again later."
    return "Retries did not help. Run again later."
