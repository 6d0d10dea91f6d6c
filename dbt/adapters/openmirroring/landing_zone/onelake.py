"""A landing zone in OneLake, by the genuine client of Azure Data Lake Storage.

Reading and writing whole files are calls of the Blob API, which OneLake has too: one request, and
a file is there whole or not at all. Listing, renaming and deleting are calls of the DFS API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import md5
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
from dbt.adapters.openmirroring.landing_zone.onelake_claim import CLAIM, Claim
from dbt.adapters.openmirroring.landing_zone.onelake_client import BLOCK, OneLakeClient
from dbt.adapters.openmirroring.landing_zone.shown import shown, shown_url
from dbt.adapters.openmirroring.landing_zone.staging import StagingFolder
from dbt.adapters.openmirroring.landing_zone.storage import (
    MAX_RECORD,
    Entry,
    components,
    folder_and_name,
    too_large,
)

# so many files at once, and so often if they fail
_UPLOADS = 4
_ROUNDS = 3

_WAITING = (
    "{} is held by another run, or by one that was killed: waiting up to four and a half minutes "
    "to see which."
)

# bytes that are in OneLake, and all to be uploaded
Progress = Callable[[int, int], None]


class OneLakeStorage:
    """Implements Storage. One object for each publication: it knows the folders that it holds.

    Args:
        staging: where Spark writes what is to be uploaded; None if it writes to OneLake itself
        progress: told of uploads
        tell: has something to say to the user
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

    def url(self, path: str) -> str:
        place = "/".join(components(path))
        if self._staging:
            return self._staging.url(place)
        return f"{self._client.place.spark_url}/{place}"

    def collect(self, folder: str) -> Sequence[Entry]:
        return self._upload(folder, self._staging) if self._staging else self.list(folder)

    def list(self, folder: str) -> list[Entry]:
        with self._explained("list", folder):
            try:
                found = list(self._files.get_paths(self._path(folder), recursive=False))
            except ResourceNotFoundError:
                return []
        entries = (
            # with GUIDs, names in OneLake need not begin as they were asked for
            Entry(
                item.name.rpartition("/")[2],
                0 if item.is_directory else item.content_length,
                item.is_directory,
            )
            for item in found
        )
        return sorted((e for e in entries if e.name != CLAIM), key=lambda entry: entry.name)

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
                # if an answer was lost, it is this one: what is created here is like nothing else
                if self.read(path) != content:
                    raise PathExistsError(
                        f"{path} already exists in {self._where}. It was left as it is."
                    ) from None

    def rename(self, source: str, target: str) -> None:
        with self._explained("rename a file to", target):
            staged = self._look(source)
            if not staged:
                raise LandingZoneUnavailableError(f"{source} is not in {self._where}: it is gone.")
            # should OneLake ignore the condition without a word
            if self._look(target):
                raise self._exists(target)
            if not self._move(source, target, staged):
                # a rename does not make folders
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
        """Nothing is left to be done: OneLake answers when it has stored a change."""

    def delete(self, path: str) -> None:
        folder_and_name(path)  # or it would be all there is
        self._check_claims()
        with self._explained("delete", path), suppress(ResourceNotFoundError):
            # Spark's driver deletes files too as if they were folders
            self._files.get_directory_client(self._path(path)).delete_directory()

    @contextmanager
    def lock(self, folder: str) -> Iterator[None]:
        """Hold a folder by a file in it; see `Claim` for why that is sound."""
        claim = Claim(self._blobs.get_blob_client(self._path(f"{folder}/{CLAIM}")))
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
        """Let others hold a folder, whatever goes wrong before."""
        try:
            # somebody else may have staged there by now
            with suppress(ConcurrentPublicationError):
                claim.check()
                self._clear_staging(folder)
        finally:
            self._claims.remove(claim)
            claim.release()
            # not empty if somebody else holds it, or another one
            with suppress(AzureError):
                for empty in (folder, folder.rpartition("/")[0]):
                    with suppress(ResourceNotFoundError):
                        self._files.get_file_client(self._path(empty)).delete_file(recursive=False)

    @property
    def _where(self) -> str:
        place = self._client.place
        return f"{place.account_url}/{place.workspace}/{place.root}"

    def _path(self, path: str) -> str:
        return "/".join((self._client.place.root, *components(path)))

    def _clear_staging(self, folder: str) -> None:
        """Remove what Spark has written to be uploaded, now or for a run that was killed."""
        if self._staging:
            self._staging.clear(folder)

    def _check_claims(self) -> None:
        for claim in self._claims:
            claim.check()

    def _put(self, path: str, content: bytes, **options: Any) -> None:
        self._check_claims()
        digest = md5(content, usedforsecurity=False).digest()
        self._blobs.upload_blob(
            self._path(path),
            content,
            # OneLake refuses what was damaged on the way, and keeps the digest with the file
            validate_content=True,
            content_settings=ContentSettings(content_md5=bytearray(digest)),
            **options,
        )

    def _move(self, source: str, target: str, staged: _File) -> bool:
        """Whether a file has moved; False if it is where it was, and nothing at the target."""
        self._check_claims()
        # the client decodes the name of the source once too often
        file = self._files.get_file_client(quote(self._path(source)))
        try:
            file.rename_file(
                f"{self._client.place.workspace}/{self._path(target)}",
                match_condition=MatchConditions.IfMissing,
                source_etag=staged.etag,
                source_match_condition=MatchConditions.IfNotModified,
            )
        except (ResourceExistsError, ResourceModifiedError, ResourceNotFoundError):
            # the answer to an attempt that succeeded may have been lost
            found, left = self._look(target), self._look(source)
            if not found and not left:
                raise
            if found and (left or not found.is_copy_of(staged)):
                raise self._exists(target) from None
            return not left
        return True

    def _look(self, path: str) -> _File | None:
        try:
            found = self._blobs.get_blob_client(self._path(path)).get_blob_properties()
        except ResourceNotFoundError:
            return None
        digest = found.content_settings.content_md5
        return _File(found.etag, found.size, bytes(digest) if digest else None)

    def _exists(self, path: str) -> PathExistsError:
        return PathExistsError(
            f"{path} already exists in {self._where} with other content. It was left as it is."
        )

    def _upload(self, folder: str, staging: StagingFolder) -> Sequence[Entry]:
        """Bring to OneLake what Spark has written elsewhere, and list it.

        Every block is retried on its own. A file appears with its last block; one that does not is
        uploaded again.

        Raises:
            LandingZoneUnavailableError: Spark has written nothing there, or a file is not in
                OneLake as it is there
        """
        try:
            sizes = staging.sizes(folder)
        except OSError as error:
            raise LandingZoneUnavailableError(
                f"Cannot read what Spark has written to {shown_url(staging.url(folder))}: "
                f"{error.strerror or error}. `staging_location` must be a folder that Spark and "
                "dbt share."
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
        """Upload files at once, and tell what went wrong."""
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
                        # TLS sees what is damaged on the way
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
            found = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise LandingZoneUnavailableError(
                f"Cannot {action} {shown(path)} in {self._where}: {shown(found)} {_remedy(error)}"
            ) from error


@dataclass(frozen=True)
class _File:
    """A file as OneLake has it; its MD5 if whoever wrote it has given one."""

    etag: str
    size: int
    md5: bytes | None

    def is_copy_of(self, other: _File) -> bool:
        # a rename may change the ETag
        return (self.size, self.md5) == (other.size, other.md5)


def _remedy(error: AzureError) -> str:
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
        return "Fabric may be reading it now. The next run finishes what was begun."
    return "Retries did not help. The next run finishes what was begun."
