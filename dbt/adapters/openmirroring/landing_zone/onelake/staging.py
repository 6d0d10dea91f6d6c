"""The staging folder, through which files go to OneLake or come from it."""

from __future__ import annotations

from contextlib import suppress
from typing import IO, cast

import fsspec


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
        found = self._files.ls(f"{self._root}/{folder}", detail=True)
        sizes = {
            str(entry["name"]).rpartition("/")[2]: int(entry["size"])
            for entry in found
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
