"""What the mirrored table holds: the published files, applied by the rules of the specification.

Written from the specification alone ("Format requirements", "Incremental changes"), and small
enough to be read beside it. It is strict where the service would be lenient or silent.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

ROW_MARKER = "__rowMarker__"
INSERT, UPDATE, DELETE, UPSERT = 0, 1, 2, 4

# the columns that are not NULL, by name
Row = tuple[tuple[str, str], ...]


def data_files(folder: Path) -> list[Path]:
    """The data files of a table folder, in the order of their numbers, which has no gap."""
    files = sorted(path for path in folder.iterdir() if not path.name.startswith(("_", ".")))
    assert all(re.fullmatch(r"\d{20}\.parquet", path.name) for path in files), files
    numbers = [int(path.stem) for path in files]
    assert numbers == list(range(1, len(numbers) + 1)), numbers
    return files


def replay(folder: Path) -> Counter[Row]:
    """The rows of the mirrored table, and how often each is there."""
    keys = json.loads((folder / "_metadata.json").read_text()).get("keyColumns", [])
    rows: list[dict[str, Any]] = []
    positions: dict[Row, int] = {}
    types: dict[str, Any] = {}
    for file in data_files(folder):
        table = pq.read_table(file)
        for field in table.schema:
            known = types.setdefault(field.name, field.type)
            assert known == field.type, f"{file.name}: {field.name} is {field.type}, was {known}"
        if ROW_MARKER in table.column_names:
            assert keys, "row markers need keyColumns"
            assert table.column_names[-1] == ROW_MARKER
        assert set(keys) <= set(table.column_names), "keyColumns as spelled in the files"
        for row in table.to_pylist():
            marker = row.pop(ROW_MARKER, INSERT)
            key = canonical((name, row[name]) for name in keys)
            there = positions.get(key) if keys else None
            if marker == DELETE:
                if there is not None:
                    rows[there] = {}
                    del positions[key]
            elif marker in (UPDATE, UPSERT) and there is not None:
                rows[there] = row
            else:
                assert marker in (INSERT, UPDATE, UPSERT), f"unknown row marker {marker}"
                assert there is None, f"{file.name}: {key} is inserted twice"
                positions[key] = len(rows)
                rows.append(row)
    deleted = {i for i, row in enumerate(rows) if not row}
    return Counter(canonical(row.items()) for i, row in enumerate(rows) if i not in deleted)


def canonical(row: Iterable[tuple[str, Any]]) -> Row:
    """A row that equals another one only if all values do: NaN too, and -0.0 is not 0.0."""
    return tuple(sorted((name, _text(value)) for name, value in row if value is not None))


def _text(value: Any) -> str:
    if isinstance(value, dt.datetime):
        if value.tzinfo:
            value = value.astimezone(dt.timezone.utc).replace(tzinfo=None)
        return str(value.isoformat())
    if isinstance(value, (bytes, bytearray)):
        return f"bytes {bytes(value).hex()}"
    return f"{type(value).__name__} {value}"
