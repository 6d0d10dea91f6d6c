"""Files as OneLake describes them."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.openmirroring.landing_zone.storage import Entry, Readable

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
