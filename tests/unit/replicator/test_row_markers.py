"""The rows of a file change the table as their markers say."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbt.adapters.openmirroring.replicator.changes import Marker, marked, net_changes
from tests.unit.replicator.item import SCHEMA, Item, rows

INSERT, UPDATE, DELETE, UPSERT = 0, 1, 2, 4


@pytest.mark.parametrize(
    ("marker", "absent", "present"),
    [
        (INSERT, [(1, "old"), (2, "new")], [(1, "new"), (1, "old")]),
        (UPDATE, [(1, "old"), (2, "new")], [(1, "new")]),
        (DELETE, [(1, "old")], []),
        (UPSERT, [(1, "old"), (2, "new")], [(1, "new")]),
    ],
)
@pytest.mark.parametrize("key", [1, 2], ids=["present", "absent"])
def test_the_table_of_row_markers(
    item: Item,
    marker: int,
    absent: list[tuple[int, str]],
    present: list[tuple[int, str]],
    key: int,
) -> None:
    """Specification, "Format requirements": each marker, with and without a row of the key."""
    item.keyed()
    item.land(1, rows((1, "old")))
    item.land(2, rows((key, "new", marker)))

    item.scan()

    assert item.rows() == (present if key == 1 else absent)


def test_rows_apply_in_their_order_within_a_file_and_across_files(item: Item) -> None:
    """The example of the specification, "Incremental changes"."""
    item.metadata(keyColumns=["EmployeeID"])
    schema = pa.schema([("EmployeeID", pa.string()), ("EmployeeLocation", pa.string())])
    item.land(
        1,
        rows(
            ("E0001", "Redmond", 0),
            ("E0002", "Redmond", 0),
            ("E0003", "Redmond", 0),
            ("E0001", "Bellevue", 1),
            schema=schema,
        ),
    )
    item.land(2, rows(("E0001", None, 2), ("E0002", "Bellevue", 1), schema=schema))
    item.land(3, rows(("E0001", "Redmond", 0), ("E0003", None, 2), schema=schema))

    item.scan()

    assert item.rows() == [("E0001", "Redmond"), ("E0002", "Bellevue")]


def test_a_file_without_markers_only_inserts_even_if_the_key_is_there(item: Item) -> None:
    item.keyed()
    item.land(1, rows((1, "a")))
    item.land(2, rows((1, "b")))

    item.scan()

    assert item.rows() == [(1, "a"), (1, "b")]


def test_rows_without_a_marker_are_upserts_if_the_metadata_say_so(item: Item) -> None:
    item.metadata(keyColumns=["id"], isUpsertDefaultRowMarker=True)
    item.land(1, rows((1, "a"), (2, "a")))
    item.land(2, rows((1, "b"), (1, "c")))
    item.land(3, rows((2, "b", None), (3, "b", None), (1, None, 2)))

    item.scan()

    assert item.rows() == [(2, "b"), (3, "b")]


def test_a_delete_needs_the_key_only(item: Item) -> None:
    item.keyed()
    required = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string(), False)])
    item.land(1, rows((1, "a"), (2, "b"), schema=required))
    item.land(2, rows((1, None, 2)))

    assert item.scan().status == "Replicating"
    assert item.rows() == [(2, "b")]


def test_update_and_delete_reach_every_row_of_a_key(item: Item) -> None:
    item.keyed()
    item.land(1, rows((1, "a"), (1, "b"), (2, "a"), (2, "b")))
    item.land(2, rows((1, "c", UPDATE), (2, None, DELETE)))

    item.scan()

    assert item.rows() == [(1, "c")]


@pytest.mark.parametrize("marker", [3, 5, -1])
def test_an_unknown_marker_stops_the_table(item: Item, marker: int) -> None:
    item.keyed()
    item.land(1, rows((1, "a", 0)))
    item.land(2, rows((1, "a", 0), (1, "a", marker)))

    report = item.scan()

    assert f"{marker} is not a row marker" in report.note
    assert item.rows() == [(1, "a")]


def test_markers_may_be_text(item: Item) -> None:
    item.keyed()
    content = rows((1, "a"))
    item.land(1, content.append_column("__rowMarker__", pa.array(["4"])))

    item.scan()

    assert item.rows() == [(1, "a")]


def test_the_marker_is_the_last_column(item: Item) -> None:
    item.keyed()
    item.land(1, rows((1, "a", 0)).select(["__rowMarker__", "id", "name"]))

    assert "must be the last column" in item.scan().note


@pytest.mark.parametrize("marker", [UPDATE, DELETE, UPSERT])
def test_updates_and_deletes_need_key_columns(item: Item, marker: int) -> None:
    item.metadata()
    item.land(1, rows((1, "a", INSERT)))
    item.land(2, rows((1, "a", marker)))

    report = item.scan()

    assert "keyColumns" in report.note
    assert item.rows() == [(1, "a")]


def test_a_key_that_is_null_stops_the_table(item: Item) -> None:
    item.keyed()
    item.land(1, rows((None, "a", UPSERT)))

    assert "'id' is NULL" in item.scan().note


def test_keys_of_several_columns_are_compared_together(item: Item) -> None:
    item.metadata(keyColumns=["a", "b"])
    schema = pa.schema([("a", pa.string()), ("b", pa.string()), ("value", pa.int32())])
    item.land(1, rows(("x", "yz", 1), ("xy", "z", 2), ("xyz", "", 3), schema=schema))
    item.land(2, rows(("xy", "z", 4, UPDATE), ("xyz", "", None, DELETE), schema=schema))

    item.scan()

    assert item.rows() == [("x", "yz", 1), ("xy", "z", 4)]


KEY = "k\"e'y `of` a.b"


def test_columns_may_have_any_name(item: Item) -> None:
    item.metadata(keyColumns=[KEY])
    schema = pa.schema([(KEY, pa.int32()), ("select", pa.string()), ("ü ,;{}()\n\t=", pa.int8())])
    item.land(1, rows((1, "a", 1), (2, "b", 2), schema=schema))
    item.land(2, rows((1, "c", 3, UPDATE), (2, None, None, DELETE), schema=schema))

    item.scan()

    assert item.rows() == [(1, "c", 3)]


operations = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from("abcdef"), st.sampled_from([0, 1, 2, 4])),
    max_size=12,
)


def by_the_table(
    start: list[tuple[int, str]], applied: list[tuple[int, str, int]]
) -> list[tuple[int, str]]:
    """The specification's table of row markers, one row after the other."""
    result = list(start)
    for key, name, marker in applied:
        if marker != INSERT:
            result = [row for row in result if row[0] != key]
        if marker != DELETE:
            result.append((key, name))
    return sorted(result)


@given(st.lists(operations, max_size=4))
def test_reduced_operations_do_what_they_do_one_after_the_other(
    files: list[list[tuple[int, str, int]]],
) -> None:
    start = [(0, "x"), (1, "x"), (1, "y")]
    empty = marked(SCHEMA.empty_table(), Marker.INSERT)
    changes = empty

    for file in files:
        content = pa.concat_tables([empty, rows(*file)]) if file else empty
        changes = net_changes(pa.concat_tables([changes, net_changes(content, ("id",))]), ("id",))

    left = [tuple(row.values()) for row in changes.to_pylist()]
    gone = [key for key, _, marker in left if marker != INSERT]
    assert len(gone) == len(set(gone))
    result = [row for row in start if row[0] not in gone]
    result += [(key, name) for key, name, marker in left if marker != DELETE]
    assert sorted(result) == by_the_table(start, [row for file in files for row in file])


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(files=st.lists(operations, min_size=1, max_size=5), scans=st.sets(st.integers(0, 5)))
def test_files_do_the_same_whenever_they_are_scanned(
    item: Item, files: list[list[tuple[int, str, int]]], scans: set[int]
) -> None:
    item.keyed()
    item.land(1, rows())
    for number, file in enumerate(files, start=2):
        item.land(number, rows(*file) if file else rows())
        if number in scans:
            item.scan()

    item.scan()

    assert item.rows() == by_the_table([], [row for file in files for row in file])
    item.drop()
