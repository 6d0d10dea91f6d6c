"""What a landing zone must be able to do."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Entry:
    """A file or folder in a listing.

    Args:
        size: in bytes, 0 for a folder
        modified: nanoseconds since 1970, 0 where that is not known
    """

    name: str
    size: int
    is_folder: bool
    modified: int = 0


class Storage(Protocol):
    """A landing zone's files. Paths are relative to its root, with forward slashes.

    Every method raises LandingZoneUnavailableError when the storage refuses.
    """

    def url(self, path: str) -> str:
        """Where Spark reads and writes what is here called `path`."""

    def collect(self, folder: str) -> Sequence[Entry]:
        """Have in the landing zone what Spark has written to the url of a folder, and list it."""

    def list(self, folder: str) -> list[Entry]:
        """What is directly in a folder, by name; nothing when there is no such folder."""

    def read(self, path: str) -> bytes | None:
        """A file's content, or None when there is no such file."""

    def write(self, path: str, content: bytes) -> None:
        """Let a file appear, or replace it, whole; folders above it appear with it."""

    def create(self, path: str, content: bytes) -> None:
        """Let a file appear, whole.

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

    def delete(self, path: str) -> None:
        """Delete a file, or a folder with all that is in it; nothing happens if there is none."""

    def lock(self, folder: str) -> AbstractContextManager[None]:
        """Hold a folder for one process; it is free again when that process is gone.

        Raises:
            ConcurrentPublicationError: somebody else holds it
        """
