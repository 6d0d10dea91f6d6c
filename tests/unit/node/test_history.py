"""The columns that the check strategy of a dbt snapshot compares."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.node.history import compared_columns
from dbt.adapters.openmirroring.spark.relation import OpenMirroringColumn

SOURCE = [
    OpenMirroringColumn("id", "int"),
    OpenMirroringColumn("Name", "string"),
    OpenMirroringColumn("place of `birth`", "struct<a:int>"),
]
TYPES = {
    "map<string,int>": "to_json(`c`)",
    "variant": "to_json(`c`)",
    "array<map<string,int>>": "to_json(`c`)",
    "struct<a:int,b:struct<c:variant>>": "to_json(`c`)",
    "geometry(0)": "st_asbinary(`c`)",
    "geography(4326)": "st_asbinary(`c`)",
}


@pytest.mark.parametrize(
    ("check_cols", "columns"),
    [
        ("all", ["id", "Name", "place of `birth`"]),
        (["id"], ["id"]),
        (["name", "NAME", "`name`", " Name"], ["Name"]),
        (["`place of ``birth```"], ["place of `birth`"]),
        (["place of `birth`"], ["place of `birth`"]),
        ("name", ["Name"]),
    ],
)
def test_a_column_is_compared_once_however_it_is_spelled(
    check_cols: Any, columns: list[str]
) -> None:
    assert compared_columns(check_cols, SOURCE) == columns


@pytest.mark.parametrize(
    ("check_cols", "found"),
    [
        (["nme", "id", "upper(name)"], "names 'nme', 'upper(name)', but"),
        (["id, name"], "names 'id, name', but"),
        (["*"], "names '*', but"),
        (["all"], "names 'all', but"),
        (["source.id"], "names 'source.id', but"),
        ([], "is empty, and"),
    ],
)
def test_what_is_no_column_of_the_source_is_named(check_cols: Any, found: str) -> None:
    with pytest.raises(CompilationError) as error:
        compared_columns(check_cols, SOURCE)
    assert (
        f"`check_cols` {found} it must have columns of the source of the dbt snapshot: id, Name, "
        "place of `birth`."
    ) in str(error.value)


@pytest.mark.parametrize("check_cols", ["all", ["c", "ID"]])
@pytest.mark.parametrize(("dtype", "text"), TYPES.items())
def test_a_column_that_spark_cannot_compare_is_refused_with_two_ways_out(
    dtype: str, text: str, check_cols: Any
) -> None:
    with pytest.raises(CompilationError) as error:
        compared_columns(check_cols, [OpenMirroringColumn("c", dtype), *SOURCE[:1]])
    assert f"`check_cols` has `c` of the type {dtype}, and Spark cannot compare" in str(
        error.value
    )
    assert f"{text} as `c_value`; or leave them out: `check_cols: [id]`." in str(error.value)


def test_a_text_of_a_map_has_the_microseconds_of_its_times() -> None:
    with pytest.raises(
        CompilationError, match=r"to_json\(`c`, map\(.*SSSSSS.*\)\) as `c_value`\."
    ):
        compared_columns("all", [OpenMirroringColumn("c", "map<string,timestamp>")])
