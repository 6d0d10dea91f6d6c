"""A mirrored database in a folder: files are landed by a test, and replicated."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from dbt.adapters.openmirroring.replicator.monitoring import TableReport
from dbt.adapters.openmirroring.replicator.replicator import Replicator
from tests import delta_tables

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])

KEYED: dict[str, Any] = {"keyColumns": ["id"]}
BY_TIME: dict[str, Any] = {**KEYED, "fileDetectionStrategy": "LastUpdateTimeFileDetection"}


class Killed(BaseException):
    """As a signal: nothing in between cleans up."""


def schema(**types: pa.DataType) -> pa.Schema:
    return pa.schema(list(types.items()))


def rows(*values: tuple[Any, ...], schema: pa.Schema = SCHEMA) -> pa.Table:
    """A file's content; with one value more than columns, the last is the row marker."""
    names = list(schema.names)
    if values and len(values[0]) > len(names):
        schema = schema.append(pa.field("__rowMarker__", pa.int32()))
        names.append("__rowMarker__")
    return pa.Table.from_pylist(
        [dict(zip(names, value, strict=True)) for value in values], schema=schema
    )


class Item:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.landing_zone = path / "Files" / "LandingZone"
        self.replicator = Replicator(self.landing_zone)

    def folder(self, name: str = "shop.schema/orders") -> Path:
        return self.landing_zone / name

    def metadata(self, name: str = "shop.schema/orders", **properties: Any) -> None:
        self.folder(name).mkdir(parents=True, exist_ok=True)
        (self.folder(name) / "_metadata.json").write_text(json.dumps(properties))

    def keyed(self) -> None:
        self.metadata(**KEYED)

    def land(self, number: int, content: pa.Table, name: str = "shop.schema/orders") -> Path:
        """Publish a Parquet file by rename, as publishers do."""
        return self.land_as(f"{number:020d}.parquet", content, name)

    def land_as(self, file: str, content: pa.Table, name: str = "shop.schema/orders") -> Path:
        staged = self.folder(name) / f"_{file}"
        pq.write_table(content, staged)
        return staged.replace(self.folder(name) / file)

    def land_all(self, *files: pa.Table, name: str = "shop.schema/orders") -> None:
        """Land files with the numbers from 1."""
        for number, content in enumerate(files, 1):
            self.land(number, content, name)

    def land_at(self, seconds: int, file: str, content: pa.Table) -> None:
        """Land a file that was written so many seconds after 1970."""
        os.utime(self.land_as(f"{file}.parquet", content), (seconds, seconds))

    def land_bytes(self, file: str, content: bytes, name: str = "shop.schema/orders") -> Path:
        path = self.folder(name) / file
        path.write_bytes(content)
        return path

    def drop(self, name: str = "shop.schema/orders") -> None:
        shutil.rmtree(self.folder(name))

    def scan(self) -> TableReport:
        """Replicate, and return the report of the only table."""
        (report,) = self.replicator.scan()
        return report

    def delta(self, table: str = "shop/orders") -> DeltaTable:
        return DeltaTable(self.path / "Tables" / table)

    def rows(self, table: str = "shop/orders") -> list[tuple[Any, ...]]:
        """The mirrored rows in the order of their text."""
        content = delta_tables.content(self.delta(table)).to_pylist()
        return sorted((tuple(row.values()) for row in content), key=str)

    def left(self, name: str = "shop.schema/orders") -> list[str]:
        """The numbers of the data files in the table folder."""
        return names(path for path in self.folder(name).iterdir() if path.is_file())


def names(paths: Iterable[Path]) -> list[str]:
    """File names without the zeros they begin with, and without those of underscored files."""
    return sorted(path.name.lstrip("0") for path in paths if not path.name.startswith("_"))
