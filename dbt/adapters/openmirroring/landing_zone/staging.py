"""Where Spark has files for OneLake, or from there: any place that it shares with this machine."""

from __future__ import annotations

from contextlib import suppress
from typing import IO, cast

import fsspec


class StagingFolder:
    """A folder, and what Spark has written there.

    Args:
        url: of the folder, in a scheme that both Spark and fsspec know, such as file, s3a or gs

    Raises:
        ImportError: what fsspec needs for this scheme is not installed
        ValueError: fsspec does not know this scheme
    """

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        # files are written by others: no listing may be remembered
        self._files, root = fsspec.url_to_fs(self._url, use_listings_cache=False)
        self._root = str(root).rstrip("/")

    def url(self, path: str) -> str:
        """A path in it, as Spark has it."""
        return f"{self._url}/{path}"

    def sizes(self, folder: str) -> dict[str, int]:
        """The files with rows in one of its folders, by name; sizes in bytes.

        Raises:
            OSError: the folder is not there, or cannot be read
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
        """Open a new file for writing; the folder that it is in appears with it.

        Raises:
            OSError: it cannot be written
        """
        whole = f"{self._root}/{path}"
        self._files.makedirs(whole.rpartition("/")[0], exist_ok=True)
        return cast(IO[bytes], self._files.open(whole, "wb"))

    def clear(self, folder: str) -> None:
        """Remove what is in one of its folders, as far as that can be done."""
        with suppress(OSError):
            self._files.rm(f"{self._root}/{folder}", recursive=True)
