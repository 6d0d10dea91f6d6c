"""The interface to the storage of a landing zone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from dbt.adapters.openmirroring.landing_zone.errors import (
    LandingZoneUnavailableError,
    NotPlainError,
)

# the limit for a record in bytes; a manifest of a hundred thousand files has a sixth of it
MAX_RECORD = 64 * 1024 * 1024


@dataclass(frozen=True)
class Entry:
    """A file or folder in a listing.

    Args:
        size: the size in bytes; 0 for a folder
        modified: the modification time in nanoseconds since 1970; 0 if it is unknown
        oddity: what it is other than a plain file or folder; empty if it is one of them
    """

    name: str
    size: int
    is_folder: bool
    modified: int = 0
    oddity: str = ""


class Readable(Protocol):
    """The files of a landing zone, for reading only. Errors are those of `Storage`."""

    def list(self, folder: str) -> list[Entry]:
        """List a folder, sorted by name. The list is empty if the folder does not exist."""

    def read(self, path: str) -> bytes | None:
        """Read the content of a record; None if there is no such file.

        Raises:
            LandingZoneUnavailableError: if the file has more than MAX_RECORD bytes
        """


class Storage(Readable, Protocol):
    """The files of a landing zone. Paths are relative to its root, with forward slashes.

    Nothing outside the root is read, written, listed or removed, and no link below it is followed.
    Every method raises LandingZoneUnavailableError if the storage refuses a request. It raises the
    subclass NotPlainError if a path leads outside, or through something other than plain folders.
    """

    def url(self, path: str) -> str:
        """Return the URL of a path for what writes and reads data files."""

    def collect(self, folder: str) -> Sequence[Entry]:
        """Upload, if needed, the files that were written to a folder's URL, and list them."""

    def at_once(self, folder: str = "") -> Readable:
        """Return the present files of a folder and all below it, listed with one request.

        A file that is added later may not be found, even by `read`.
        """

    def write(self, path: str, content: bytes) -> None:
        """Create or replace a file as a whole, and create missing folders above it.

        The file survives a power loss.
        """

    def create(self, path: str, content: bytes) -> None:
        """Create a file as a whole. It survives a power loss.

        Raises:
            PathExistsError: if the path exists; it is left unchanged
        """

    def rename(self, source: str, target: str) -> None:
        """Move a file in one step, never over an existing one.

        Raises:
            PathExistsError: if another file is at the target; both files are left unchanged
        """

    def touch(self, path: str, after: int) -> int:
        """Set a file's modification time to a later one, which the file keeps when it is renamed.

        Args:
            after: the time that the new one must exceed, in nanoseconds since 1970

        Returns:
            the new time as `list` returns it, in nanoseconds since 1970
        """

    def flush(self, folder: str, files: Sequence[str] = ()) -> None:
        """Make the renames and deletions in a folder survive a power loss.

        Args:
            files: the names of files in the folder whose content must survive too
        """

    def delete(self, path: str) -> None:
        """Delete a file, or a folder with all its content. Do nothing if the path is missing."""

    def lock(self, folder: str) -> AbstractContextManager[None]:
        """Hold a folder for one process. If the process is killed, the folder becomes free again.

        Raises:
            ConcurrentPublicationError: if another run holds the folder
        """


def components(path: str) -> tuple[str, ...]:
    """Split a path into the names below the root; none for the root itself.

    Raises:
        NotPlainError: if the path could lead outside
    """
    names = tuple(path.split("/")) if path else ()
    for name in names:
        # Azure treats a backslash as a slash
        if not name or "\0" in name or not {".", ".."}.isdisjoint(name.split("\\")):
            raise NotPlainError(
                f"{path!r} is not a path in a landing zone: it is absolute, or one of its names "
                "is empty, is `.` or `..`, or contains NUL. Nothing was changed. Check the names "
                "in the model's configuration and in the records of the landing zone."
            )
    return names


def below_root(path: str) -> tuple[str, ...]:
    """Split a path, as `components`, that must not be the landing zone itself."""
    names = components(path)
    if not names:
        raise NotPlainError(
            "The path is the landing zone itself, not a file in it. Nothing was changed."
        )
    return names


def plain(folder: str, entries: Sequence[Entry]) -> Sequence[Entry]:
    """Return the entries of a table's folder, if all of them are plain files and folders.

    Raises:
        NotPlainError: if one of them is a link, a pipe or the like
    """
    for entry in entries:
        if entry.oddity:
            raise not_plain(f"{folder}/{entry.name}", entry.oddity)
    return entries


def not_plain(path: object, oddity: str) -> NotPlainError:
    return NotPlainError(
        f"{path} is {oddity}. A landing zone has only plain folders and files, and no link in it "
        "is followed. Nothing was changed. Remove it, or put a plain folder or file in its place; "
        "then run again.",
        code="OM426",
    )


def too_large(path: object) -> LandingZoneUnavailableError:
    return LandingZoneUnavailableError(
        f"{path} has more than {MAX_RECORD // 1024**2} MB: records of a landing zone are smaller, "
        "so it was not read. Nothing was changed. Restore it, or delete it; then run again."
    )
