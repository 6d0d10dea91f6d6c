"""The rows of a file change the table as their markers say."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbt.adapters.openmirroring.replicator import replicator
from tests.unit.replicator.item import KEYED, Item, rows, schema

INSERT, UPDATE, DELETE, UPSERT = 0, 1, 2, 4

UPSERTS = {**KEYED, "isUpsertDefaultRowMarker": True}
TWO_KEYS = schema(a=pa.string(), b=pa.string(), value=pa.int32())
NAME_IS_REQUIRED = pa.schema([("id", pa.int64()), pa.field("name", pa.string(), nullable=False)])
KEY = "k\"e'y `of` a.b"
ANY_NAMES = schema(**{KEY: pa.int32(), "select": pa.string(), "ü ,;{}()\n\t=": pa.int8()})

# by name: the metadata, the files, and the rows that are mirrored
CASES: dict[str, tuple[dict[str, Any], list[pa.Table], list[tuple[Any, ...]]]] = {
    # specification, "Format requirements": keys 1 to 4 are there, 5 to 8 are not
    "each marker": (
        KEYED,
        [
            rows(*((key, "old") for key in range(1, 5))),
            rows((1, "new", INSERT), (2, "new", UPDATE), (3, None, DELETE), (4, "new", UPSERT)),
            rows((5, "new", INSERT), (6, "new", UPDATE), (7, None, DELETE), (8, "new", UPSERT)),
        ],
        [(1, "new"), (1, "old"), *((key, "new") for key in (2, 4, 5, 6, 8))],
    ),
    "a file without markers only inserts": (
        KEYED,
        [rows((1, "a")), rows((1, "b"))],
        [(1, "a"), (1, "b")],
    ),
    "rows without a marker are upserts if the metadata say so": (
        UPSERTS,
        [
            rows((1, "a"), (2, "a")),
            rows((1, "b"), (1, "c")),
            rows((2, "b", None), (3, "b", None), (1, None, DELETE)),
        ],
        [(2, "b"), (3, "b")],
    ),
    "a delete needs the key only": (
        KEYED,
        [rows((1, "a"), (2, "b"), schema=NAME_IS_REQUIRED), rows((1, None, DELETE))],
        [(2, "b")],
    ),
    "a marker may be text": (
        KEYED,
        [rows((1, "a")).append_column("__rowMarker__", pa.array(["4"]))],
        [(1, "a")],
    ),
    "keys of several columns are compared together": (
        {"keyColumns": ["a", "b"]},
        [
            rows(("x", "yz", 1), ("xy", "z", 2), ("xyz", "", 3), schema=TWO_KEYS),
            rows(("xy", "z", 4, UPDATE), ("xyz", "", None, DELETE), schema=TWO_KEYS),
        ],
        [("x", "yz", 1), ("xy", "z", 4)],
    ),
    "columns may have any name": (
        {"keyColumns": [KEY]},
        [
            rows((1, "a", 1), (2, "b", 2), schema=ANY_NAMES),
            rows((1, "c", 3, UPDATE), (2, None, None, DELETE), schema=ANY_NAMES),
        ],
        [(1, "c", 3)],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_rows_change_the_table_as_their_markers_say(item: Item, case: str) -> None:
    metadata, files, expected = CASES[case]
    item.metadata(**metadata)
    item.land_all(*files)

    assert item.scan().status == "Replicating"
    assert item.rows() == expected


@pytest.mark.parametrize(
    ("metadata", "content", "finding"),
    [
        *((KEYED, rows((2, "b", 0), (3, "c", n)), f"{n} is not a row marker") for n in (3, 5, -1)),
        (KEYED, rows((2, "b", 0)).select([2, 0, 1]), "must be the last column"),
        (KEYED, rows((None, "b", UPSERT)), "'id' is NULL"),
        *(({}, rows((1, "b", marker)), "keyColumns") for marker in (UPDATE, DELETE, UPSERT)),
    ],
    ids=[*("3", "5", "-1"), "first column", "NULL", *("update", "delete", "upsert")],
)
def test_a_file_with_a_wrong_marker_or_without_a_key_stops_the_table(
    item: Item, metadata: dict[str, Any], content: pa.Table, finding: str
) -> None:
    item.metadata(**metadata)
    item.land_all(rows((1, "a", INSERT)), content)

    assert finding in item.scan().note
    assert item.rows() == [(1, "a")]


operations = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from("abcdef"), st.sampled_from([0, 1, 2, 4])),
    max_size=12,
)


def by_the_table(applied: list[tuple[int, str, int]]) -> list[tuple[int, str]]:
    """The specification's table of row markers, one row after the other."""
    result: list[tuple[int, str]] = []
    for key, name, marker in applied:
        if marker != INSERT:
            result = [row for row in result if row[0] != key]
        if marker != DELETE:
            result.append((key, name))
    return sorted(result)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    files=st.lists(operations, min_size=1, max_size=5),
    scans=st.sets(st.integers(0, 5)),
    merged=st.sampled_from([1, 2**20]),
)
def test_files_do_the_same_whenever_they_are_scanned(
    item: Item, files: list[list[tuple[int, str, int]]], scans: set[int], merged: int
) -> None:
    """Also if the changes of several files are merged together, or are too many for that."""
    item.keyed()
    item.land(1, rows())
    with patch.object(replicator, "_MERGED", merged):
        for number, file in enumerate(files, start=2):
            item.land(number, rows(*file))
            if number in scans:
                item.scan()

        item.scan()

    assert item.rows() == by_the_table([row for file in files for row in file])
    item.drop()
