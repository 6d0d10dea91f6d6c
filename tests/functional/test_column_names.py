"""Columns may have any name, also those that the adapter's own statements use."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.functional.project import Project

# the names of columns and tables in macros/sql
OURS = (
    *("k0", "k1", "d0", "d1", "c0", "c1", "n", "p", "differs", "latest", "marker", "position"),
    *("copy", "side", "surplus", "changed", "touched", "part", "file", "found", "line", "bad"),
    *("rows", "size", "DBT_INTERNAL_SOURCE", "DBT_INTERNAL_DEST", "old", "new", "snapshot"),
)
STRUCTS = ("part", "latest", "changed", "DBT_INTERNAL_SOURCE")
ODD = (
    *("with space", "with.dot", 'with"quote', "with'apostrophe", "with`backtick", "ünïcödé 列"),
    *("select", "comma,semicolon;brace{}(paren)=", "100%", "back\\slash", "#hash"),
)
# headlines and details of what Spark says of a table
DESCRIBED = (
    *("# Partitioning", "# Partition Information", "# col_name", "# Clustering Information"),
    *("# Metadata Columns", "# Column Default Values", "# Detailed Table Information", "#"),
    *("Provider", "Location", "Num Buckets", "Owner", "Part 0", "Not partitioned"),
)

CONFIGS: dict[str, dict[str, Any]] = {
    "merge": {"materialized": "incremental", "unique_key": ["k0", "ID", "n", *ODD[:5]]},
    "delete_insert": {
        "materialized": "incremental",
        "unique_key": "id",
        "incremental_strategy": "delete+insert",
        "delete_when": "k0 = 'gone0'",
    },
    "table": {"materialized": "table", "unique_key": ["id", *ODD[:9]]},
    "partitioned": {
        "materialized": "incremental",
        "unique_key": "id",
        "partition_by": ["Provider", "# Partition Information"],
    },
    "keyless": {"materialized": "table"},
    "appended": {"materialized": "incremental"},
    "text": {"materialized": "table", "unique_key": "id", "landing_format": "csv"},
}


def rows(project: Project, *values: tuple[int, str]) -> str:
    """Rows with these keys; the other columns have text, and some are structs."""
    names = (*OURS, *ODD, *(DESCRIBED if project.file_format != "delta" else ()))
    selects = []
    for key, text in values:
        columns = (
            f"named_struct('k0', '{text}', 'marker', {key}) as `{name}`"
            if name in STRUCTS
            else f"'{text}{number}' as `{name.replace('`', '``')}`"
            for number, name in enumerate(names)
        )
        selects.append(f"select {key} as Id, {', '.join(columns)}")
    return " union all ".join(selects)


@pytest.mark.usefixtures("each_size")
def test_columns_of_any_name_are_published_by_each_kind_of_model(project: Project) -> None:
    steps = (
        rows(project, (1, "a"), (2, "b"), (3, "c")),
        rows(project, (1, "gone"), (2, "B"), (4, "d")),
    )
    configs = dict(CONFIGS)
    if project.file_format == "delta":
        del configs["partitioned"]
    for step, sql in enumerate(steps):
        for name, config in configs.items():
            is_added = name == "appended" and step == 1
            project.model(rows(project, (4, "d")) if is_added else sql, name, **config)

        project.run()

        for name in configs:
            project.assert_mirrored(name)
    assert '"Id"' in (project.folder("merge") / "_metadata.json").read_text()


@pytest.mark.usefixtures("each_size")
def test_deletes_come_first_whatever_the_columns_are_called(project: Project) -> None:
    sql = "select id, 100 - id as position from range({})".format
    project.model(sql("0, 20"), unique_key=["id", "position"])
    project.run()
    project.model(sql("10, 30"), unique_key=["id", "position"])
    project.run()

    markers = pq.read_table(project.files()[-1]).column("__rowMarker__").to_pylist()

    assert markers == sorted(markers, key=lambda marker: marker != 2)
