"""Tables that somebody lands to harm the replicator, the others' tables, or files elsewhere."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

# makes the table's folder; takes its path and a folder that is outside of the landing zone, and
# returns the path that the folder has got
Land = Callable[[Path, Path], Path]

FIRST, SECOND = (f"{number:020d}.parquet" for number in (1, 2))

_ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", "b"]})
_COLUMN = {"Name": "id", "DataType": "Int32"}


def outside(folder: Path) -> Path:
    """A folder with what is precious to somebody else: files, a record, rows, a table folder."""
    (folder / "processed").mkdir(parents=True)
    (folder / "processed" / FIRST).write_text("precious")
    (folder / "record.json").write_text('{"keyColumns": ["id"]}')
    foreign = pa.table({"id": pa.array([666], pa.int64()), "name": ["foreign"]})
    pq.write_table(foreign, folder / "rows.parquet")
    _land_good(folder / "table")
    return folder


def contents(folder: Path) -> dict[str, bytes | None]:
    """All that is in a folder, by path; None for what is no file."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def land_forty(schema: Path, elsewhere: Path) -> Iterator[tuple[Path, str]]:
    """Land forty tables of all kinds in a schema's folder. Yield what is found in each."""
    kinds = list(_HOSTILE_TABLES.values())
    for number in range(40):
        finding, land = kinds[number % len(kinds)]
        yield land(schema / f"hostile_{number}", elsewhere), finding


def land_link(folder: Path, elsewhere: Path) -> Path:
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.symlink_to(elsewhere / "table")
    return folder


def _land_fifo(folder: Path, elsewhere: Path) -> Path:
    folder.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(folder)
    return folder


def _land_good(folder: Path, **properties: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_metadata.json").write_text(json.dumps({"keyColumns": ["id"], **properties}))
    pq.write_table(_ROWS, folder / FIRST)
    return folder


def _land_name_that_is_not_utf8(folder: Path, elsewhere: Path) -> Path:
    return _land_good(folder).rename(folder.with_name(folder.name + os.fsdecode(b"_caf\xe9")))


def _with(change: Callable[[Path, Path], object], **properties: Any) -> Land:
    """A good table with a change."""

    def land(folder: Path, elsewhere: Path) -> Path:
        change(_land_good(folder, **properties), elsewhere)
        return folder

    return land


def _with_metadata(content: bytes) -> Land:
    return _with(lambda folder, _: (folder / "_metadata.json").write_bytes(content))


def _with_text(**properties: Any) -> Land:
    def write(folder: Path, _: Path) -> None:
        (folder / FIRST).with_suffix(".csv").write_text("id\r\n1\r\n")

    defaults = {"FileFormat": "csv", "SchemaDefinition": {"Columns": [_COLUMN]}}
    return _with(write, **{**defaults, **properties})


def _with_fifo(name: str) -> Land:
    def put(folder: Path, _: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)

    return _with(put)


def _with_link(name: str, target: str) -> Land:
    def put(folder: Path, elsewhere: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(elsewhere / target)
        pq.write_table(_ROWS, folder / SECOND)

    return _with(put)


_TWO_COLUMNS = pa.table([pa.array([1]), pa.array([2])], names=["id", "id"])

# by name: what is found, and how the table is landed
_HOSTILE_TABLES: dict[str, tuple[str, Land]] = {
    "deep JSON": ("_metadata.json is not", _with_metadata(b"[" * 200_000)),
    "an encoding that is none": (
        "Encoding",
        _with_text(FileFormatTypeProperties={"Encoding": "rot13"}),
    ),
    "an encoding that is no name": (
        "Encoding",
        _with_text(FileFormatTypeProperties={"Encoding": "utf-8\0"}),
    ),
    "columns that are no list": ("Columns", _with_text(SchemaDefinition={"Columns": 5})),
    "a key column twice": ("keyColumns", _with_metadata(b'{"keyColumns": ["id", "id"]}')),
    "a declared column twice": (
        "SchemaDefinition",
        _with_text(SchemaDefinition={"Columns": [_COLUMN] * 2}),
    ),
    "two columns of a name": (
        "columns",
        _with(lambda folder, _: pq.write_table(_TWO_COLUMNS, folder / FIRST)),
    ),
    "a name that is not UTF-8": ("utf-8", _land_name_that_is_not_utf8),
    "a FIFO as metadata": ("must be a", _with_fifo("_metadata.json")),
    "a FIFO as a record": ("must be a", _with_fifo("_mirrored_table.json")),
    "a FIFO as data": ("must be a", _with_fifo(FIRST)),
    "a FIFO as a folder": ("must be a", _land_fifo),
    "linked metadata": ("is a link", _with_link("_metadata.json", "record.json")),
    "a linked record": ("is a link", _with_link("_mirrored_table.json", "new.json")),
    "linked data": ("is a link", _with_link(FIRST, "rows.parquet")),
    "a linked processed folder": ("is a link", _with_link("_ProcessedFiles", "processed")),
    "a linked folder": ("is a link", land_link),
}
