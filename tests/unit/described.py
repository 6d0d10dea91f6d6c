"""A table's description, as `describe table extended` returns it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import TableDescription

RELATION = OpenMirroringRelation.create(schema="shop", identifier="orders")


def described(
    columns: Sequence[tuple[str, str, str]], details: Mapping[str, str], *partition_by: str
) -> list[dict[str, str]]:
    """The rows of a description.

    Args:
        columns: name, type and comment of each
        partition_by: columns
    """
    partition = [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
    rows = [
        *columns,
        *(partition + [(name, "int", "") for name in partition_by] if partition_by else []),
        ("", "", ""),
        ("# Detailed Table Information", "", ""),
        *((*detail, "") for detail in details.items()),
    ]
    return [dict(zip(("col_name", "data_type", "comment"), row, strict=True)) for row in rows]


def description(folder: Path, *partition_by: str, **details: str) -> TableDescription:
    """A Parquet table in a folder. It has a column called Location.

    Args:
        details: what else Spark says, or says otherwise
    """
    said = {"Provider": "parquet", "Location": f"file:{folder}", **details}
    return TableDescription.parse(
        RELATION, described([("Location", "int", "")], said, *partition_by)
    )
