"""What a landing zone must be able to do."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from dbt.adapters.openmirroring.landing_zone.errors import (
    LandingZoneUnavailableError,
    NotPlainError,
)

# bytes of a record; a manifest of a hundred thousand files has a sixth of it
MAX_RECORD = 64 * 1024 * 1024


@dataclass(frozen=True)
class Entry:
    """A file or folder in a listing.

    Args:
        size: in bytes, 0 for a folder
        modified: nanoseconds since 1970, 0 where that is not known
        oddity: `a link`, `a pipe` and so on; empty for a plain file or folder
    """

    name: str
    size: int
    is_folder: bool
    modified: int = 0
    oddity: str = ""


class Storage(Protocol):
    """A landing zone's files. Paths are relative to its root, with forward slashes.

    Nothing outside the root is read, written, listed or removed, and no link below it is followed.
    Every method raises LandingZoneUnavailableError when the storage refuses, and NotPlainError, a
    kind of it, for a path that leads outside or through something that is not a plain folder.
    """

    def url(self, path: str) -> str:
        """Where Spark reads and writes what is here called `path`."""

    def collect(self, folder: str) -> Sequence[Entry]:
        """Have in the landing zone what Spark has written to the url of a folder, and list it."""

    def list(self, folder: str) -> list[Entry]:
        """What is directly in a folder, by name; nothing when there is no such folder."""

    def read(self, path: str) -> bytes | None:
        """A record's content, or None when there is no such file.

        Raises:
            LandingZoneUnavailableError: it has more than MAX_RECORD bytes
        """

    def write(self, path: str, content: bytes) -> None:
        """Let a file appear, or replace it, whole; folders above it appear with it.

        It survives a loss of power.
        """

    def create(self, path: str, content: bytes) -> None:
        """Let a file appear, whole. It survives a loss of power.

        Raises:
            PathExistsError: there is one; it was not touched
        """

    def rename(self, source: str, target: str) -> None:
        """Move a file in one step, never over an existing one.

        Raises:
            PathExistsError: there is another file at the target; neither was touched
        """

    def touch(self, path: str, after: int) -> int:
        """Make a file's modification time later than another; it keeps it when it is renamed.

        Args:
            after: nanoseconds since 1970

        Returns:
            the time that `list` now tells, in nanoseconds since 1970
        """

    def flush(self, folder: str, files: Sequence[str] = ()) -> None:
        """Let a folder survive a loss of power as it is: what was renamed or deleted in it.

        Args:
            files: some in it whose content is to survive too
        """

    def delete(self, path: str) -> None:
        """Delete a file, or a folder with all that is in it; nothing happens if there is none."""

    def lock(self, folder: str) -> AbstractContextManager[None]:
        """Hold a folder for one process; it is free again when that process is gone.

        Raises:
            ConcurrentPublicationError: somebody else holds it
        """


def components(path: str) -> tuple[str, ...]:
    """The names in a path below the root; none for the root itself.

    Raises:
        NotPlainError: the path could lead outside
    """
    names = tuple(path.split("/")) if path else ()
    for name in names:
        # Azure takes a backslash for a slash
        if not name or "\0" in name or not {".", ".."}.isdisjoint(name.split("\\")):
            raise NotPlainError(
                f"{path!r} is not a path in a landing zone: it is absolute, or one of its names "
                "is empty, is `.` or `..`, or contains NUL. Nothing was changed. Check the names "
                "in the model's configuration and in the records of the landing zone."
            )
    return names


def folder_and_name(path: str) -> tuple[tuple[str, ...], str]:
    """Where something is, and what it is called.

    Raises:
        NotPlainError: the path could lead outside, or is that of the landing zone itself
    """
    names = components(path)
    if not names:
        raise NotPlainError(
            "The path is the landing zone itself, not a file in it. Nothing was changed."
        )
    return names[:-1], names[-1]


def plain(folder: str, entries: Sequence[Entry]) -> Sequence[Entry]:
    """The listing of a folder of a table, which must have plain files and folders only.

    Raises:
        NotPlainError: there is a link, a pipe or the like
    """
    for entry in entries:
        if entry.oddity:
            raise not_plain(f"{folder}/{entry.name}", entry.oddity)
    return entries


def not_plain(path: object, oddity: str) -> NotPlainError:
    return NotPlainError(
        f"{path} is {oddity}. A landing zone has only plain folders and files, and no link in it "
        "is followed. Nothing was changed. Remove it, or put a plain folder or file in its place; "
        "then run again."
    )


def too_large(path: object) -> LandingZoneUnavailableError:
    return LandingZoneUnavailableError(
        f"{path} has more than {MAX_RECORD // 1024**2} MB: records of a landing zone are smaller, "
        "so it was not read. Nothing was changed. Restore it, or delete it; then run again."
    )
