"""Columns may have the names that the adapter's own statements use."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.functional.project import Project
from tests.variants import some

# the names of columns and tables in macros/sql
OURS = (
    *("k0", "k1", "d0", "d1", "c0", "c1", "n", "p", "differs", "latest", "marker", "position"),
    *("copy", "side", "surplus", "changed", "touched", "part", "file", "found", "line", "bad"),
    *("rows", "size", "DBT_INTERNAL_SOURCE", "DBT_INTERNAL_DEST", "old", "new", "snapshot"),
)
NAMES = ("id", *OURS)


def rows(*values: tuple[int, str]) -> str:
    """Rows with these keys; the other columns have text, and `part` is a struct."""
    selected = [
        "select {} as id, {}".format(
            key,
            ", ".join(
                f"named_struct('k0', '{text}', 'marker', {key}) as `{name}`"
                if name in ("part", "latest", "changed", "DBT_INTERNAL_SOURCE")
                else f"'{text}{number}' as `{name}`"
                for number, name in enumerate(OURS)
            ),
        )
        for key, text in values
    ]
    return " union all ".join(selected)


CONFIGS: dict[str, dict[str, Any]] = {
    "merge": {"materialized": "incremental", "unique_key": "id"},
    "merge_by_k0": {"materialized": "incremental", "unique_key": ["k0", "id", "n"]},
    "delete_insert": {
        "materialized": "incremental",
        "unique_key": "id",
        "incremental_strategy": "delete+insert",
        "delete_when": "k0 = 'gone0'",
    },
    "table": {"materialized": "table", "unique_key": "id"},
    "keyless": {"materialized": "table"},
    "appended": {"materialized": "incremental"},
    "text": {"materialized": "table", "unique_key": "id", "landing_format": "csv"},
}


@pytest.mark.usefixtures("each_size")
@pytest.mark.parametrize("kind", some(list(CONFIGS), 3))
def test_columns_with_names_of_the_adapter_are_published(project: Project, kind: str) -> None:
    config = CONFIGS[kind]
    project.model(rows((1, "a"), (2, "b"), (3, "c")), **config)
    project.run()
    project.model(rows((2, "b"), (3, "C"), (4, "d")), **config)
    if kind == "appended":
        project.model(rows((4, "d")), **config)

    project.run()

    project.assert_mirrored()
    project.model(rows((3, "gone"), (5, "e")), **config)
    project.run()
    project.assert_mirrored()


@pytest.mark.usefixtures("each_size")
@pytest.mark.core
def test_deletes_come_first_whatever_the_columns_are_called(project: Project) -> None:
    sql = "select id, 100 - id as position from range({})".format
    project.model(sql("0, 20"), unique_key=["id", "position"])
    project.run()
    project.model(sql("10, 30"), unique_key=["id", "position"])
    project.run()

    markers = pq.read_table(project.files()[-1]).column("__rowMarker__").to_pylist()

    assert markers == sorted(markers, key=lambda marker: marker != 2)


# headlines and details of what Spark says of a table
DESCRIBED = (
    *("# Partitioning", "# Partition Information", "# col_name", "# Clustering Information"),
    *("# Metadata Columns", "# Column Default Values", "# Detailed Table Information", "#"),
    *("Provider", "Location", "Num Buckets", "Owner", "Part 0", "Not partitioned"),
)


@pytest.mark.parametrize("partition_by", [None, "# Partition Information", "Provider"])
@pytest.mark.parametrize("materialized", ["table", "incremental"])
def test_columns_called_as_a_part_of_a_description_are_published(
    project: Project, materialized: str, partition_by: str | None
) -> None:
    if project.file_format == "delta":
        pytest.skip("Delta takes no spaces in names")
    columns = ", ".join(f"'{name}' as `{name}`" for name in DESCRIBED)
    config: dict[str, Any] = {"materialized": materialized, "unique_key": "id"}
    config |= {"partition_by": partition_by} if partition_by else {}
    for number in (1, 2):
        project.model(f"select 1 as id, {columns}, {number} as n", **config)

        project.run()

        (row,) = project.mirror()
        assert {name for name, _ in row} == {"id", *DESCRIBED, "n"}
        assert dict(row)["n"] == f"int {number}"
        project.assert_mirrored()
