"""Tables that somebody lands to harm the replicator, the others' tables, or files elsewhere."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

FIRST, SECOND = (f"{number:020d}.parquet" for number in (1, 2))

_ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", "b"]})


@dataclass(frozen=True)
class HostileTable:
    """How to land one.

    Args:
        finding: in what is told of it
        land: makes the table's folder; takes its path and a folder that is outside of the landing
            zone, and returns the path that the folder has got
    """

    finding: str
    land: Callable[[Path, Path], Path]


def outside(folder: Path) -> Path:
    """A folder with what is precious to somebody else: files, a record, rows, a table folder."""
    table = folder / "table"
    table.mkdir(parents=True)
    (folder / "processed").mkdir()
    (folder / "processed" / FIRST).write_text("precious")
    (folder / "record.json").write_text('{"keyColumns": ["id"]}')
    pq.write_table(
        pa.table({"id": pa.array([666], pa.int64()), "name": ["foreign"]}), folder / "f"
    )
    _land_good(table)
    return folder


def contents(folder: Path) -> dict[str, bytes | None]:
    """All that is in a folder, by path; None for what is no file."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def land_forty(schema: Path, elsewhere: Path) -> Iterator[tuple[Path, HostileTable]]:
    """Forty tables of all kinds in a schema's folder."""
    kinds = list(HOSTILE_TABLES)
    for number in range(40):
        kind = kinds[number % len(kinds)]
        yield (
            HOSTILE_TABLES[kind].land(schema / f"hostile_{number}", elsewhere),
            (HOSTILE_TABLES[kind]),
        )


def _land_good(folder: Path, **properties: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_metadata.json").write_text(json.dumps({"keyColumns": ["id"], **properties}))
    pq.write_table(_ROWS, folder / FIRST)
    return folder


def _with_metadata(content: bytes) -> Callable[[Path, Path], Path]:
    def land(folder: Path, elsewhere: Path) -> Path:
        (_land_good(folder) / "_metadata.json").write_bytes(content)
        return folder

    return land


def _with_text(**properties: Any) -> Callable[[Path, Path], Path]:
    columns = {"Columns": [{"Name": "id", "DataType": "Int32"}]}

    def land(folder: Path, elsewhere: Path) -> Path:
        _land_good(folder, FileFormat="csv", **{"SchemaDefinition": columns, **properties})
        (folder / FIRST).with_suffix(".csv").write_text("id\r\n1\r\n")
        return folder

    return land


def _with_file(table: Callable[[], pa.Table]) -> Callable[[Path, Path], Path]:
    def land(folder: Path, elsewhere: Path) -> Path:
        pq.write_table(table(), _land_good(folder) / FIRST)
        return folder

    return land


def _with_fifo(name: str) -> Callable[[Path, Path], Path]:
    def land(folder: Path, elsewhere: Path) -> Path:
        (_land_good(folder) / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)
        return folder

    return land


def _with_link(name: str, target: str) -> Callable[[Path, Path], Path]:
    def land(folder: Path, elsewhere: Path) -> Path:
        (_land_good(folder) / name).unlink(missing_ok=True)
        (folder / name).symlink_to(elsewhere / target)
        pq.write_table(_ROWS, folder / SECOND)
        return folder

    return land


def _as_link(folder: Path, elsewhere: Path) -> Path:
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.symlink_to(elsewhere / "table")
    return folder


def _as_fifo(folder: Path, elsewhere: Path) -> Path:
    folder.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(folder)
    return folder


def _with_a_name_that_is_not_utf8(folder: Path, elsewhere: Path) -> Path:
    return _land_good(folder).rename(folder.with_name(folder.name + os.fsdecode(b"_caf\xe9")))


def _with_two_columns_of_a_name() -> pa.Table:
    return pa.table([pa.array([1]), pa.array([2])], names=["id", "id"])


HOSTILE_TABLES = {
    "deep JSON": HostileTable("_metadata.json is not", _with_metadata(b"[" * 200_000)),
    "a record of many bytes": HostileTable("bytes", _with_metadata(b" " * 5_000_000 + b"{}")),
    "an encoding that is none": HostileTable(
        "Encoding", _with_text(FileFormatTypeProperties={"Encoding": "rot13"})
    ),
    "an encoding that is no name": HostileTable(
        "Encoding", _with_text(FileFormatTypeProperties={"Encoding": "utf-8\0"})
    ),
    "columns that are no list": HostileTable(
        "Columns", _with_text(SchemaDefinition={"Columns": 5})
    ),
    "a key column twice": HostileTable(
        "keyColumns", _with_metadata(b'{"keyColumns": ["id", "id"]}')
    ),
    "a declared column twice": HostileTable(
        "SchemaDefinition",
        _with_text(SchemaDefinition={"Columns": [{"Name": "id", "DataType": "Int32"}] * 2}),
    ),
    "two columns of a name": HostileTable("columns", _with_file(_with_two_columns_of_a_name)),
    "a name that is not UTF-8": HostileTable("UTF-8", _with_a_name_that_is_not_utf8),
    "a FIFO as metadata": HostileTable("is a FIFO", _with_fifo("_metadata.json")),
    "a FIFO as a record": HostileTable("is a FIFO", _with_fifo("_mirrored_table.json")),
    "a FIFO as data": HostileTable("is a FIFO", _with_fifo(FIRST)),
    "a FIFO as a folder": HostileTable("is a FIFO", _as_fifo),
    "linked metadata": HostileTable("is a link", _with_link("_metadata.json", "record.json")),
    "a linked record": HostileTable("is a link", _with_link("_mirrored_table.json", "new.json")),
    "linked data": HostileTable("is a link", _with_link(FIRST, "rows.parquet")),
    "a linked processed folder": HostileTable(
        "is a link", _with_link("_ProcessedFiles", "processed")
    ),
    "a linked folder": HostileTable("is a link", _as_link),
}
