"""The files as the specification and the best practices want them, by their Parquet footers."""

from __future__ import annotations

import re
from typing import Any

import pyarrow.parquet as pq
import pytest

from dbt.adapters.openmirroring.spark.session import SessionHandle
from tests.functional.project import Project
from tests.variants import some

COLUMNS = """
    id, cast(id as string) as s, cast(id as int) as i, cast(id as smallint) as h,
    cast(id as tinyint) as t, cast(id as double) as d, cast(id as float) as f, id = 1 as b,
    cast(id as decimal(9, 2)) as dec9, cast(id as decimal(38, 10)) as dec38,
    date'2024-01-01' as day, timestamp_seconds(id) as ts,
    timestamp_ntz'2024-01-01 00:00:00' as ntz, cast('x' as binary) as bin,
    array(id) as arr, map('k', id) as m, named_struct('x', id) as st, parse_json('{{}}') as v,
    cast('x' as varchar(3)) as vc, {extra} as extra
"""

INSTANT = "Timestamp(isAdjustedToUTC=true, timeUnit=microseconds"
EXPECTED = {
    "id": ("INT64", "None"),
    "s": ("BYTE_ARRAY", "String"),
    "i": ("INT32", "None"),
    "h": ("INT32", "Int(bitWidth=16, isSigned=true)"),
    "t": ("INT32", "Int(bitWidth=8, isSigned=true)"),
    "d": ("DOUBLE", "None"),
    "f": ("FLOAT", "None"),
    "b": ("BOOLEAN", "None"),
    "dec9": ("INT32", "Decimal(precision=9, scale=2)"),
    "dec38": ("FIXED_LEN_BYTE_ARRAY", "Decimal(precision=38, scale=10)"),
    "day": ("INT32", "Date"),
    "ts": ("INT64", INSTANT),
    "ntz": ("INT64", INSTANT),
    "bin": ("BYTE_ARRAY", "None"),
    "arr": ("BYTE_ARRAY", "String"),
    "m": ("BYTE_ARRAY", "String"),
    "st": ("BYTE_ARRAY", "String"),
    "v": ("BYTE_ARRAY", "String"),
    "vc": ("BYTE_ARRAY", "String"),
    "extra": ("INT32", "None"),
    "__rowMarker__": ("INT32", "None"),
}


def check_footer(file: Any, names: list[str], keys: tuple[str, ...], codec: str) -> None:
    parquet = pq.ParquetFile(file)
    columns = [parquet.schema.column(i) for i in range(len(parquet.schema))]
    assert [column.name for column in columns] == names
    for column in columns:
        physical, logical = EXPECTED[column.name]
        assert column.physical_type == physical, column.name
        assert str(column.logical_type).startswith(logical), column.name
        if column.name not in keys:
            assert column.max_definition_level == 1, f"{column.name} is REQUIRED"
        assert column.max_repetition_level == 0
    group = parquet.metadata.row_group(0)
    assert {group.column(i).compression for i in range(group.num_columns)} == {codec}


@pytest.mark.parametrize("key", some(["id", None]))
@pytest.mark.core
def test_loads_and_change_sets_have_the_types_of_the_specification(
    project: Project, file_format: str, monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    if file_format == "iceberg":  # it has no smaller integers
        for name in ("h", "t"):
            monkeypatch.setitem(EXPECTED, name, EXPECTED["i"])
    config = {"unique_key": key} if key else {}
    names = list(EXPECTED)[:-1]
    for rows in (2, 3):
        columns = COLUMNS.format(extra="cast(null as int)")
        project.model(f"select {columns} from range({rows})", **config)
        project.run()

    load, changes = project.files()
    check_footer(load, names, ("id",), "ZSTD")
    check_footer(changes, [*names, "__rowMarker__"] if key else names, ("id",), "ZSTD")


@pytest.mark.parametrize(
    ("compression", "codec"), [("none", "UNCOMPRESSED"), ("snappy", "SNAPPY"), ("gzip", "GZIP")]
)
def test_files_are_compressed_as_configured(
    project: Project, compression: str, codec: str
) -> None:
    project.model("select id, 1 as i from range(100)", unique_key="id", compression=compression)
    project.run()

    check_footer(project.files()[0], ["id", "i"], ("id",), codec)


@pytest.mark.core
def test_a_load_is_split_to_about_the_target_size_and_few_changes_are_one_file(
    project: Project,
) -> None:
    sql = "select id, sha2(concat(id, if(id < {}, 'x', '')), 512) as s from range(0, 40000, 1, 4)"
    options = {"unique_key": "id", "target_file_size": "1mb"}
    project.model(sql.format(0), **options)

    response = project.run()

    sizes = [file.stat().st_size for file in project.files()]
    assert response["files_written"] == len(sizes) >= 3
    assert max(sizes) < 2 * 2**20
    assert sum(sizes) == response["bytes_written"]
    project.assert_mirrored()
    project.model(sql.format(10), **options)
    assert project.run()["files_written"] == 1
    project.assert_mirrored()


def test_a_change_set_is_split_with_its_deletes_in_the_first_files(project: Project) -> None:
    sql = "select id, sha2(concat(id, '{}'), 512) as s from range({}, {})"
    options = {"unique_key": "id", "target_file_size": "1mb"}
    project.model(sql.format("a", 0, 60000), **options)
    project.run()
    loaded = len(project.files())
    project.model(sql.format("b", 30000, 90000), **options)

    response = project.run()

    counts = [response[f"rows_{kind}"] for kind in ("inserted", "updated", "deleted")]
    assert counts == [30000, 30000, 30000]
    markers = [
        marker
        for file in project.files()[loaded:]
        for marker in pq.read_table(file)["__rowMarker__"].to_pylist()
    ]
    assert len(project.files()) - loaded >= 3
    assert markers[:30000] == [2] * 30000
    assert 2 not in markers[30000:]
    project.assert_mirrored()


@pytest.mark.needs(pyspark="plans are asked for in a session")
@pytest.mark.parametrize("config", some([{"unique_key": "id"}, {}]), ids=["keyed", "keyless"])
def test_wide_rows_that_did_not_change_are_not_shuffled(
    project: Project, monkeypatch: pytest.MonkeyPatch, config: dict[str, str]
) -> None:
    project.take_tables_for_large()
    plans: list[list[str]] = []
    execute = SessionHandle.execute

    def explained(handle: SessionHandle, sql: str, bindings: None = None) -> None:
        if re.search("insert overwrite|create table .*__changed_", sql):
            query = sql[sql.index("select") :]
            execute(handle, f"explain {query}")
            (row,) = handle.fetchall()
            plans.append(row[0].splitlines())
        execute(handle, sql, bindings)

    for rows in (100, 101):
        project.model(f"select id, repeat('x', 1000) as payload from range({rows})", **config)
        if rows == 101:
            monkeypatch.setattr(SessionHandle, "execute", explained)
        project.run()

    compare, stage = plans
    shuffled = [line for line in compare if "HashAggregate" in line]
    assert shuffled
    assert not any("payload" in line for line in shuffled), "keys and digests alone"
    (join,) = [line for line in stage if "Join" in line]
    assert "BroadcastHashJoin" in join
    below = stage[stage.index(join) + 1 :]
    exchanges = [line for line in below if "Exchange" in line]
    assert len(exchanges) == 1
    assert "BroadcastExchange" in exchanges[0], "the changed keys come to the rows"


@pytest.mark.needs(local="links are for files of this machine")
@pytest.mark.needs(session="only on this machine are files linked")
@pytest.mark.needs(parquet="files of other formats are not linked")
@pytest.mark.core
def test_a_load_publishes_the_files_of_the_snapshot_without_writing_them_again(
    project: Project,
) -> None:
    columns = "nullif(id, -1) as id, cast(nullif(id, 1) as string) as name"
    rows = f"select {columns} from range(0, {{}}, 1, 1)"
    project.model(rows.format(5), unique_key="id")
    project.run()
    (load,) = project.files()

    assert load.stat().st_nlink == 2, "one file, in the snapshot and in the table folder"
    project.assert_mirrored()

    project.model(rows.format(6), unique_key="id")
    project.run()

    assert load.stat().st_nlink == 1, "the snapshot has other files now"
    project.assert_mirrored()
