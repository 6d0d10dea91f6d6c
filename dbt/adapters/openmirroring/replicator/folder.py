"""The landing zone's folders, as the service sees them."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

METADATA = "_metadata.json"

# Tables without a schema folder get this schema, the `defaultSchema` of a mirrored database.
DEFAULT_SCHEMA = "dbo"
SCHEMA_SUFFIX = ".schema"

# In place of the service's ETags: the id of the mirrored table that a folder has filled. A folder
# that was dropped and recreated does not have it.
FILLED_TABLE = "_mirrored_table.json"

PROCESSED_DAYS = 7

_SEQUENTIAL = re.compile(r"\d{20}")
_COMPRESSED = (".gz", ".zst")


@dataclass(frozen=True)
class DataFile:
    """A file in a table folder.

    Args:
        name: within the folder
        size: bytes
        modified: nanoseconds since 1970
    """

    name: str
    size: int
    modified: int

    @property
    def extension(self) -> str:
        """Without the leading dot, and without that of a compression."""
        stem = self.name
        for compressed in _COMPRESSED:
            stem = stem.removesuffix(compressed)
        return stem.partition(".")[2]

    @property
    def number(self) -> int | None:
        """The 20 digits of its name (specification, "Format requirements")."""
        stem = self.name.partition(".")[0]
        return int(stem) if _SEQUENTIAL.fullmatch(stem) else None


def table_folders(landing_zone: Path) -> Iterator[TableFolder]:
    """The tables of a landing zone, by schema and name.

    Items whose names begin with an underscore are not tables (best practices, "Publishing"), nor
    are hidden ones.
    """
    for path in _folders(landing_zone):
        if path.name.endswith(SCHEMA_SUFFIX):
            schema = path.name.removesuffix(SCHEMA_SUFFIX)
            yield from (TableFolder(schema, table) for table in _folders(path))
        else:
            yield TableFolder(DEFAULT_SCHEMA, path)


def _folders(path: Path) -> list[Path]:
    if not path.is_dir():
        return []
    found = (item for item in path.iterdir() if not item.name.startswith(("_", ".")))
    return sorted(item for item in found if item.is_dir())


class TableFolder:
    """The folder of one table. Within `with` it is held open.

    Everything is done relative to the open folder: if the publisher drops it meanwhile and
    recreates it, nothing of this one gets mixed up with its successor.

    Args:
        schema: of the table
        path: of the folder; its name is the table's
    """

    def __init__(self, schema: str, path: Path) -> None:
        self.schema = schema
        self.path = path
        self._descriptor = -1

    @property
    def table(self) -> str:
        return self.path.name

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"

    def __enter__(self) -> TableFolder:
        """Open it, or raise FileNotFoundError."""
        self._descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)

    def is_there(self) -> bool:
        """Whether the folder that was opened is still the one at its path."""
        try:
            return os.path.samestat(self.path.stat(), os.fstat(self._descriptor))
        except FileNotFoundError:
            return False

    def open(self, name: str) -> BinaryIO:
        return os.fdopen(os.open(name, os.O_RDONLY, dir_fd=self._descriptor), "rb")

    def read(self, name: str) -> bytes | None:
        """The content of a file, or None if it is not there."""
        try:
            with self.open(name) as file:
                return file.read()
        except FileNotFoundError:
            return None

    def data_files(self) -> list[DataFile]:
        """All that could be data: no folders, nothing that begins with an underscore or a dot."""
        with os.scandir(self._descriptor) as entries:
            return [
                DataFile(entry.name, entry.stat().st_size, entry.stat().st_mtime_ns)
                for entry in entries
                if not entry.name.startswith(("_", ".")) and entry.is_file()
            ]

    def filled_table(self) -> str | None:
        """The id of the mirrored table that was made from this folder."""
        content = self.read(FILLED_TABLE)
        try:
            return str(json.loads(content)["id"]) if content else None
        except (ValueError, KeyError, TypeError):  # a process was killed while it wrote this
            return None

    def fills(self, table_id: str) -> None:
        """Remember which mirrored table is made from this folder."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        descriptor = os.open(FILLED_TABLE, flags, 0o644, dir_fd=self._descriptor)
        with os.fdopen(descriptor, "w") as file:
            json.dump({"id": table_id}, file)

    def retire(self, files: list[DataFile], processed: str) -> None:
        """Move files that were applied out of the way (specification, "Cleanup process").

        Args:
            processed: the folder in this one where they go; after a week they are deleted there
        """
        if files:
            with suppress(FileExistsError):
                os.mkdir(processed, dir_fd=self._descriptor)
        for file in files:
            os.rename(
                file.name,
                f"{processed}/{file.name}",
                src_dir_fd=self._descriptor,
                dst_dir_fd=self._descriptor,
            )
        with suppress(FileNotFoundError, NotADirectoryError):
            self._purge(processed)

    def _purge(self, processed: str) -> None:
        oldest = time.time() - PROCESSED_DAYS * 24 * 60 * 60
        folder = os.open(processed, os.O_RDONLY | os.O_DIRECTORY, dir_fd=self._descriptor)
        try:
            with os.scandir(folder) as entries:
                # a file's way here was a change of its inode
                old = [entry.name for entry in entries if entry.stat().st_ctime < oldest]
            for name in old:
                os.unlink(name, dir_fd=folder)
        finally:
            os.close(folder)
