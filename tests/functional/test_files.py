"""The files as the specification and the best practices want them, by their Parquet footers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dbt.adapters.openmirroring.spark.session import SessionHandle
from tests.functional.project import Project
from tests.functional.typed_tables import TYPES, types_at
from tests.variants import some

ROW_MARKER = {"__rowMarker__": ("INT32", "None")}


def assert_footer(file: Path, types: Mapping[str, Any], codec: str = "ZSTD") -> None:
    """A file has these columns in this order, and only `id` may be required."""
    parquet = pq.ParquetFile(file)
    columns = [parquet.schema.column(i) for i in range(len(parquet.schema))]
    assert [column.name for column in columns] == ["id", *types]
    for column in columns:
        physical, logical = types.get(column.name, ("INT64", "None"))
        assert column.physical_type == physical, column.name
        assert str(column.logical_type).startswith(logical), column.name
        is_optional = column.max_definition_level == 1
        assert is_optional or column.name == "id", f"{column.name} is REQUIRED"
        assert column.max_repetition_level == 0
    group = parquet.metadata.row_group(0)
    assert {group.column(i).compression for i in range(group.num_columns)} == {codec}


@pytest.mark.parametrize("key", some(["id", None]))
@pytest.mark.core
def test_loads_and_change_sets_have_the_types_of_the_specification(
    project: Project, key: str | None
) -> None:
    types = {name: TYPES[name].parquet for name in types_at("column", project.file_format)}
    if project.file_format == "iceberg":  # it has no smaller integers
        types |= dict.fromkeys(("tinyint", "smallint"), types["int"])
    columns = ", ".join(f"{TYPES[name].values[0]} as `{name}`" for name in types)
    config = {"unique_key": key} if key else {}
    for rows in (2, 3):
        project.model(f"select id, {columns} from range({rows})", **config)
        project.run()

        project.assert_mirrored()

    load, changes = project.files()
    assert_footer(load, types)
    assert_footer(changes, {**types, **(ROW_MARKER if key else {})})


def test_files_are_compressed_as_configured(project: Project) -> None:
    codecs = {"none": "UNCOMPRESSED", "snappy": "SNAPPY", "gzip": "GZIP"}
    for compression in codecs:
        sql = "select id, 1 as i from range(100)"
        project.model(sql, compression, unique_key="id", compression=compression)

    project.run()

    for compression, codec in codecs.items():
        assert_footer(project.files(compression)[0], {"i": TYPES["int"].parquet}, codec)


def test_files_have_about_the_target_size_and_deletes_are_in_the_first(project: Project) -> None:
    def run(word: str, first: int, last: int) -> tuple[dict[str, Any], list[Path]]:
        """Publish rows. Return the response, and the new files."""
        before = len(project.files())
        text = f"sha2(concat(id, if(id < 60000, '', '{word}')), 512)"
        sql = f"select id, {text} as s from range({first}, {last}, 1, 4)"
        project.model(sql, unique_key="id", target_file_size="1mb")
        return project.run(), project.files()[before:]

    response, files = run("a", 30000, 90000)
    sizes = [file.stat().st_size for file in files]
    assert response["files_written"] == len(sizes) >= 3
    assert max(sizes) < 2 * 2**20
    assert sum(sizes) == response["bytes_written"]
    _, files = run("a", 29990, 90000)
    assert len(files) == 1

    response, files = run("b", 60000, 120000)

    counts = [response[f"rows_{kind}"] for kind in ("inserted", "updated", "deleted")]
    assert counts == [30000, 30000, 30010]
    markers = [
        marker for file in files for marker in pq.read_table(file)["__rowMarker__"].to_pylist()
    ]
    assert len(files) >= 3
    assert markers[:30010] == [2] * 30010
    assert 2 not in markers[30010:]
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
